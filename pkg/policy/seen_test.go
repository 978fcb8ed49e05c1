// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

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
	if programs < 350 || refusedText > 6 {
		t.Errorf("%d programs and %d refused texts are too few and too many to show anything", programs, refusedText)
	}
}
