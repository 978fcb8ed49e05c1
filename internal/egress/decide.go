// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// handleAsk answers a question while others are read.
func (g *Gateway) handleAsk(seq uint64, body []byte) error {
	var a wire.Ask
	if err := wire.Decode(body, &a); err != nil {
		return err
	}
	c := g.currentCommand()
	if c == nil {
		return errors.New("a question came outside a command")
	}
	g.fillEgress(&a.Egress, c)
	select {
	case g.asks <- struct{}{}:
	default:
		return errors.New("more concurrent questions than allowed")
	}
	go func() {
		d, ok := g.decideInTime(a.Egress)
		<-g.asks // before the answer: after it the process may ask again at once
		if ok {
			_ = g.sendMessage(wire.KindAnswer, seq, &wire.Answer{Decision: d})
		}
	}()
	return nil
}

func (g *Gateway) currentCommand() *command {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.command
}

// fillEgress fills in the fields of e that only the supervisor knows.
func (g *Gateway) fillEgress(e *proposal.Egress, c *command) {
	e.Command, e.Phase, e.Grants = c.id, c.phase, slices.Clone(c.grants)
	if e.Grants == nil {
		e.Grants = []string{}
	}
	if e.Secrets == nil {
		e.Secrets = []proposal.EgressSecret{}
	}
	e.Registries = []string{}
	if g.o.Registries == nil || e.Name == "" {
		return
	}
	for _, r := range g.o.Registries(e.Name, e.Port, e.Path) {
		if slices.Contains(c.grants, "registry:"+r) {
			e.Registries = append(e.Registries, r)
		}
	}
}

// decideInTime returns Options.Decide's answer. It returns false if Decide did not
// answer in time; the gateway has then failed.
func (g *Gateway) decideInTime(e proposal.Egress) (proposal.EgressDecision, bool) {
	ctx, cancel := context.WithTimeout(g.ctx, g.o.AnswerWithin)
	defer cancel()
	slow := time.AfterFunc(g.o.AnswerWithin, func() {
		g.fail("gateway.slow", "no decision about a connection came within "+g.o.AnswerWithin.String(), nil)
	})
	d, err := g.o.Decide(ctx, e)
	if !slow.Stop() || g.Err() != nil {
		return proposal.EgressDecision{}, false
	}
	if err != nil {
		g.failUndecided(err)
		return proposal.EgressDecision{}, false
	}
	if g.o.ObserveUnsafe {
		d = observeDecision(e, d)
	}
	return d, true
}

// observeDecision returns what passes where d is not enforced, with what d would have refused. The
// gateway's process still refuses addresses that are not public, and every datagram.
func observeDecision(e proposal.Egress, d proposal.EgressDecision) proposal.EgressDecision {
	step := e.Kind == points.EgressLookup || e.Kind == points.EgressConnect
	if d.Effect != proposal.Allow && d.Firm != nil {
		d.Reason = d.Firm
		return d
	}
	if !step {
		return d
	}
	return proposal.EgressDecision{Effect: proposal.Allow, Rules: d.Rules, Reason: d.Reason, Raw: true,
		Observed: d.Observed || d.Effect != proposal.Allow}
}

func (g *Gateway) failUndecided(err error) {
	var stop *proposal.StopError
	if errors.As(err, &stop) {
		g.failWith(err)
		return
	}
	g.fail("gateway.policy", "policy did not decide about a connection", err)
}

var eventKinds = map[string]string{
	points.EgressLookup: proposal.EventLookup, points.EgressConnect: proposal.EventConnection,
	points.EgressHello:   proposal.EventConnection,
	points.EgressRequest: proposal.EventRequest, points.EgressDatagram: proposal.EventDatagram,
}

// handleFlow records the outcome of a connection, request, lookup or datagram.
func (g *Gateway) handleFlow(body []byte) error {
	var f wire.Flow
	if err := wire.Decode(body, &f); err != nil {
		return err
	}
	kind, ok := eventKinds[f.Flow.Egress.Kind]
	c := g.currentCommand()
	if c == nil || !ok {
		return errors.New("an event came outside a command, or has no name")
	}
	if c.events++; c.events > g.o.Events {
		g.fail("gateway.flood", "a command caused more events than can be recorded", nil)
		return nil
	}
	g.fillEgress(&f.Flow.Egress, c)
	if f.Flow.Decision.Rules == nil {
		f.Flow.Decision.Rules = []string{}
	}
	if g.o.ObserveUnsafe && !f.Flow.Refused() {
		f.Flow.Verdict = proposal.VerdictObserved
	}
	if g.o.Event != nil {
		g.o.Event(proposal.Event{Command: c.id, Kind: kind, Time: time.Unix(0, f.Time).UTC(), Flow: &f.Flow})
	}
	return nil
}
