// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package policy_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/optiontext"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The options that rules of policies/command allow for a tool without a table take a value if the
// tool's own text says so, and only then: a word after an option without a value is an address, a
// script or a file.
func TestE2EOptionsInRulesAreThoseOfTheTools(t *testing.T) {
	e := shipped(t)
	for tool, rest := range map[string]struct{ ask, after, bad string }{
		"curl":    {"curl --help all", "http://127.0.0.1:1/x", "x.example"},
		"wget":    {"wget --help", "-O - http://127.0.0.1:1/x", "x.example"},
		"sqlite3": {"sqlite3 -help", "a.db 'select 1'", "/etc/x.db"},
	} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Errorf("%s is not installed", tool)
			continue
		}
		all := optiontext.ReadOutput(t, rest.ask)
		flags, valued := 0, 0
		for _, option := range slices.Sorted(maps.Keys(all)) {
			alone := decide(t, e, strings.Join([]string{tool, option, rest.after}, " ")).Effect == proposal.Allow
			bad := decide(t, e, strings.Join([]string{tool, option, rest.bad, rest.after}, " ")).Effect == proposal.Allow
			switch needs := !slices.Contains(all[option], optiontext.None); {
			case bad && !needs:
				t.Errorf("%s %s has %q in its text, and the word after it is read as its value", tool, option, all[option])
			case needs && alone && !bad:
				t.Errorf("%s %s has %q in its text, and the word after it is not read as its value", tool, option, all[option])
			case bad:
				valued++
			case alone:
				flags++
			}
		}
		if t.Logf("%s: of %d options rules allow %d flags and %d with any value", tool, len(all), flags, valued); flags == 0 {
			t.Errorf("%s: nothing was compared", tool)
		}
	}
}
