// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The end of a step is printed on a terminal, and on a pipe for the demo only.
func TestProgress(t *testing.T) {
	end := hood.Step{Proposal: "unit\x1b", Number: 2, Of: 3, Result: &proposal.Result{Status: proposal.Exited, ExitCode: 1, WallMS: 1500}}
	begin := end
	begin.Result = nil
	for name, c := range map[string]struct {
		p    Printer
		want string
	}{
		"pipe":             {Printer{}, ""},
		"pipe of the demo": {Printer{steps: true}, "fumehood: [2/3] unit\\u001b: exit code 1 in 1.5s\n"},
		"terminal":         {Printer{on: true}, "\x1b[2mfumehood: [2/3] unit\\u001b …\x1b[0m\r\x1b[K\x1b[31m✗\x1b[0m [2/3] unit\\u001b: exit code 1 in 1.5s\n"},
	} {
		var out strings.Builder
		c.p.w = &out
		c.p.Step(begin)
		c.p.Step(end)
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", name, out.String(), c.want)
		}
	}
}
