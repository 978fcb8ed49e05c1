// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

type listed struct{ language, want, text string }

// samples reads a list of snippets.
func samples(t testing.TB, name string) []listed {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for part := range strings.SplitSeq("\n"+string(text), "\n== ") {
		head, body, _ := strings.Cut(part, "\n")
		if language, want, _ := strings.Cut(head, " "); strings.HasPrefix(head, "python") || strings.HasPrefix(head, "javascript") || strings.HasPrefix(head, "typescript") {
			all = append(all, listed{language, want, body})
		}
	}
	if len(all) < 60 {
		t.Fatalf("%s holds only %d snippets", name, len(all))
	}
	return all
}

func codes(s proposal.Snippet) []string {
	list := []string{}
	for _, f := range s.Findings {
		list = append(list, f.Code)
	}
	return list
}

// harmless are findings that ordinary snippets have. They are reported; a policy
// refuses them only if it chooses to.
var harmless = []string{"dynamic-import", "dynamic-attribute", "remote-host"}

func TestOrdinary(t *testing.T) {
	lanetest.SkipShort(t)
	for _, c := range samples(t, "ordinary.txt") {
		s := Analyze(c.language, c.text)
		for _, f := range s.Findings {
			if !slices.Contains(harmless, f.Code) {
				t.Errorf("%s at %d:%d in\n%s", f.Code, f.Span.Line, f.Span.Col, c.text)
			}
		}
		if !s.Complete {
			t.Errorf("not complete:\n%s", c.text)
		}
	}
}

func TestHostile(t *testing.T) {
	lanetest.SkipShort(t)
	missed := 0
	for _, c := range samples(t, "hostile.txt") {
		s := Analyze(c.language, c.text)
		switch {
		case c.want == "missed":
			missed++
			if len(s.Findings) > 0 {
				t.Errorf("no longer missed: %v in\n%s", codes(s), c.text)
			}
		case !slices.Contains(codes(s), c.want):
			t.Errorf("found %v, want %s in\n%s\n%v", codes(s), c.want, c.text, s.Imports)
		}
	}
	t.Logf("%d known to be missed", missed)
}
