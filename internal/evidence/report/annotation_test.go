// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// outputs are outputs of tools. All except ruff's, mypy's, flake8's and clang's
// come from a run of the tool (go 1.26, gcc 12, pytest 7, eslint 9, tsc 5, rustc
// 1.9x, shellcheck 0.9); those four follow the tools' documentation.
var outputs = []struct{ name, out, want string }{
	{"go build", "# example.org/demo\n./bad.go:5:48: undefined: y\n", "bad.go:5:48 failure go: undefined: y"},
	{"go vet", "# example.org/demo\nvet: ./bad.go:5:28: fmt.Printf format %d has arg \"x\" of wrong type string\n", `bad.go:5:28 failure go: fmt.Printf format %d has arg "x" of wrong type string`},
	{"go test", `--- FAIL: TestMedian (0.00s)
    --- FAIL: TestMedian/even (0.00s)
        stats_test.go:7: trying four
        stats_test.go:9: Median([1 2 3 4]) = 3, want 2.5
FAIL
FAIL	example.org/demo/stats	0.003s
FAIL
`, `stats/stats_test.go:9:0 failure go test: TestMedian/even: Median([1 2 3 4]) = 3, want 2.5
stats/stats_test.go:7:0 notice go test: TestMedian/even: trying four`},
	{"go test -v", `=== RUN   TestMedian
=== RUN   TestMedian/even
    stats_test.go:9: Median([1 2 3 4]) = 3, want 2.5
--- FAIL: TestMedian (0.00s)
    --- FAIL: TestMedian/even (0.00s)
=== RUN   TestFine
    stats_test.go:14: all is well
--- PASS: TestFine (0.00s)
FAIL
FAIL	example.org/demo/stats	0.118s
`, "stats/stats_test.go:9:0 failure go test: TestMedian/even: Median([1 2 3 4]) = 3, want 2.5"},
	{"go test of another package", "--- FAIL: TestX (0.00s)\n    stats_test.go:9: no\nFAIL\nFAIL\texample.org/demo/other\t0.003s\n", ""},
	{"go test cut off", "=== RUN   TestX\n    stats_test.go:9: perhaps\n", "stats/stats_test.go:9:0 warning go test: TestX: perhaps"},
	{"go test with one name twice", "--- FAIL: TestX (0.00s)\n    twin_test.go:3: which\n", ""},
	{"go test with the package of one", "--- FAIL: TestX (0.00s)\n    twin_test.go:3: this\nFAIL\texample.org/demo/a/b\t0.003s\n", "a/b/twin_test.go:3:0 failure go test: TestX: this"},
	{"go panic", `--- FAIL: TestNone (0.00s)
panic: runtime error: index out of range [0] with length 0 [recovered, repanicked]

goroutine 7 [running]:
testing.tRunner.func1.2({0x574440, 0x22c6276a0078})
	/usr/local/go/src/testing/testing.go:1974 +0x232
panic({0x574440?, 0x22c6276a0078?})
	/usr/local/go/src/runtime/panic.go:860 +0x13a
example.org/demo/stats.Median(...)
	/workspace/stats/stats.go:4
example.org/demo/stats.TestNone(0x22c62769e6c8?)
	/workspace/stats/stats_test.go:16 +0xa
FAIL	example.org/demo/stats	0.021s
`, "stats/stats.go:4:0 failure go panic: TestNone: panic: runtime error: index out of range [0] with length 0"},
	{"gcc", `a.c: In function ‘main’:
a.c:2:34: warning: format ‘%s’ expects argument of type ‘char *’, but argument 2 has type ‘int’ [-Wformat=]
    2 | int main(void) { int x; printf("%s\n", 5); retrun 0; }
a.c:2:44: error: ‘retrun’ undeclared (first use in this function)
a.c:2:44: note: each undeclared identifier is reported only once for each function it appears in
`, `a.c:2:44 failure compiler: ‘retrun’ undeclared (first use in this function)
a.c:2:34 warning compiler: format ‘%s’ expects argument of type ‘char *’, but argument 2 has type ‘int’ [-Wformat=]
a.c:2:44 notice compiler: each undeclared identifier is reported only once for each function it appears in`},
	{"clang", "a.c:1:10: fatal error: 'x.h' file not found\n", "a.c:1:10 failure compiler: 'x.h' file not found"},
	{"pytest", `    def test_eq():
>       assert [1, 2] == [1, 3]
E       assert [1, 2] == [1, 3]
E         At index 1 diff: 2 != 3

tests/test_csv.py:7: AssertionError
___________________________________ test_err ___________________________________
>       helper("row")

tests/test_csv.py:10: 
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ 
>       raise ValueError("bad " + x)
E       ValueError: bad row

tests/test_csv.py:4: ValueError
FAILED tests/test_csv.py::test_eq - assert [1, 2] == [1, 3]
`, `tests/test_csv.py:4:0 failure pytest: test_err: ValueError: bad row
tests/test_csv.py:7:0 warning pytest: assert [1, 2] == [1, 3]`},
	{"pytest --tb=short", `tests/test_csv.py:7: in test_eq
    assert [1, 2] == [1, 3]
E   assert [1, 2] == [1, 3]
E     At index 1 diff: 2 != 3
tests/test_csv.py:10: in test_err
    helper("row")
tests/test_csv.py:4: in helper
    raise ValueError("bad " + x)
E   ValueError: bad row
`, `tests/test_csv.py:7:0 failure pytest: assert [1, 2] == [1, 3]
tests/test_csv.py:4:0 failure pytest: ValueError: bad row`},
	{"pytest --tb=line", "/workspace/tests/test_csv.py:7: assert [1, 2] == [1, 3]\n/workspace/tests/test_csv.py:4: ValueError: bad row\n", `tests/test_csv.py:7:0 failure pytest: assert [1, 2] == [1, 3]
tests/test_csv.py:4:0 failure pytest: ValueError: bad row`},
	{"unittest", `Traceback (most recent call last):
  File "/workspace/tests/test_csv.py", line 4, in test_a
    self.assertEqual(1, 2)
  File "/usr/lib/python3.11/unittest/case.py", line 873, in assertEqual
    assertion_func(first, second, msg=msg)
AssertionError: 1 != 2
`, "tests/test_csv.py:4:0 failure python: AssertionError: 1 != 2"},
	{"python syntax", "  File \"/workspace/app.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n", "app.py:1:0 failure python: SyntaxError: invalid syntax"},
	{"eslint", `
/workspace/src/a.js
  1:7   warning  'unused' is assigned a value but never used  no-unused-vars
  3:10  error    'y' is not defined                           no-undef
  3:15  error    Missing semicolon                            semi

✖ 3 problems (2 errors, 1 warning)
`, `src/a.js:3:10 failure eslint: 'y' is not defined (no-undef)
src/a.js:3:15 failure eslint: Missing semicolon (semi)
src/a.js:1:7 warning eslint: 'unused' is assigned a value but never used (no-unused-vars)`},
	{"eslint unix", "/workspace/src/a.js:3:10: 'y' is not defined. [Error/no-undef]\n/workspace/src/a.js:9:1: Parsing error. [Error]\n\n2 problems\n", `src/a.js:3:10 failure eslint: 'y' is not defined.
src/a.js:9:1 failure eslint: Parsing error.`},
	{"tsc", "src/b.ts(2,3): error TS2322: Type 'string' is not assignable to type 'number'.\n", "src/b.ts:2:3 failure tsc: TS2322: Type 'string' is not assignable to type 'number'."},
	{"tsc --pretty", "\x1b[96msrc/b.ts\x1b[0m:\x1b[93m2\x1b[0m:\x1b[93m3\x1b[0m - \x1b[91merror\x1b[0m\x1b[90m TS2322: \x1b[0mType 'string' is not assignable to type 'number'.\n", "src/b.ts:2:3 failure tsc: TS2322: Type 'string' is not assignable to type 'number'."},
	{"ruff", "F401 [*] `os` imported but unused\n --> app.py:1:8\n  |\n1 | import os\n  |        ^^\nhelp: Remove unused import: `os`\n\nFound 1 error.\n", "app.py:1:8 failure ruff: F401 `os` imported but unused"},
	{"ruff concise", "app.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n", "app.py:1:8 failure python: F401 [*] `os` imported but unused"},
	{"flake8", "./app.py:4:1: E302 expected 2 blank lines, found 1\n", "app.py:4:1 failure python: E302 expected 2 blank lines, found 1"},
	{"mypy", "app.py:3: error: Incompatible return value type (got \"str\", expected \"int\")  [return-value]\n", `app.py:3:0 failure mypy: Incompatible return value type (got "str", expected "int")  [return-value]`},
	{"rustc", "error[E0308]: mismatched types\n --> lib.rs:1:37\n  |\n\nwarning: unused variable: `x`\n  --> lib.rs:12:9\n", "lib.rs:1:37 failure rustc: mismatched types\nlib.rs:12:9 warning rustc: unused variable: `x`"},
	{"rust test", "---- t stdout ----\n\nthread 't' (22416) panicked at lib.rs:2:18:\nassertion `left == right` failed\n  left: 1\n", "lib.rs:2:18 failure cargo test: t: assertion `left == right` failed (got 1)"},
	{"shellcheck -f gcc", "x.sh:2:6: note: Double quote to prevent globbing and word splitting. [SC2086]\n", "x.sh:2:6 notice shellcheck: Double quote to prevent globbing and word splitting. [SC2086]"},
	{"carriage returns", "50%\rx.sh:2:6: error: no\r\n", "x.sh:2:6 failure compiler: no"},
	{"prose with a place", "see bad.go:5 and app.py:3 for more\n", ""},
	{"not of the pull request", "other.go:5:1: undefined: y\n/etc/passwd:1:1: error: x\n../bad.go:1:1: x\n/workspace/../bad.go:1:1: x\nsrc/../../bad.go:1:1: x\n", ""},
	{"said twice", "bad.go:5:48: undefined: y\nbad.go:5:48: undefined: y\n", "bad.go:5:48 failure go: undefined: y"},
	{"no line", "bad.go:0:1: x\nbad.go:99999999:1: x\n", ""},
	{"workflow command", "bad.go:5:1: ::error file=x::\x1b[2J forged\u202e\n", "bad.go:5:1 failure go: : :error file=x:: forged⟨U+202E⟩"},
}

