// SPDX-License-Identifier: Apache-2.0

package hood

import (
	"context"
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Outlet is what everything passes before it is logged, shown or kept: pkg/outlet's
// Outlet, or a test's. What it returns has markers in the place of secrets and counts
// them; what it is given stays as it is, so that what is decided and what runs does.
type Outlet interface {
	// Named refuses a plan whose ids would have to be replaced.
	Named(proposal.Plan) error
	Run(proposal.Run) proposal.Run
	Record(proposal.Record) proposal.Record
	Event(proposal.Event) proposal.Event
	Failure(*proposal.Failure) *proposal.Failure
	Text(string) string
	// Result lets what a command printed and left pass, as far as policy does. With an
	// error, which ends the run, the Result holds nothing of it.
	Result(ctx context.Context, id string, r proposal.Result) (proposal.Result, error)
	// Whole lets the report pass, as far as policy does.
	Whole(context.Context, proposal.Report) (proposal.Report, error)
}

// told are the records as they may be told. What ran is the given ones' matter.
func (h *Hood) told(records []proposal.Record) []proposal.Record {
	told := make([]proposal.Record, len(records))
	for i, r := range records {
		told[i] = h.p.Outlet.Record(r)
	}
	return told
}

// released lets a result pass. Where it could not, nobody can vouch for it.
func (h *Hood) released(ctx context.Context, id string, result proposal.Result) (proposal.Result, error) {
	result, err := h.p.Outlet.Result(ctx, id, result)
	if err != nil {
		result.Status, result.Detail = proposal.SandboxFailed, "what it left could not be searched for secrets"
	}
	return result, err
}

// ruleSecret is the rule of the Finding that something was kept back.
const ruleSecret = "output.secret"

// noted adds to what was seen of a command that secrets were found in what it left. It
// is no reason to run it otherwise.
func noted(r *proposal.Record) {
	found := leaked(*r.Result)
	if n, _ := proposal.CountRedactions(found); n == 0 || r.Result.Observations == nil {
		return
	}
	message := "something that it printed or left was replaced or withheld:"
	for i, f := range found {
		if i > 0 {
			message += ","
		}
		message += fmt.Sprintf(" %s (%d)", f.Rule, f.Count)
	}
	o := *r.Result.Observations
	o.Findings = append(o.Findings[:len(o.Findings):len(o.Findings)], proposal.Finding{Rule: ruleSecret, Message: message,
		Event: proposal.Event{Command: r.Proposal.ID, Kind: "output"}})
	r.Result.Observations = &o
}

// leaked is what was found in all that a command printed and left.
func leaked(r proposal.Result) []proposal.Redaction {
	found := proposal.AddRedactions(r.Stdout.Redacted, r.Stderr.Redacted)
	for _, o := range r.Outputs {
		found = proposal.AddRedactions(found, o.Redacted)
	}
	return found
}
