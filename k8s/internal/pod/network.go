// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"time"

	"github.com/fumehood/fumehood/internal/egress"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Network is a request for network access of all containers of a pod.
type Network struct {
	// Entries are the hosts, as in a proposal: "host", "*.host" or "host:port".
	Entries []string
	// Resolvers are the name servers that the gateway asks. There must be one.
	Resolvers []netip.AddrPort
	// Argv starts a program that calls egress.Main, in the network namespace whose addresses
	// the connections have.
	Argv []string
}

// networkID is the id of the network in the log.
const networkID = "network"

// A connected is the network of a pod, for as long as that lives.
type connected struct {
	gateway *egress.Gateway
	record  proposal.Record
	began   time.Time
}

// Connect decides n and starts the gateway, which is the only way out for all containers: policy
// decides every name and connection, and the log has them under one id. It returns the path of the
// network namespace that the sandbox must be started in, and the certificate that programs must
// trust where policy has TLS intercepted. It must be called at most once, after Use and before the
// sandbox is started. Unlike what Admit decides, what is granted stays until Close.
//
// The error is a *proposal.StopError: pod.denied if policy does not grant every entry.
func (p *Pod) Connect(ctx context.Context, n Network) (path string, ca []byte, err error) {
	record, err := p.decideNetwork(ctx, n)
	if err != nil {
		return "", nil, p.redactor.Error(err)
	}
	if err := p.observer.Begin(record, p.redactor.Event, p.failIf); err != nil {
		return "", nil, err
	}
	var names egress.NamesBelow
	decide := decided(p.policy, (*policy.Engine).Egress)
	deciding := context.WithoutCancel(ctx)
	g, err := egress.Start(ctx, egress.Options{Resolvers: n.Resolvers, Argv: n.Argv, AnswerWithin: sandbox.AnswerWithin,
		Events: math.MaxInt,
		Event:  p.observer.AddEvent, Fail: p.Fail,
		Decide: func(_ context.Context, x proposal.Egress) (proposal.EgressDecision, error) {
			d, err := decide(deciding, x)
			return names.Limit(x, d), err
		}})
	if err != nil {
		return "", nil, p.redactor.Error(err)
	}
	p.network = &connected{gateway: g, record: record, began: time.Now()}
	return g.Path(), g.CACertificate(), p.redactor.Error(g.Begin(ctx, networkID, *record.Decision.Grant))
}

// decideNetwork decides the entries as those of a command that does nothing, and writes the
// decision to the log.
func (p *Pod) decideNetwork(ctx context.Context, n Network) (proposal.Record, error) {
	if err := p.Err(); err != nil {
		return proposal.Record{}, err
	}
	proposed, err := plan.Checked(proposal.Proposal{ID: networkID, Argv: []string{"true"}, Network: n.Entries})
	if err != nil {
		return proposal.Record{}, stop("pod.network", "the pod's network cannot be decided: "+err.Error(),
			"correct the entries", nil)
	}
	records, err := p.checker().Check(ctx, proposal.Plan{Proposals: []proposal.Proposal{proposed}})
	if err != nil {
		return proposal.Record{}, err
	}
	record, err := p.log(records[0])
	if err == nil && len(order.GrantedNetwork([]proposal.Record{record})) == 0 {
		err = stop("pod.denied", "policy grants no network to the pod",
			"change the entries, or the policy that the pod names", nil)
	}
	if err == nil {
		_, err = p.o.Log.Append("start", journal.NewStart(record, false))
	}
	return record, err
}

// failIf is fail as a context.CancelCauseFunc, which is also called without a cause.
func (p *Pod) failIf(cause error) {
	if cause != nil {
		p.Fail(cause)
	}
}

// disconnect ends the gateway, and writes what it did to the log.
func (p *Pod) disconnect() error {
	c := p.network
	if c == nil {
		return nil
	}
	err := errors.Join(c.gateway.End(), c.gateway.Close())
	seen, seeErr := p.observer.End(context.Background(), networkID, &proposal.Observations{Complete: err == nil})
	record := p.redactor.Record(c.record)
	record.Result = &proposal.Result{Status: proposal.Exited, WallMS: time.Since(c.began).Milliseconds(),
		Observations: seen,
		Outputs:      []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
	_, logErr := p.o.Log.Append("result", journal.NewResult(record))
	return errors.Join(err, seeErr, logErr)
}
