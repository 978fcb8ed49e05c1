// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A log of a test that passes is never the cause, nor is a line of a runner printed by a test,
// once the runner names the tests that failed.
func TestForgedLines(t *testing.T) {
	forged := "src/a.c:1:1: error: forged\nTypeError: forged\n    at f (src/b.js:1:2)\nTraceback (most recent call last):\n  File \"c.py\", line 3, in f\nValueError: forged\n" +
		"Exception in thread \"main\" java.lang.Error: forged\n\tat a.B.c(B.java:3)\nx.sh: line 3: forged: command not found\nsrc/d.rs:1:2: forged\n"
	for name, real := range map[string]string{
		"jest":   "FAIL ./a.test.js\n  ● adds\n\n    expect(received).toBe(expected)\n\n    Expected: 3\n    Received: 1\n\n      at Object.toBe (a.test.js:5:23)\n\nTest Suites: 1 failed, 1 total\n",
		"pytest": "=== FAILURES ===\n____ test_a ____\n\n>   assert f() == 3\nE   assert 1 == 3\n\na_test.py:5: AssertionError\n=== short test summary info ===\nFAILED a_test.py::test_a - assert 1 == 3\n",
		"go":     "=== RUN   TestA\n    a_test.go:5: f() = 1, want 3\n--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.org/a\t0.1s\n",
		"tap":    "TAP version 13\nnot ok 1 - adds\n  ---\n  error: '1 !== 3'\n  stack: |-\n    f (/workspace/a.test.js:5:2)\n  ...\n1..1\n",
	} {
		for _, out := range [][2]string{{real, forged}, {forged + real, ""}, {real + forged, ""}} {
			list := readOutput([]byte(out[0]), []byte(out[1]), Options{})
			if len(list) != 1 || list[0].Line != 5 || list[0].Test == "" || strings.Contains(FormatLine(list[0]), "forged") {
				t.Errorf("%s: %+v", name, list)
			}
		}
	}
}

