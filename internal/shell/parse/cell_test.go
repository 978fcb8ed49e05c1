// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// after analyzes code after earlier cells, each as it would have run.
func after(t *testing.T, code string, cells ...string) proposal.Analysis {
	t.Helper()
	var earlier *proposal.Earlier
	for i, text := range append(cells, code) {
		a := Analyze(proposal.Proposal{Language: "bash", Code: text, Context: "main", Earlier: earlier})
		if i == len(cells) {
			return a
		}
		if len(a.Unknowns) > 0 {
			t.Fatalf("%q: %+v", text, a.Unknowns)
		}
		earlier = &proposal.Earlier{Cells: i + 1, Text: a.Canonical}
	}
	panic("no cell")
}

// What the earlier cells left decides what the words of the next one mean.
func TestCellMeans(t *testing.T) {
	for name, c := range map[string]struct {
		cells []string
		code  string
		own   string // how the new part is printed
		want  string // the Unknowns, or the last command's words
	}{
		"a function":             {[]string{"f() { curl x; }"}, "f", "f\n", "function f"},
		"a variable":             {[]string{"x=y"}, "rm $x", "rm $x\n", "rm y"},
		"an option":              {[]string{"set -- a b"}, "echo \"$1\"", "echo \"$1\"\n", "echo "},
		"called before":          {[]string{"deploy"}, "deploy() { true; }", "deploy() { true; }\n", "parse.function-order"},
		"a comment first":        {[]string{"cd /tmp"}, "# go\n\n\nls # all\n", "ls\n", "ls"},
		"a here-document":        {[]string{"cat <<E\na\n\nE"}, "cat <<E\nb\nE", "cat <<E\nb\nE\n", "cat"},
		"in the background":      {[]string{"sleep 1 &"}, "wait; ls", "wait\nls\n", "ls"},
		"half a loop":            {[]string{"true"}, "done", "", "parse.syntax"},
		"half a here-document":   {[]string{"true"}, "cat <<E", "", "parse.syntax"},
		"half a quote":           {[]string{"true"}, "echo 'a", "", "parse.syntax"},
		"nothing":                {[]string{"true"}, "# only a comment", "", "parse.empty"},
		"an integer's value":     {[]string{"declare -i n"}, "n=$(cat f)", "n=$(cat f)\n", "parse.hidden-evaluation"},
		"a value from a file":    {[]string{"x=$(cat f)"}, "echo $((x))", "echo $((x))\n", "parse.hidden-evaluation"},
		"too long together":      {[]string{": " + strings.Repeat("x", maxText/2)}, ": " + strings.Repeat("y", maxText/2), "", "parse.too-long"},
		"too many together":      {[]string{strings.Repeat("p\n", maxCommands-1)}, "q\nq", "q\nq\n", "parse.too-many"},
		"a control character":    {[]string{"true"}, "echo \x01", "", "parse.control-character"},
		"a statement's own tail": {[]string{"echo a"}, "&& rm b", "", "parse.syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			a := after(t, c.code, c.cells...)
			var got []string
			for _, u := range a.Unknowns {
				got = append(got, u.Code)
			}
			if last := len(a.Commands) - 1; len(got) == 0 {
				if a.Commands[last].Function {
					got = append(got, "function")
				}
				got = append(got, a.Commands[last].Argv()...)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.own != "" && a.Own() != c.own {
				t.Errorf("the new part is %q, want %q", a.Own(), c.own)
			}
		})
	}
}

// The messages about both texts together name the way out.
func TestCellTooLong(t *testing.T) {
	for _, u := range []proposal.Unknown{
		after(t, ": "+strings.Repeat("y", maxText/2), ": "+strings.Repeat("x", maxText/2)).Unknowns[0],
		after(t, "q\nq", strings.Repeat("p\n", maxCommands-1)).Unknowns[0],
	} {
		if !strings.Contains(u.Message, "earlier cells") || !strings.Contains(u.Hint, "new context") {
			t.Errorf("got %+v", u)
		}
	}
}

// A position of a cell that cannot be read is in that cell.
func TestCellPosition(t *testing.T) {
	u := after(t, "ls\nfi", "true", "true").Unknowns[0]
	if u.Span.Line != 2 || u.Span.Col != 1 {
		t.Errorf("got %+v", u)
	}
}

// A text that was accepted is accepted as an earlier cell, and changes nothing of how a later
// cell is printed.
func TestCorpusCells(t *testing.T) {
	for _, text := range sample.EveryNth(t, sample.ReadCorpus(t, "../../../testdata/corpus/benign.txt"), 200, 2000) {
		a := Analyze(proposal.Proposal{Language: "bash", Code: text})
		if len(a.Unknowns) > 0 || len(a.Canonical) > maxText-10 || len(a.Commands) >= maxCommands {
			continue
		}
		b := after(t, "ls -l", text)
		if len(b.Unknowns) > 0 || b.Own() != "ls -l\n" || len(b.Commands) != len(a.Commands)+1 {
			t.Errorf("%q: %+v, own %q", text, b.Unknowns, b.Own())
		}
	}
}
