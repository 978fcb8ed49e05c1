// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"fmt"
	"time"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy/explain"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Decider is the policy: internal/policy's Engine, or k8s/internal/pod's, which
// compiles it meanwhile.
type Decider interface {
	// Decide decides one proposal. An error means that policy could not answer; then
	// nothing runs.
	Decide(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error)
}

// A Checker decides proposals and runs nothing.
type Checker struct {
	// Policy is required. Without it Check denies everything, with an error.
	Policy Decider
	// Adviser finds what would be allowed instead of a refused proposal; nil finds nothing.
	Adviser *explain.Adviser
	// Ceiling lowers the limits that policy grants: each field that is set is the
	// maximum for every command. It never raises a limit.
	Ceiling proposal.Limits
	// ReadFile returns a small file of the workspace, for Proposal.Sourced; nil reads none.
	ReadFile func(name string) (text string, ok bool)
	// Decided, if set, is called with the time of each decision that policy made.
	Decided func(took time.Duration)
}

// Check parses and decides every proposal of plan and runs nothing. An Invalid proposal is
// denied without asking policy. With an error every Record is denied.
func (c Checker) Check(ctx context.Context, plan proposal.Plan) ([]proposal.Record, error) {
	records := make([]proposal.Record, len(plan.Proposals))
	if c.Policy == nil {
		err := missingStageError("Policy")
		denyAll(records, plan, err)
		return records, err
	}
	for i, p := range plan.Proposals {
		p = c.withSourced(p)
		records[i] = proposal.Record{Proposal: p, Analysis: AnalyzeProposal(p), Entry: -1}
		if d, refused := p.Refusal(); refused {
			records[i].Decision = d
			continue
		}
		if err := c.decideRecord(ctx, &records[i]); err != nil {
			denyAll(records, plan, err)
			return records, fmt.Errorf("cannot decide proposal %q: %w", p.ID, err)
		}
		c.addAlternatives(ctx, &records[i])
	}
	closeProbing(records)
	return records, nil
}

// withSourced returns p with the files that it sources.
func (c Checker) withSourced(p proposal.Proposal) proposal.Proposal {
	p.Sourced = nil
	if c.ReadFile != nil {
		p.Sourced = parse.ReadSourced(p, c.ReadFile)
	}
	return p
}

func (c Checker) decideRecord(ctx context.Context, r *proposal.Record) (err error) {
	began := time.Now()
	if r.Decision, err = c.Policy.Decide(ctx, r.Proposal, r.Analysis); err != nil {
		return err
	}
	if c.Decided != nil {
		c.Decided(time.Since(began))
	}
	lowerGrant(r.Decision.Grant, c.Ceiling)
	return nil
}

// denyAll denies every record of a plan that policy could not decide; decisions already
// made are void.
func denyAll(records []proposal.Record, plan proposal.Plan, err error) {
	f := proposal.FailureOf(err)
	for i, p := range plan.Proposals {
		records[i].Proposal, records[i].Entry = p, -1
		records[i].Decision = points.DenyReason(f.Code, "policy could not decide this plan", f.Hint)
		records[i].Decision.Reasons[0].Retry = retryAfter(f.Code)
	}
}
