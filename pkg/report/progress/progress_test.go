// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A command's begin and end are printed on a terminal, and its end on a pipe for the demo
// only. Nothing in its id reaches the terminal as an escape sequence.
func TestProgress(t *testing.T) {
	end := hood.Step{Proposal: "unit\x1b", Number: 2, Of: 3, Result: &proposal.Result{Status: proposal.Exited, ExitCode: 1, WallMS: 1500}}
	begin := end
	begin.Result = nil
	for name, c := range map[string]struct {
		p    Printer
		want string
	}{
		"pipe":                    {Printer{}, ""},
		"pipe of the demo":        {Printer{steps: true}, "fumehood: [2/3] unit\\u001b: exit code 1 in 1.5s\n"},
		"terminal":                {Printer{on: true, color: true}, "\x1b[2m…  [2/3] unit\\u001b\x1b[0m\r\x1b[K\x1b[31m✗\x1b[0m  [2/3] unit\\u001b: exit code 1 in 1.5s\n"},
		"terminal without colors": {Printer{on: true}, "…  [2/3] unit\\u001b\r\x1b[K✗  [2/3] unit\\u001b: exit code 1 in 1.5s\n"},
	} {
		if got := printed(c.p, begin, end); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Each outcome has its own mark and words; what does not begin has no time.
func TestOutcomes(t *testing.T) {
	denied := proposal.Decision{Effect: proposal.Deny, Reasons: []proposal.Reason{{Effect: proposal.Deny, Rule: "git.push\x1b"}}}
	asked := proposal.Decision{Effect: proposal.Ask, Reasons: []proposal.Reason{{Effect: proposal.Ask, Rule: "org.review"}}}
	for want, s := range map[string]hood.Step{
		"✓  [1/2] a: succeeded in 20ms\n":           {Result: &proposal.Result{Status: proposal.Exited, WallMS: 20}},
		"✗  [1/2] a: timed out in 2m0s\n":           {Result: &proposal.Result{Status: proposal.TimedOut, WallMS: 120000}},
		"–  [1/2] a: not run\n":                     {Result: &proposal.Result{Status: proposal.NotRun}},
		"⛔ [1/2] a: denied by git.push\\u001b\n":    {Refused: true, Decision: denied},
		"✋ [1/2] a: needs approval by org.review\n": {Refused: true, Decision: asked},
	} {
		s.Proposal, s.Number, s.Of = "a", 1, 2
		if got := printed(Printer{on: true}, s); got != "\x1b[K"+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func printed(p Printer, steps ...hood.Step) string {
	var out strings.Builder
	p.w = &out
	for _, s := range steps {
		p.Step(s)
	}
	return out.String()
}
