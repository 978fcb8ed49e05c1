// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A test of node's runner that is TODO is no failure, whatever its reason is, and a name that looks like
// one is.
func TestNodeTodo(t *testing.T) {
	const stack = "  AssertionError [ERR_ASSERTION]: 1 == 2\n      at f (/workspace/a.test.js:2:23) {\n    code: 'ERR_ASSERTION'\n  }\n\n"
	out := "✖ failing tests:\n\n"
	for _, line := range []string{"old (1.692449ms)", "todo (0.180989ms) # TODO", "why (0.173578ms) # later", "slow (1ms) # TODO x (0.145906ms)", "skip (0.1ms) # SKIP", "new (2ms)"} {
		out += "test at a.test.js:2:1\n✖ " + line + "\n" + stack
	}
	for _, every := range []bool{false, true} {
		var names []string
		for _, d := range Diagnostics(&proposal.Result{ExitCode: 1, Stdout: proposal.Stream{Head: []byte(out)}}, Options{Every: every}) {
			if d.Level == Error {
				names = append(names, d.Test)
			}
		}
		if want := []string{"old", "slow (1ms) # TODO x", "new"}; !slices.Equal(names, want) {
			t.Errorf("every %t: %s", every, strings.Join(names, ", "))
		}
	}
}
