// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestForms reads proposals that are not shell text.
func TestForms(t *testing.T) {
	tests := []struct {
		name      string
		proposal  proposal.Proposal
		canonical string
		argvs     [][]string
		codes     []string
	}{
		{"argv", proposal.Proposal{Argv: []string{"go", "test", "a b"}}, "go test 'a b'", [][]string{{"go", "test", "a b"}}, nil},
		{"argv has no builtins to expand", proposal.Proposal{Argv: []string{"echo", "$(id)", "*"}}, "echo '$(id)' '*'", [][]string{{"echo", "$(id)", "*"}}, nil},
		{"argv with a shell", proposal.Proposal{Argv: []string{"bash", "-c", "id; p"}}, "bash -c 'id; p'",
			[][]string{{"bash", "-c", "id; p"}, {"id"}, {"p"}}, nil},
		{"argv with wrappers", proposal.Proposal{Argv: []string{"timeout", "5", "env", "A=1", "sh", "-c", "id"}}, "timeout 5 env 'A=1' sh -c id",
			[][]string{{"timeout", "5", "env", "A=1", "sh", "-c", "id"}, {"env", "A=1", "sh", "-c", "id"}, {"sh", "-c", "id"}, {"id"}}, nil},
		{"argv with eval inside", proposal.Proposal{Argv: []string{"sh", "-c", "eval x"}}, "sh -c 'eval x'",
			[][]string{{"sh", "-c", "eval x"}, {"eval", "x"}}, []string{"parse.eval"}},
		{"argv with a shell and no script", proposal.Proposal{Argv: []string{"bash"}}, "bash", [][]string{{"bash"}}, []string{"parse.shell-stdin"}},
		{"argv that names a builtin", proposal.Proposal{Argv: []string{"command", "id"}}, "command id", [][]string{{"command", "id"}, {"id"}}, nil},
		{"test as a program", proposal.Proposal{Argv: []string{"test", "-v", "a[$(id)]"}}, "test -v 'a[$(id)]'", [][]string{{"test", "-v", "a[$(id)]"}}, nil},
		{"argv with a control character", proposal.Proposal{Argv: []string{"p", "a\rb"}}, "", nil, []string{"parse.control-character"}},
		{"argv with an empty program", proposal.Proposal{Argv: []string{""}}, "''", [][]string{{""}}, []string{"parse.empty-program"}},
		{"python", proposal.Proposal{Code: "print(1)\n", Language: "python"}, "python3 -c $'print(1)\\n'", [][]string{{"python3", "-c", "print(1)\n"}}, nil},
		{"javascript", proposal.Proposal{Code: "f(`x`)", Language: "javascript"}, "node -e 'f(`x`)'", [][]string{{"node", "-e", "f(`x`)"}}, nil},
		{"bash", proposal.Proposal{Code: "id # c\np", Language: "bash"}, "id\np\n", [][]string{{"id"}, {"p"}}, nil},
		{"sh", proposal.Proposal{Code: "id", Language: "sh"}, "id\n", [][]string{{"id"}}, nil},
		{"an unknown language", proposal.Proposal{Code: "id", Language: "perl"}, "", nil, []string{"parse.language"}},
		{"nothing", proposal.Proposal{}, "", nil, []string{"parse.empty"}},
		{"an environment that bash reads", proposal.Proposal{Run: "p", Env: map[string]string{"BASH_ENV": "x"}}, "p\n", [][]string{{"p"}}, []string{"parse.shell-variable"}},
		{"an environment that is evaluated", proposal.Proposal{Run: "p $((x))", Env: map[string]string{"x": "a[$(id)]"}}, "p $((x))\n",
			[][]string{{"p", ""}}, []string{"parse.hidden-evaluation"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			analysis := Analyze(test.proposal)
			var argvs [][]string
			for _, command := range analysis.Commands {
				argvs = append(argvs, command.Argv())
			}
			var codes []string
			for _, unknown := range analysis.Unknowns {
				codes = append(codes, unknown.Code)
			}
			if diff := cmp.Diff(test.canonical, analysis.Canonical); diff != "" {
				t.Errorf("canonical (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.argvs, argvs); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.codes, codes); diff != "" {
				t.Errorf("unknowns (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCaps checks texts that would cost too much or hide something from the reader.
func TestCaps(t *testing.T) {
	deep := func(open, closing string, n int) string {
		return strings.Repeat(open, n) + "p" + strings.Repeat(closing, n)
	}
	tests := []struct{ name, text, code string }{
		{"too long", "p " + strings.Repeat("x", maxText), "too-long"},
		{"nothing", "", "empty"},
		{"only a comment", "# p", "empty"},
		{"only blanks", " \n\t\n", "empty"},
		{"too many commands", strings.Repeat("p\n", maxCommands+1), "too-many"},
		{"substitutions", deep("p $(", ")", 20), "too-deep"},
		{"substitutions beyond any stack", strings.Repeat("$(", 8000), "too-deep"},
		{"subshells", deep("( ", ")", 100), "too-deep"},
		{"subshells beyond any stack", strings.Repeat("(", 16000), "too-deep"},
		{"groups", deep("{ ", ";}", 100), "too-deep"},
		{"defaults", "p " + strings.Repeat("${x:-", 100) + strings.Repeat("}", 100), "too-deep"},
		{"defaults beyond any stack", "p " + strings.Repeat("${x:-", 3000), "too-deep"},
		{"negations", strings.Repeat("! ", 8000) + "p", "too-deep"},
		{"lists", strings.Repeat("p &&", 4000) + "p", "too-deep"},
		{"arithmetic", "((" + strings.Repeat("-", 8000) + "1))", "too-deep"},
		{"arithmetic parentheses", "p $((" + deep("(", ")", 100) + "))", "too-deep"},
		{"ifs", strings.Repeat("if ", 5000), "too-deep"},
		{"times", strings.Repeat("time ", 3200), "too-deep"},
		{"nested shells", nestedShells(10), "too-deep"},
		{"bytes that are not UTF-8", "p \xff", "invalid-utf8"},
		{"carriage return", "p\r\nq", "control-character"},
		{"NUL", "p\x00q", "control-character"},
		{"escape", "p \x1b[0m", "control-character"},
		{"delete", "p \x7f", "control-character"},
		{"C1 control", "p \u0085q", "invisible-character"},
		{"no-break space", "p\u00a0q", "invisible-character"},
		{"zero width space", "p\u200bq", "invisible-character"},
		{"right-to-left override", "p \u202eq", "invisible-character"},
		{"isolate", "p \u2066q", "invisible-character"},
		{"line separator", "p \u2028q", "invisible-character"},
		{"ideographic space", "p\u3000q", "invisible-character"},
		{"byte order mark", "\ufeffp", "invisible-character"},
		{"tag characters", "p \U000e0041", "invisible-character"},
		{"hangul filler", "p\u3164q", "invisible-character"},
		{"private use", "p \ue000", "invisible-character"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			analysis := Analyze(proposal.Proposal{Run: test.text})
			found := false
			for _, unknown := range analysis.Unknowns {
				found = found || unknown.Code == "parse."+test.code
			}
			if !found {
				t.Errorf("want parse.%s, got %+v", test.code, analysis.Unknowns)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// nestedShells returns sh -c "sh -c \"…\"", n levels deep, quoted so that it stays
// small.
func nestedShells(n int) string { return strings.Repeat("nice timeout 5 ", n) + "p" }
