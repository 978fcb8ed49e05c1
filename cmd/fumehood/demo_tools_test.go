// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/plan"
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
		{[]string{"go", "gofmt", "node", "python3"}, "format copies unit cover py web repro soak close configured bootstrap"},
		{[]string{"go", "gofmt", "python3"}, "format copies unit cover py repro soak close configured bootstrap"},
		{[]string{"python3"}, "copies py repro soak close configured bootstrap"},
		{nil, "copies configured bootstrap"},
	} {
		bin := t.TempDir()
		for _, name := range c.installed {
			if err := os.WriteFile(filepath.Join(bin, name), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", bin)
		var ids, said []string
		for _, q := range keepInstalled(slices.Clone(p.Proposals), func(line string) { said = append(said, line) }) {
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
