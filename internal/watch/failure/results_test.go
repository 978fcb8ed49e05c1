// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// resultOf returns the result of a command that printed stdout, and whose runner wrote a file.
func resultOf(stdout, name, content string) *proposal.Result {
	var files Results
	files.Add(name, []byte(content))
	return &proposal.Result{Status: proposal.Exited, ExitCode: 1, TestResults: files.Stream(),
		Stdout: proposal.Stream{Head: []byte(stdout), Bytes: int64(len(stdout))}}
}

// Each failure in the files of runners is found, alone and once beside what the runner printed.
func TestResultFiles(t *testing.T) {
	data, err := os.ReadFile("testdata/results/want.txt")
	if err != nil {
		t.Fatal(err)
	}
	want, o := map[string][]answer{}, Options{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if list, ok := strings.CutPrefix(line, "files "); ok {
			o.Tree = NewTree(strings.Fields(list), true)
			continue
		}
		if parts := strings.Split(line, " | "); len(parts) == 4 {
			want[parts[0]] = append(want[parts[0]], answer{parts[1], strings.Split(parts[2], ";;"), parts[3]})
		}
	}
	for name, answers := range want {
		content, err := os.ReadFile("testdata/results/" + name)
		if err != nil {
			t.Fatal(err)
		}
		stem, _, _ := strings.Cut(name, ".")
		printed, _ := os.ReadFile("testdata/results/" + stem + ".out")
		for _, out := range []string{"", string(printed), "Tests failed.\n"} {
			got := CauseReports(resultOf(out, name, string(content)), o)
			for _, a := range answers {
				found := 0
				for _, d := range got {
					if a.matches(d) {
						found++
					}
				}
				if found != 1 {
					t.Errorf("%s with output of %d bytes: %s is found %d times", name, len(out), a, found)
				}
			}
			if len(got) != len(answers) {
				for _, d := range got {
					t.Logf("%s: %s | %s | %s | %s", name, d.Suite, d.Test, FormatLine(d), placeOf(d))
				}
				t.Errorf("%s with output of %d bytes: %d reports, want %d", name, len(out), len(got), len(answers))
			}
		}
	}
}

// Hostile files add bounded, printable text or nothing, and a file never changes another's tests.
func TestHostileResultFiles(t *testing.T) {
	lanetest.SkipShort(t)
	failing := func(name, message, text string) string {
		return `<testsuite><testcase name="` + name + `" classname="c"><failure message="` + message + `">` + text + `</failure></testcase></testsuite>`
	}
	bomb := `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol">`
	for i := range 9 {
		bomb += fmt.Sprintf("<!ENTITY %c %q>", 'b'+i, strings.Repeat(fmt.Sprintf("&%c;", 'a'+i), 10))
	}
	bomb += "]>" + failing("bomb &j;", "m", "&j;&j;")
	for name, test := range map[string]struct {
		file, content string
		tests         int
	}{
		"not XML":             {"a.xml", "root:x:0:0:root:/root:/bin/bash\n", 0},
		"other XML":           {"a.xml", "<coverage><testcase/></coverage>", 0},
		"a bomb":              {"a.xml", bomb, 1},
		"external entity":     {"a.xml", `<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>` + failing("t", "&x;", "&x;"), 1},
		"not UTF-8":           {"a.xml", failing("a\xff\xfeb", "m\xc0", "\x80\x81"), 1},
		"another encoding":    {"a.xml", `<?xml version="1.0" encoding="UTF-16"?>` + failing("t", "m", "x"), 1},
		"UTF-16":              {"a.xml", "\xff\xfe<\x00t\x00e\x00s\x00t\x00s\x00u\x00i\x00t\x00e\x00", 0},
		"control characters":  {"a.xml", failing("a\x1b[2Jb\x1etest c\x00", "\u202e\x07", "\x1etest forged\n\x1emessage"), 1},
		"references to them":  {"a.xml", failing("a&#10;b", "&#10;&#9;test forged", "x"), 1},
		"many tests":          {"a.xml", strings.Repeat(failing("t", "m", strings.Repeat("x", 1000)), 6000), 500},
		"a long name":         {"a.xml", failing(strings.Repeat("n", 1<<20), strings.Repeat("m", 1<<20), strings.Repeat("x", 1<<20)), 1},
		"never closed":        {"a.xml", "<testsuite>" + strings.Repeat(`<testcase name="t"><failure>`, 20000), 1},
		"deep":                {"a.xml", "<testsuite>" + strings.Repeat("<a>", 200000) + failing("t", "m", "x"), 1},
		"a commented test":    {"a.xml", "<testsuite><!-- " + failing("t", "m", "x") + " --></testsuite>", 0},
		"TAP":                 {"a.tap", "TAP version 13\nnot ok 1 - a\x1etest forged\x1b[31m\n1..1\n", 1},
		"TAP without failure": {"a.tap", "TAP version 13\nok 1 - a\n1..1\n", 0},
		"endless TAP":         {"a.tap", strings.Repeat("not ok 1 - a\n", 1<<18), 1},
	} {
		var files Results
		files.Add(test.file, []byte(test.content))
		kept := files.Stream()
		if len(kept.Head) > maxResults || !utf8.Valid(kept.Head) || kept.Truncated != (kept.Bytes > int64(len(kept.Head))) {
			t.Errorf("%s: keeps %d of %d bytes", name, len(kept.Head), kept.Bytes)
		}
		r := &proposal.Result{Status: proposal.Exited, ExitCode: 1, TestResults: kept}
		list := CauseReports(r, Options{})
		if (len(list) == 0) != (test.tests == 0) || len(list) > max(test.tests, 1) && test.tests < 500 {
			t.Errorf("%s: %d reports, want %d", name, len(list), test.tests)
		}
		for _, d := range list {
			all := d.Test + d.Suite + d.Message + d.Expected + d.Actual
			if len(all) > 6*maxText || strings.Contains(all, "root:") || strings.Contains(all, "lollol") || d.Test == "forged" || strings.ContainsAny(all, "\x1b\x1e\x00\n") {
				t.Errorf("%s: %q", name, all)
			}
		}
		if r.ExitCode, r.Status = 0, proposal.Exited; r.Succeeded() {
			for _, d := range Diagnostics(r, Options{Succeeded: true}) {
				if d.Level == Error {
					t.Errorf("%s: a command that succeeded reports a failure: %+v", name, d)
				}
			}
		}
	}
}

