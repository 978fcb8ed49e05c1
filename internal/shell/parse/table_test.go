// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A line is one line of testdata: "code<TAB>text". Code is "-" if the text must be
// analyzed without an Unknown. In the files, ␤ is a newline.
type line struct{ code, text string }

func samples(t testing.TB, files ...string) []line {
	t.Helper()
	var out []line
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for row := range strings.Lines(string(data)) {
			row = strings.TrimSuffix(row, "\n")
			code, text, ok := strings.Cut(row, "\t")
			if row == "" || strings.HasPrefix(row, "#") {
				continue
			}
			if !ok {
				t.Fatalf("%s: no tab in %q", file, row)
			}
			out = append(out, line{code, strings.ReplaceAll(text, "␤", "\n")})
		}
	}
	return out
}

// TestSamples checks each text against its code, or none.
func TestSamples(t *testing.T) {
	for _, sample := range samples(t, "plain.txt", "nested.txt", "words.txt", "refused.txt") {
		codes := map[string]bool{}
		analysis := Analyze(proposal.Proposal{Run: sample.text})
		for _, unknown := range analysis.Unknowns {
			codes[unknown.Code] = true
		}
		if sample.code == "-" && len(codes) > 0 {
			t.Errorf("%q: want no Unknown, got %+v", sample.text, analysis.Unknowns)
		}
		if sample.code != "-" && !codes["parse."+sample.code] {
			t.Errorf("%q: want parse.%s, got %v", sample.text, sample.code, codes)
		}
	}
}

// TestGolden compares every command, word by word, with the reviewed golden file.
func TestGolden(t *testing.T) {
	for _, name := range []string{"plain", "nested", "words", "refused"} {
		var got strings.Builder
		for _, sample := range samples(t, name+".txt") {
			describe(&got, sample.text, Analyze(proposal.Proposal{Run: sample.text}))
		}
		golden := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", golden, diff)
		}
	}
}

func describe(out *strings.Builder, text string, analysis proposal.Analysis) {
	fmt.Fprintf(out, "== %q\n", text)
	if canonical := strings.TrimSuffix(analysis.Canonical, "\n"); canonical != text {
		fmt.Fprintf(out, "   canonical %q\n", canonical)
	}
	for _, c := range analysis.Commands {
		fmt.Fprintf(out, "   %s", describeWords(c.Args))
		list(out, "via", c.Via)
		list(out, "inside", c.Inside)
		if c.Function {
			out.WriteString(" function")
		}
		if c.StdinFrom != "" {
			fmt.Fprintf(out, " stdin=%s", c.StdinFrom)
		}
		for _, a := range c.Assigns {
			fmt.Fprintf(out, " %s=%s exported=%v", a.Name, describeWord(a.Value), a.Exported)
		}
		for _, r := range c.Redirects {
			fmt.Fprintf(out, " %d%s%s(%s)", r.FD, r.Op, describeWord(r.Target), r.Kind)
		}
		out.WriteByte('\n')
	}
	for _, u := range analysis.Unknowns {
		fmt.Fprintf(out, "   ! %s %d:%d %q\n", u.Code, u.Span.Line, u.Span.Col, spanned(analysis.Canonical, u.Span))
	}
}

func list(out *strings.Builder, name string, items []string) {
	if len(items) > 0 {
		fmt.Fprintf(out, " %s=%s", name, strings.Join(items, "/"))
	}
}

func describeWords(words []proposal.Word) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = describeWord(word)
	}
	return "[" + strings.Join(out, " ") + "]"
}

// describeWord formats a static word quoted, and a dynamic one as its prefix and ….
func describeWord(word proposal.Word) string {
	text := fmt.Sprintf("%q", word.Value)
	if !word.Static {
		text += "…"
	}
	if word.Glob {
		text += "*"
	}
	return text
}

func spanned(text string, span proposal.Span) string {
	if span.Start < 0 || span.End > len(text) || span.Start > span.End {
		return ""
	}
	return text[span.Start:span.End]
}