var prFiles = []string{
	"bad.go", "stats/stats.go", "stats/stats_test.go", "a/b/twin_test.go", "a/c/twin_test.go", "a.c", "tests/test_csv.py", "app.py",
	"src/a.js", "src/b.ts", "lib.rs", "x.sh", "../evil.go", "/etc/passwd", "",
}

func shownAnnotations(list []Annotation) string {
	var lines []string
	for _, a := range list {
		lines = append(lines, fmt.Sprintf("%s:%d:%d %s %s: %s", a.Path, a.Line, a.Col, a.Level, strings.TrimSuffix(a.Title, " · id"), a.Message))
	}
	return strings.Join(lines, "\n")
}

func TestAnnotations(t *testing.T) {
	for _, tt := range outputs {
		t.Run(tt.name, func(t *testing.T) {
			for _, streams := range [][2]string{{tt.out, ""}, {"", tt.out}} {
				r := finish(proposal.Report{Records: []proposal.Record{ran("id", "x", proposal.Exited, 1, streams[0], streams[1])}})
				list, more := Annotations(r, prFiles)
				if diff := cmp.Diff(tt.want, shownAnnotations(list)); diff != "" || more != 0 {
					t.Errorf("%d more; (-want +got):\n%s", more, diff)
				}
			}
		})
	}
}