// What several files say is kept together, and a bound that is reached is noted.
func TestResultsOfManyFiles(t *testing.T) {
	var files Results
	for i := range 3000 {
		files.Add("a.xml", fmt.Appendf(nil, `<testsuite><testcase name="test%d"><failure message="m">text</failure></testcase></testsuite>`, i))
	}
	if kept := files.Stream(); !kept.Truncated || HasResults(kept) || len(kept.Head) > maxResults {
		t.Errorf("%d of %d bytes are kept", len(kept.Head), kept.Bytes)
	}
	var few Results
	few.Add("a.xml", []byte(`<testsuite><testcase name="one"><failure message="m"/></testcase></testsuite>`))
	few.Add("b.tap", []byte("not ok 1 - two\n"))
	if kept := few.Stream(); !HasResults(kept) {
		t.Errorf("%q is incomplete", kept.Head)
	}
	if got := testsOf(CauseReports(&proposal.Result{ExitCode: 1, TestResults: few.Stream()}, Options{})); fmt.Sprint(got) != "[one two]" {
		t.Errorf("%q", got)
	}
	few.NoteOmission("the rest")
	if kept := few.Stream(); HasResults(kept) {
		t.Errorf("%q is complete", kept.Head)
	}
	if kept := (&Results{}).Stream(); HasResults(kept) || kept.Bytes != 0 {
		t.Errorf("nothing is %+v", kept)
	}
}

// The output of another test of the same name, in another file, is not replaced.
func TestResultsHideNothing(t *testing.T) {
	out := "--- FAIL: TestSame (0.00s)\n    a_test.go:3: want 1, got 2\nFAIL\nFAIL\texample.org/x/a\t0.1s\n--- FAIL: TestSame (0.00s)\n    b_test.go:4: want 3, got 4\nFAIL\nFAIL\texample.org/x/b\t0.1s\n"
	file := `<testsuite><testcase classname="example.org/x/b" name="TestSame"><failure message="Failed">    b_test.go:4: want 3, got 4</failure></testcase></testsuite>`
	o := Options{Tree: NewTree([]string{"a/a_test.go", "b/b_test.go"}, true)}
	var places []string
	for _, d := range CauseReports(resultOf(out, "junit.xml", file), o) {
		places = append(places, d.Tool+" "+placeOf(d))
	}
	if got := fmt.Sprint(places); got != "[junit b/b_test.go:4 go test a/a_test.go:3]" {
		t.Error(got)
	}
}

// The forms in which runners write one failure as JUnit XML: each has its line.
func TestJUnitForms(t *testing.T) {
	data, err := os.ReadFile("testdata/results/junit-forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Tree: NewTree(strings.Fields("a_test.ts cart.py cart/cart.go cart/cart_test.go cypress/e2e/a.cy.js e2e/home.spec.ts lib/cart.rb spec/cart_spec.rb spec/str_spec.lua "+
		"src/a.js src/a.test.js src/a.test.ts src/lib.rs src/test/kotlin/com/example/CartTest.kt t.cpp test/a.js test/cart.js test/cart_test.rb tests/CartTest.php tests/test_cart.py Tests/CartTests.cs x.sh"), true)}
	for _, form := range strings.Split(string(data), "\nwant ")[1:] {
		line, content, _ := strings.Cut(form, "\n")
		parts := strings.Split(line, " | ")
		want := answer{parts[0], strings.Split(parts[1], ";;"), parts[2]}
		for name, got := range map[string][]proposal.Diagnostic{"in a file": CauseReports(resultOf("", "junit.xml", content), o), "printed": readOutput([]byte(content), nil, o)} {
			if len(got) == 0 || !want.matches(got[0]) || len(got) > 1 && name == "in a file" {
				t.Errorf("%s, %s:", want, name)
				for _, d := range got {
					t.Logf("%s | %s | %s", d.Test, FormatLine(d), placeOf(d))
				}
			}
		}
	}
}
