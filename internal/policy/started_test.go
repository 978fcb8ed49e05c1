// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A started text is allowed with words that only run time knows. What it then starts is
// decided anew: denied must be refused, allowed must not.
type started struct {
	file, text      string
	denied, allowed [][]string
}

// readStarted reads testdata/corpus/started: entries as in the other directories, whose last
// lines hold an argv each: "=>" is refused when it starts, "=+" is allowed.
func readStarted(t *testing.T) []started {
	t.Helper()
	var all []started
	for _, e := range readEntries(t, "started") {
		s := started{file: e.file}
		var text []string
		for line := range strings.Lines(e.text) {
			kind, list, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			switch kind {
			case "=>":
				s.denied = append(s.denied, argv(t, list))
			case "=+":
				s.allowed = append(s.allowed, argv(t, list))
			default:
				text = append(text, line)
			}
		}
		s.text = strings.TrimSuffix(strings.Join(text, ""), "\n")
		if s.text == "" || len(s.denied) == 0 {
			t.Errorf("%s: %q says nothing of what is refused", s.file, e.text)
		}
		all = append(all, s)
	}
	return all
}

func argv(t *testing.T, list string) []string {
	t.Helper()
	var words []string
	if err := json.Unmarshal([]byte(list), &words); err != nil || len(words) == 0 {
		t.Fatalf("invalid argv %s: %v", list, err)
	}
	return words
}

// TestStartedProgramsAreDecided holds that a word that only run time knows does not
// refuse a text, and that the options it may become are refused when the program starts.
func TestStartedProgramsAreDecided(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	denied := 0
	for _, s := range readStarted(t) {
		if d := decide(t, e, s.text); d.Effect != proposal.Allow {
			t.Errorf("%s: the text is refused by %s: %s", s.file, grounds(d), s.text)
		}
		for _, words := range s.denied {
			denied++
			if d := judged(t, e, proposal.Proposal{Argv: words}); d.Effect == proposal.Allow {
				t.Errorf("%s: allowed by %v: %q", s.file, d.Rules, words)
			}
		}
		for _, words := range s.allowed {
			if d := judged(t, e, proposal.Proposal{Argv: words}); d.Effect != proposal.Allow {
				t.Errorf("%s: refused by %s: %q", s.file, grounds(d), words)
			}
		}
	}
	if denied < 60 {
		t.Errorf("only %d programs are refused when they start", denied)
	}
}