// The lines that a passing test prints in the form of its own runner are not read where the
// runner's own lines show that they are not its.
func TestForgedRunnerLines(t *testing.T) {
	for name, out := range map[string]string{
		"tap: a number that is not the next": "TAP version 13\nnot ok 7 - forged\nok 1 - a\nnot ok 2 - adds\n1..2\n",
		"go: a test that did not run":        "=== RUN   TestA\n--- FAIL: TestForged (0.00s)\n    a_test.go:5: adds\n--- FAIL: TestA (0.00s)\nFAIL\texample.org/a\t0.1s\n",
		"pytest: a section that is not in the summary": "=== FAILURES ===\n___ test_forged ___\nE   forged\n\na.py:1: Error\n___ test_a ___\nE   adds\n\na.py:2: Error\n" +
			"=== short test summary info ===\nFAILED a.py::test_a - adds\n",
		"cargo: a test that is not listed": "---- forged stdout ----\nthread 'forged' panicked at src/a.rs:1:1:\nforged\n\n---- adds stdout ----\nthread 'adds' panicked at src/a.rs:2:1:\nadds\n\n\nfailures:\n    adds\n\ntest result: FAILED.\n",
		"mocha: before the last count":     "  1 failing\n\n  1) forged:\n     Error: forged\n\n  0 passing (3ms)\n  1 failing\n\n  1) adds:\n     Error: adds\n      at Context.<anonymous> (a.js:5:12)\n",
		"jest: before the summary":         "FAIL a.test.js\n  ● forged\n\n    forged\n\nSummary of all failing tests\nFAIL a.test.js\n  ● adds\n\n    adds\n\nTest Suites: 1 failed\n",
		"ctest: not listed":                "1/2 Test #1: forged ...***Failed    0.00 sec\nforged\n2/2 Test #2: adds ...***Failed    0.00 sec\n\n0% tests passed, 1 tests failed out of 1\n\nThe following tests FAILED:\n\t  2 - adds (Failed)\n",
	} {
		list := readOutput([]byte(out), nil, Options{})
		if len(list) == 0 || slices.ContainsFunc(list, func(d proposal.Diagnostic) bool {
			return strings.Contains(FormatLine(d), "forged") || strings.Contains(FormatLine(d), "Forged")
		}) {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

// With nothing known it is the last line of standard error, then of standard output, that says
// more than that the command failed.
func TestLastLine(t *testing.T) {
	for _, tt := range []struct{ stdout, stderr, want string }{
		{"one\ntwo\n", "", "two"},
		{"out\n", "Error: an early log\nthe end\n", "the end"},
		{"3 dead links\n", "npm error code 2\nnpm error path /workspace\n", "3 dead links"},
		{"", "checksum differs\nmake[1]: *** [Makefile:3: all] Error 1\nmake: *** [sub] Error 2\n", "checksum differs"},
		{"", "make: *** [Makefile:3: all] Error 1\n", "make: *** [Makefile:3: all] Error 1"},
		{"", "+ test 1 = 2\n+ exit 1\n", "+ exit 1"},
		{"", "", ""},
	} {
		if got := lastLine([]byte(tt.stdout), []byte(tt.stderr)); got != tt.want {
			t.Errorf("%q, %q: %q, want %q", tt.stdout, tt.stderr, got, tt.want)
		}
	}
}

// Of the frames of a stack, the innermost in a file that the pull request changes is the place.
func TestPlaceIsInAChangedFile(t *testing.T) {
	out := "  ● adds\n\n    boom\n\n      at assertSum (test/helper.js:3:9)\n      at sum (src/calc.js:7:1)\n      at Object.<anonymous> (test/a.test.js:5:12)\n      at run (node_modules/jest/x.js:1:1)\n"
	for changed, want := range map[string]string{"": "test/helper.js:3", "src/calc.js": "src/calc.js:7", "test/a.test.js": "test/a.test.js:5", "src/other.js": "test/helper.js:3"} {
		list := readOutput([]byte(out), nil, Options{Tree: NewTree(strings.Fields(changed), true)})
		if len(list) != 1 || placeOf(list[0]) != want || len(list[0].Frames) != 3 {
			t.Errorf("%s: %+v, want %s", changed, list, want)
		}
	}
}

// readOutput is Of for a command that printed stdout and stderr.
func readOutput(stdout, stderr []byte, o Options) []proposal.Diagnostic {
	return CauseReports(&proposal.Result{ExitCode: 1, Stdout: proposal.Stream{Head: stdout}, Stderr: proposal.Stream{Head: stderr}}, o)
}

// testsOf returns the suites and names of the tests that failed, sorted, each once.
func testsOf(list []proposal.Diagnostic) (names []string) {
	for _, d := range list {
		if d.Test != "" && d.Level == Error {
			names = append(names, strings.TrimSpace(d.Suite+" "+d.Test))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// FuzzRead checks what is promised of any output.
func FuzzRead(f *testing.F) {
	names, _ := filepath.Glob("testdata/corpus/*/*.[oe]??")
	for i, name := range names {
		if i%5 != 0 {
			continue // TestCorpus reads all
		}
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 4000)], []byte("x"), "src")
	}
	f.Fuzz(func(t *testing.T, stdout, stderr []byte, cwd string) {
		for _, o := range []Options{{Cwd: cwd}, {Cwd: cwd, Tree: NewTree([]string{"src/a.js", "a.go", "x/y.py"}, false)}} {
			list := readOutput(stdout, stderr, o)
			if len(list) > maxRead {
				t.Fatalf("%d reports", len(list))
			}
			for _, d := range list {
				checkDiagnostic(t, d, o)
			}
		}
		if line := lastLine(stdout, stderr); !utf8.ValidString(line) || len(line) > 3*maxLine {
			t.Errorf("last line %q", line)
		}
	})
}

func checkDiagnostic(t *testing.T, d proposal.Diagnostic, o Options) {
	t.Helper()
	for _, s := range []string{d.Test, d.Suite, d.Message, d.Expected, d.Actual, d.Rule, d.Tool} {
		if !utf8.ValidString(s) || len(s) > maxText+len("…") || strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
			t.Errorf("text %q of %d bytes", s, len(s))
		}
	}
	if d.Message == "" || d.Tool == "" || !slices.Contains([]string{Error, Warning, Notice}, d.Level) {
		t.Errorf("incomplete: %+v", d)
	}
	if len(d.Frames) > maxFrames+1 {
		t.Errorf("%d frames", len(d.Frames))
	}
	for _, place := range append(slices.Clone(d.Frames), proposal.Frame{File: d.File, Line: d.Line, Column: d.Column}) {
		if place.File == "" && place.Line == 0 {
			continue
		}
		if !fs.ValidPath(place.File) || place.Line < 0 || place.Column < 0 || o.Tree != nil && !o.Tree.Has(place.File) {
			t.Errorf("place %+v", place)
		}
	}
}

// What a tool prints that found nothing is not the line that is shown for a failure.
func TestLastLineOfNothing(t *testing.T) {
	for _, row := range []struct{ stdout, stderr, want string }{
		{"[]\n", "", ""},
		{"{}\n\n", "--\n", ""},
		{"building\n[]\n", "", "building"},
		{"[]\n", "a.sh: a.sh: openBinaryFile: does not exist (No such file or directory)\n", "a.sh: a.sh: openBinaryFile: does not exist (No such file or directory)"},
		{"All checks passed!\nSuccess: no issues found in 3 source files\nFound 0 warnings and 0 errors.\n", "", ""},
		{"lint: 3 files\n0 problems\n", "", "lint: 3 files"},
		{"0 problems in a.js, 3 in b.js\n", "", "0 problems in a.js, 3 in b.js"},
		{"npm error x\n", "", "npm error x"},
	} {
		if got := LastLineOf(&proposal.Result{Stdout: proposal.Stream{Head: []byte(row.stdout)}, Stderr: proposal.Stream{Head: []byte(row.stderr)}}); got != row.want {
			t.Errorf("%q, %q: %q, want %q", row.stdout, row.stderr, got, row.want)
		}
	}
}
