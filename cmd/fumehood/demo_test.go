// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/testdata/demo"
)

// On a host that lacks a tool, the demo shows its other commands.
func TestDemoWithoutTools(t *testing.T) {
	p, problems := plan.Decode(demo.Plan, "plan.yaml")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range []struct {
		installed []string
		want      string
	}{
		{[]string{"go", "gofmt", "node", "python3"}, "format unit cover py web repro soak close configured bootstrap"},
		{[]string{"go", "gofmt", "python3"}, "format unit cover py repro soak close configured bootstrap"},
		{[]string{"python3"}, "py repro soak close configured bootstrap"},
		{nil, "configured bootstrap"},
	} {
		bin := t.TempDir()
		for _, name := range c.installed {
			if err := os.WriteFile(filepath.Join(bin, name), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", bin)
		var ids, said []string
		for _, q := range withTools(slices.Clone(p.Proposals), func(line string) { said = append(said, line) }) {
			ids = append(ids, q.ID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("with %q the demo has %q, want %q", c.installed, got, c.want)
		}
		if len(said) != len(demoTools)-len(c.installed) {
			t.Errorf("with %q it says %q", c.installed, said)
		}
	}
}

// The end of a step is printed on a terminal, and on a pipe only for the demo.
func TestProgress(t *testing.T) {
	end := hood.Step{Proposal: "unit\x1b", Number: 2, Of: 3, Result: &proposal.Result{Status: proposal.Exited, ExitCode: 1, WallMS: 1500}}
	begin := end
	begin.Result = nil
	for name, c := range map[string]struct {
		p    progress
		want string
	}{
		"pipe":             {progress{}, ""},
		"pipe of the demo": {progress{steps: true}, "fumehood: [2/3] unit\\u001b: exit code 1 in 1.5s\n"},
		"terminal":         {progress{on: true}, "\x1b[2mfumehood: [2/3] unit\\u001b …\x1b[0m\r\x1b[K\x1b[31m✗\x1b[0m [2/3] unit\\u001b: exit code 1 in 1.5s\n"},
	} {
		var out strings.Builder
		c.p.w = &out
		c.p.step(begin)
		c.p.step(end)
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", name, out.String(), c.want)
		}
	}
}
