// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The directories hostile and benign were written apart from the rules and measured them;
// since then rules have been fixed by what they had allowed, so that they now
// guard against going back and no longer measure. An entry
// is fixed only if its decision was wrong, never to make a rule look better.
const measureDir = "../../testdata/corpus"

// Fewer entries than this mean that the corpus was cut or not found.
const (
	minHostile = 3000
	minBenign  = 900
)

// An entry is one text and the file that holds it.
type entry struct {
	file string
	text string
}

// readEntries reads all texts of one kind: separated by lines "---", each without
// the lines "##" it begins with and without the line feeds around it. Nothing else
// is trimmed, since a carriage return or a blank may be the point.
func readEntries(t testing.TB, kind string) []entry {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(measureDir, kind, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq("\n"+string(content), "\n---\n") {
			if text := withoutNotes(part); text != "" {
				entries = append(entries, entry{filepath.Base(path), text})
			}
		}
	}
	return entries
}

func withoutNotes(part string) string {
	part = strings.Trim(part, "\n")
	for strings.HasPrefix(part, "##") {
		_, part, _ = strings.Cut(part, "\n")
		part = strings.TrimLeft(part, "\n")
	}
	return part
}

// measure judges every entry as a plan's run field.
func measure(t *testing.T, entries []entry, judged func(entry, proposal.Decision)) {
	t.Helper()
	e, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range sample.EveryNth(t, entries, 1, 10) {
		p := proposal.Proposal{ID: "corpus", Run: c.text}
		d, err := e.Decide(t.Context(), p, parse.Analyze(p))
		if err != nil {
			t.Errorf("%s: no decision: %v: %q", c.file, err, c.text)
			continue
		}
		judged(c, d)
	}
}

// TestMeasureHostile holds that no text which hides a program, reaches out or
// leaves the workspace is allowed. To ask a person is not to let it through.
func TestMeasureHostile(t *testing.T) {
	lanetest.SkipShort(t)
	entries := readEntries(t, "hostile")
	if len(entries) < minHostile {
		t.Fatalf("only %d hostile entries, want at least %d", len(entries), minHostile)
	}
	allowed, advised := 0, map[string]string{}
	measure(t, entries, func(c entry, d proposal.Decision) {
		maps.Copy(advised, advisedIn(d))
		if d.Effect == proposal.Allow {
			allowed++
			t.Errorf("%s: allowed by %s: %q", c.file, strings.Join(d.Rules, " "), c.text)
		}
	})
	checkAdvised(t, advised, 20)
	t.Logf("%d of %d hostile entries let through", allowed, len(entries))
}

// TestMeasureBenign holds that the policy does not get in the way: what reviewers
// really run is allowed, except for one command in fifty.
func TestMeasureBenign(t *testing.T) {
	lanetest.SkipShort(t)
	entries := readEntries(t, "benign")
	if len(entries) < minBenign {
		t.Fatalf("only %d benign entries, want at least %d", len(entries), minBenign)
	}
	refused, advised := 0, map[string]string{}
	measure(t, entries, func(c entry, d proposal.Decision) {
		maps.Copy(advised, advisedIn(d))
		if d.Effect != proposal.Allow {
			refused++
			t.Logf("%s: %v by %s: %q", c.file, d.Effect, grounds(d), c.text)
		}
	})
	checkAdvised(t, advised, 0)
	t.Logf("%d of %d benign entries refused", refused, len(entries))
	if refused*50 > len(entries) {
		t.Errorf("%d of %d benign entries refused, want at most one in fifty", refused, len(entries))
	}
}

// grounds are the rules that deny, with the text that each is about.
func grounds(d proposal.Decision) string {
	var all []string
	for _, r := range d.Reasons {
		all = append(all, r.Rule+"("+r.Text+")")
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}
