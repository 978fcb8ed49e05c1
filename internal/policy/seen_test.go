// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A seen command is one that was run, with the programs that really began.
type seen struct {
	text     string
	programs []proposal.Exec
}

func readSeen(t *testing.T) []seen {
	t.Helper()
	content, err := os.ReadFile("testdata/seen.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []seen
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, seen{text: text})
			continue
		}
		if strings.HasPrefix(line, "##") {
			continue
		}
		x := proposal.Exec{Command: "t", Digest: "sha256:00", Cwd: "/workspace", Pid: 7, Parent: 5, ParentPath: "/usr/bin/bash"}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all[len(all)-1].programs = append(all[len(all)-1].programs, x)
	}
	return all
}

// TestSeenProgramsBegin holds the two judgements together: what the text of a command
// was allowed for may also begin.
func TestSeenProgramsBegin(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	programs, refusedText := 0, 0
	for _, s := range readSeen(t) {
		d := decide(t, e, s.text)
		if d.Effect != proposal.Allow {
			refusedText++
			t.Logf("%q: %s", s.text, grounds(d))
			continue
		}
		for _, x := range s.programs {
			programs++
			x.Grants = d.Grant.Exec
			if got := judge(t, e, x); got.Effect != proposal.Allow {
				t.Errorf("%q may not start %s (%s): %+v", s.text, x.Path, x.Layer, got.Reason)
			}
		}
	}
	t.Logf("%d programs, %d commands refused by their text", programs, refusedText)
	if programs < 350 || refusedText > 0 {
		t.Errorf("%d programs with %d refused texts: too few, or too many, to show anything", programs, refusedText)
	}
}

// TestNamedProgramsBegin holds the same for each program that a benign text names,
// wherever it would lie.
func TestNamedProgramsBegin(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	programs, entries := 0, sample.EveryNth(t, readEntries(t, "benign"), 4, 10)
	for _, entry := range entries {
		p := proposal.Proposal{ID: "corpus", Run: entry.text}
		a := parse.Analyze(p)
		d, err := e.Decide(t.Context(), p, a)
		if err != nil || d.Effect != proposal.Allow {
			continue // measured elsewhere
		}
		for _, c := range a.Commands {
			if c.Program == "" || c.Function {
				continue
			}
			programs++
			x := named(c.Program, c.Argv())
			x.Grants = d.Grant.Exec
			if got := judge(t, e, x); got.Effect != proposal.Allow {
				t.Errorf("%q may not start %s (%s): %s", entry.text, x.Path, x.Layer, got.Reason.Rule)
			}
		}
	}
	t.Logf("%d programs", programs)
	if programs < len(entries) {
		t.Errorf("only %d programs", programs)
	}
}

// named is the exec of a program as a text names it.
func named(program string, argv []string) proposal.Exec {
	x := proposal.Exec{Command: "corpus", Argv: argv, Cwd: "/workspace", Digest: "sha256:00", ParentPath: "/usr/bin/bash", Pid: 7, Parent: 5}
	switch {
	case !strings.Contains(program, "/"):
		x.Path, x.Layer = "/usr/bin/"+program, proposal.LayerRootfs
	case strings.HasPrefix(program, "/workspace/"):
		x.Path, x.Layer = program, proposal.LayerWorkspace
	case strings.HasPrefix(program, "/tmp/"):
		x.Path, x.Layer = program, proposal.LayerWritten
	case strings.HasPrefix(program, "/"):
		x.Path, x.Layer = program, proposal.LayerRootfs
	default:
		x.Path, x.Layer = path.Join("/workspace", program), proposal.LayerWorkspace
	}
	return x
}
