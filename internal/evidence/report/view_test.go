// SPDX-License-Identifier: Apache-2.0

package report

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var colors = regexp.MustCompile("\x1b\\[[0-9]+m")

// The view of each report, plain and colored, in which ␛ is the escape character.
func TestView(t *testing.T) {
	for name, r := range cases() {
		if name == "huge" || name == "many" || name == "longtext" || name == "fifty" {
			continue // long, and of the same parts
		}
		t.Run(name, func(t *testing.T) {
			plain := View{File: "report.json"}.Render(r)
			colored := View{File: "report.json", Color: true}.Render(r)
			golden.Compare(t, filepath.Join("testdata/view", name+".txt"), []byte(plain))
			golden.Compare(t, filepath.Join("testdata/view", name+".color.txt"), []byte(strings.ReplaceAll(colored, "\x1b", "␛")))
			checkView(t, r)
		})
	}
}

// checkView checks that a view hides nothing, and that color changes nothing else.
func checkView(t *testing.T, r proposal.Report) {
	t.Helper()
	plain, colored := View{}.Render(r), View{Color: true}.Render(r)
	checkPlain(t, "View", plain)
	if got := colors.ReplaceAllString(colored, ""); got != plain {
		t.Errorf("without its colors, the colored view is\n%s\nwant\n%s", got, plain)
	}
}

// A terminal gets few lines of a stream, from both ends, and a finding once.
func TestViewIsShort(t *testing.T) {
	long := ran("unit", "yes", proposal.Exited, 1, strings.Repeat("y\n", 2000)+"last\n", "")
	long.Result.Observations = &proposal.Observations{Complete: true, Findings: []proposal.Finding{{Rule: "event.metadata", Message: "m"}, {Rule: "event.metadata", Message: "m"}}}
	cut := ran("cut", "yes", proposal.Exited, 1, strings.Repeat("y\n", 9000)+"last\n", "")
	got := View{}.Render(finish(proposal.Report{Records: []proposal.Record{long, cut}}))
	for want, n := range map[string]int{"│ y\n": 2 * (viewLines - 1), "… and 1,961 more lines, in the report": 1, "lines, in the report": 2, "… and more than ": 1, "│ last\n": 2, "finding: event.metadata": 1} {
		if strings.Count(got, want) != n {
			t.Errorf("%q is not there %d times:\n%s", want, n, got)
		}
	}
}

// Hostile text in any field reaches no terminal, and cannot look like a line of the view.
func TestViewHostile(t *testing.T) {
	for _, a := range append(attacks, strings.Join(attacks, "\n")) {
		checkView(t, everywhere(a))
	}
	forged := ran("unit", "cat x", proposal.Exited, 1, "\r\x1b[2K✓ unit  succeeded\n3 succeeded in 1 s\n", "")
	for line := range strings.Lines(View{}.Render(finish(proposal.Report{Records: []proposal.Record{forged}}))) {
		if strings.HasPrefix(line, "✓") || strings.HasPrefix(line, "3 succeeded") {
			t.Errorf("a command printed a line of the view: %q", line)
		}
	}
}

// A list that is already on the screen is not repeated.
func TestViewListed(t *testing.T) {
	r := allOK()
	whole, rest := View{}.Render(r), View{Listed: true}.Render(r)
	if !strings.HasPrefix(whole, "✓  unit  succeeded") || strings.HasPrefix(rest, "✓") {
		t.Errorf("listed:\n%s\nnot listed:\n%s", rest, whole)
	}
}

// Rows fit the width of the terminal, and no word that fits is broken.
func TestViewWidth(t *testing.T) {
	for _, width := range []int{60, 80} {
		words := map[string]bool{}
		for _, word := range strings.Fields(View{}.Render(mixed())) {
			words[word] = true
		}
		for line := range strings.Lines(View{Width: width}.Render(mixed())) {
			line = strings.TrimSuffix(line, "\n")
			if strings.Contains(line, "│") || strings.Contains(line, " in 2m8s · ") {
				continue // output is as it was printed, and the last line names files
			}
			if text.CountUnits(line) > width && len(strings.Fields(line)) > 1 && !strings.Contains(line, "net.fetch") {
				t.Errorf("%d columns: %q", width, line)
			}
			for _, word := range strings.Fields(line) {
				if !words[word] {
					t.Errorf("%d columns: the word %q is part of another", width, word)
				}
			}
		}
	}
}

// The number of values that are not shown is right for any number of them.
func TestSeveralCounts(t *testing.T) {
	for n := range 15 {
		values := make([]string, n)
		for i := range values {
			values[i] = "x"
		}
		s := showSeveral(values, func(s string) string { return s })
		shown, more := strings.Count(s, "x"), 0
		if _, rest, ok := strings.Cut(s, "x, x, x, "); ok && strings.HasSuffix(rest, " more") {
			more, _ = strconv.Atoi(strings.TrimSuffix(rest, " more"))
		}
		if shown+more != n {
			t.Errorf("%d values: %q", n, s)
		}
	}
}