func TestAnnotationsInFolder(t *testing.T) {
	rec := ran("id", "go vet .", proposal.Exited, 1, "./stats.go:3:1: in the folder\nbad.go:4:1: from the root\n/workspace/bad.go:5:1: named whole\n../bad.go:6:1: above\n", "")
	rec.Proposal.Cwd = "stats"
	list, _ := Annotations(finish(proposal.Report{Records: []proposal.Record{rec}}), prFiles)
	want := "stats/stats.go:3:1 failure go: in the folder\nbad.go:4:1 failure go: from the root\nbad.go:5:1 failure go: named whole\nbad.go:6:1 failure go: above"
	if diff := cmp.Diff(want, shownAnnotations(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnnotationsInWorkingDirectory: a proposal's directory is below the run's.
func TestAnnotationsInWorkingDirectory(t *testing.T) {
	rec := ran("id", "go vet .", proposal.Exited, 1, "twin_test.go:3:1: x\n", "")
	rec.Proposal.Cwd = "b"
	r := finish(proposal.Report{Records: []proposal.Record{rec}})
	r.Run.Cwd = "a"
	if list, _ := Annotations(r, prFiles); len(list) != 1 || list[0].Path != "a/b/twin_test.go" {
		t.Errorf("got %q", shownAnnotations(list))
	}
}

// TestAnnotationsOfSuccess: findings of a tool that succeeds are not failures.
func TestAnnotationsOfSuccess(t *testing.T) {
	r := finish(proposal.Report{Records: []proposal.Record{
		ran("cat", "cat notes", proposal.Exited, 0, "bad.go:1:1: error: forged\n", ""),
		ran("vet", "go vet", proposal.Exited, 1, "bad.go:2:1: true\n", ""),
		refused("no", "x", proposal.Deny),
	}})
	list, _ := Annotations(r, prFiles)
	want := "bad.go:2:1 failure go · vet: true\nbad.go:1:1 warning compiler · cat: forged"
	if diff := cmp.Diff(want, shownAnnotations(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnnotationsAreBounded(t *testing.T) {
	var flood strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&flood, "bad.go:%d:1: warning: w%d\n", i+1, i)
	}
	flood.WriteString("bad.go:7:1: error: the one that counts\n" + "bad.go:8:1: " + strings.Repeat("x", 1<<20) + "\n")
	rec := ran("id", "x", proposal.Exited, 1, flood.String()[:400<<10], "bad.go:7:1: error: the one that counts\n")
	list, more := Annotations(finish(proposal.Report{Records: []proposal.Record{rec}}), prFiles)
	if len(list) != MaxAnnotations || more < maxFound-MaxAnnotations {
		t.Errorf("%d annotations and %d more", len(list), more)
	}
	cut := ran("id", "x", proposal.Exited, 1, "bad.go:8:1: "+strings.Repeat("x", 1<<20)+"\nbad.go:9:1: ", "")
	list, _ = Annotations(finish(proposal.Report{Records: []proposal.Record{cut}}), prFiles)
	if len(list) != 1 || text.CountUnits(list[0].Message) > maxMessage {
		t.Errorf("%d annotations of a very long line", len(list))
	}
}

// TestAnnotationsKeepTheWorst: errors are kept in preference to any number of warnings.
func TestAnnotationsKeepTheWorst(t *testing.T) {
	var flood strings.Builder
	for i := range 200 {
		fmt.Fprintf(&flood, "bad.go:%d:1: warning: w\n", i+1)
	}
	rec := ran("id", "x", proposal.Exited, 1, flood.String(), "bad.go:7:1: error: the one that counts\n")
	list, more := Annotations(finish(proposal.Report{Records: []proposal.Record{rec}}), prFiles)
	if list[0].Message != "the one that counts" || more != 151 {
		t.Errorf("first %q, %d more", list[0].Message, more)
	}
}

// TestAnnotationsOfTruncated: a tail may begin in the middle of a line.
func TestAnnotationsOfTruncated(t *testing.T) {
	rec := ran("id", "x", proposal.Exited, 1, "", "")
	rec.Result.Stdout = proposal.Stream{Bytes: 1 << 20, Head: []byte("bad.go:1:1: head\nba"), Tail: []byte("bad.go:2:1: of another line\nbad.go:3:1: tail\n"), Truncated: true}
	list, _ := Annotations(finish(proposal.Report{Records: []proposal.Record{rec}}), prFiles)
	if diff := cmp.Diff("bad.go:1:1 failure go: head\nbad.go:3:1 failure go: tail", shownAnnotations(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzAnnotations(f *testing.F) {
	for _, tt := range outputs {
		f.Add([]byte(tt.out), "stats")
	}
	f.Add([]byte(strings.Join(attacks, "\n")), "")
	f.Fuzz(func(t *testing.T, out []byte, cwd string) {
		rec := ran("id", "x", proposal.Exited, 1, string(out), "")
		rec.Proposal.Cwd = cwd
		list, _ := Annotations(finish(proposal.Report{Records: []proposal.Record{rec}}), prFiles)
		for _, a := range list {
			if failure.NewTree(prFiles, false).Resolve("", a.Path) != a.Path || a.Line < 1 || a.EndLine < a.Line || a.Col < 0 {
				t.Errorf("annotation of %q line %d", a.Path, a.Line)
			}
			if !utf8.ValidString(a.Message) || strings.ContainsAny(a.Message+a.Title, "\n\r\x00\x1b") || text.CountUnits(a.Message) > maxMessage {
				t.Errorf("message %q", a.Message)
			}
			checkPlain(t, "annotation", a.Message)
		}
	})
}

func BenchmarkAnnotations(b *testing.B) {
	line := "step 07 line 000123: compiled file_1.go without a word: of complaint\n" + "bad.go:12:3: undefined: y\n"
	var records []proposal.Record
	for i := range 50 {
		records = append(records, ran(fmt.Sprint(i), "x", proposal.Exited, 1, strings.Repeat(line, 64<<10/len(line)), ""))
	}
	r := finish(proposal.Report{Records: records})
	b.SetBytes(50 * 64 << 10)
	for b.Loop() {
		Annotations(r, prFiles)
	}
}
