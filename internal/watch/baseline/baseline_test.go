// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func stream(s string) proposal.Stream {
	return proposal.Stream{Head: []byte(s), Bytes: int64(len(s))}
}

func ran(code int, out string) proposal.Record {
	return proposal.Record{Proposal: proposal.Proposal{ID: "a", Run: "x"}, Decision: proposal.Decision{Effect: proposal.Allow},
		Result: &proposal.Result{Status: proposal.Exited, ExitCode: code, Stdout: stream(out)}}
}

const (
	goOld  = "--- FAIL: TestOld (0.01s)\n    x_test.go:12: got 1\nFAIL\nFAIL\texample.org/x\t0.012s\nFAIL\n"
	goMore = "--- FAIL: TestOld (0.02s)\n    x_test.go:14: got 1\n--- FAIL: TestNew (0.00s)\n    y_test.go:3: got 2\nFAIL\nFAIL\texample.org/x\t0.112s\nFAIL\n"
	// Mocha names no file.
	mochaOld   = "  0 passing (2ms)\n  1 failing\n\n  1) adds:\n     AssertionError: 1 == 2\n      at Context.<anonymous> (a.js:3:1)\n\n"
	mochaTwice = "  0 passing (2ms)\n  2 failing\n\n  1) adds:\n     AssertionError: 1 == 2\n      at Context.<anonymous> (a.js:3:1)\n\n  2) adds:\n     AssertionError: 1 == 2\n      at Context.<anonymous> (b.js:3:1)\n\n"

	pyOld  = "tests/test_a.py F.\n=== short test summary info ===\nFAILED tests/test_a.py::test_old - assert 1 == 2\n1 failed, 1 passed in 0.03s\n"
	pyMore = "tests/test_a.py F..\n=== short test summary info ===\nFAILED tests/test_a.py::test_old - assert 1 == 2\n1 failed, 2 passed in 0.13s\n"
)

// A Go test that runs the suite of another framework, with one failure and with another.
const (
	suiteOld  = "Summarizing 1 Failure:\n  [FAIL] Books can be read\n--- FAIL: TestBooks (0.00s)\nFAIL\nFAIL\texample.org/x\t0.01s\nFAIL\n"
	suiteMore = "Summarizing 2 Failures:\n  [FAIL] Books can be read\n  [FAIL] Books can be lent\n--- FAIL: TestBooks (0.00s)\nFAIL\nFAIL\texample.org/x\t0.01s\nFAIL\n"
)

// What the base shows, and what it does not: each doubt keeps the failure.
func TestCompare(t *testing.T) {
	cause := func(kind string, r proposal.Record) proposal.Record {
		r.Cause = &proposal.Cause{Kind: kind, Reason: "too old"}
		return r
	}
	old := func(r proposal.Record) proposal.Record { return cause("toolchain", r) }
	change := func(r proposal.Record, f func(*proposal.Result)) proposal.Record { f(r.Result); return r }
	for name, test := range map[string]struct {
		head, base proposal.Record
		want       string
		about      string // in New or Why
	}{
		"passes there":                  {ran(1, goOld), ran(0, "ok\n"), proposal.BasePasses, ""},
		"the same test":                 {ran(1, goOld), ran(1, goOld), proposal.BaseSame, ""},
		"another test":                  {ran(1, goMore), ran(1, goOld), proposal.BaseNew, "example.org/x TestNew"},
		"one test fixed":                {ran(1, goOld), ran(1, goMore), proposal.BaseSame, ""},
		"a test more that passes":       {ran(1, pyMore), ran(1, pyOld), proposal.BaseSame, ""},
		"another package":               {ran(1, "# example.org/y\n./y.go:3:1: undefined: z\n"+goOld+"FAIL\texample.org/y [build failed]\nFAIL\n"), ran(1, goOld), proposal.BaseNew, "y.go: undefined: z"},
		"the suite ends early":          {ran(1, "--- FAIL: TestOld (0.01s)\n    x_test.go:12: got 1\nFAIL\texample.org/x\t0.012s\nFAIL\n"), ran(1, goOld), proposal.BaseDifferent, "ends with other lines"},
		"the suite ends without it":     {ran(1, "FAIL\texample.org/x\t0.012s\nFAIL\n"), ran(1, goOld), proposal.BaseNew, "outside its tests"},
		"a panic after it":              {ran(2, goOld), ran(1, goOld), proposal.BaseDifferent, "exit code 1 there"},
		"names only here":               {ran(1, goOld), ran(1, "no space left\n"), proposal.BaseDifferent, "names failures here"},
		"names only there":              {ran(1, "no space left\n"), ran(1, goOld), proposal.BaseDifferent, "names failures there"},
		"the same lines":                {ran(1, "lint /tmp/x-1d2e3f/x (pid 12)\nmain.go is too long\nFinished in 0.1s\n"), ran(1, "lint /tmp/x-7a8b9c/x (pid 7)\nmain.go is too long\nFinished in 2ms\n"), proposal.BaseSame, ""},
		"one line fewer":                {ran(1, "a.go:1:1: x\n"), ran(1, "a.go:1:1: x\nb.go:2:2: y\n"), proposal.BaseSame, ""},
		"one line more":                 {ran(1, "a.go:1:1: x\nb.go:2:2: y\n"), ran(1, "a.go:1:1: x\n"), proposal.BaseNew, "b.go: y"},
		"the same line twice":           {ran(1, "a.go:1:1: x\na.go:2:2: x\n"), ran(1, "a.go:1:1: x\n"), proposal.BaseNew, "a.go: x (2)"},
		"a plain line more":             {ran(1, "x is too long\ny is too long\n"), ran(1, "x is too long\n"), proposal.BaseDifferent, "other lines"},
		"a plain line twice":            {ran(1, "too long\ntoo long\n"), ran(1, "too long\n"), proposal.BaseDifferent, "other lines"},
		"a linter beside the tests":     {ran(1, "x.ts:3:1 - error TS2322: no\n"+pyOld), ran(1, pyOld), proposal.BaseNew, "TS2322"},
		"a linter beside both":          {ran(1, "x.ts:3:1 - error TS2322: no\n"+pyMore), ran(1, "x.ts:2:1 - error TS2322: no\n"+pyOld), proposal.BaseSame, ""},
		"other values of a test":        {ran(1, "/workspace/tests/test_a.py:3: assert 3 == 2\n"+pyMore), ran(1, "/workspace/tests/test_a.py:3: assert 1 == 2\n"+pyOld), proposal.BaseSame, ""},
		"a log beside the tests":        {ran(1, "Error: for a test that passes\n    at a (/workspace/a.js:1:2)\n"+pyOld), ran(1, pyOld), proposal.BaseSame, ""},
		"an equal name of another file": {ran(1, mochaTwice), ran(1, mochaOld), proposal.BaseNew, "adds (2)"},
		"a failure without a name":      {ran(1, strings.Replace(pyOld, "1 failed", "2 failed", 1)), ran(1, pyOld), proposal.BaseDifferent, "other lines"},
		"one error more, in words":      {ran(1, "not ok 1 - a\n# failures: 2\n"), ran(1, "not ok 1 - a\n# failures: 1\n"), proposal.BaseDifferent, "other lines"},
		"one fixed, with its count":     {ran(1, "not ok 1 - a\n1..2\n# done\n# failures: 1\n"), ran(1, "not ok 1 - a\nnot ok 2 - b\n1..2\n# done\n# failures: 2\n"), proposal.BaseSame, ""},
		"an equal name once less":       {ran(1, mochaOld), ran(1, mochaTwice), proposal.BaseSame, ""},
		"ends before the base does":     {ran(1, "one\n"), ran(1, "one\ntwo\n"), proposal.BaseDifferent, "another line"},
		"prints nothing any more":       {ran(1, ""), ran(1, "one\n"), proposal.BaseDifferent, "another line"},
		"a plain line fewer":            {ran(1, "b is too long\n1 step failed\n"), ran(1, "a is too long\nb is too long\n1 step failed\n"), proposal.BaseSame, ""},
		"another number":                {ran(1, "3 problems\n"), ran(1, "2 problems\n"), proposal.BaseDifferent, "other lines"},
		"nothing printed":               {ran(1, ""), ran(1, ""), proposal.BaseSame, ""},
		"nothing printed, other end":    {ran(2, ""), ran(1, ""), proposal.BaseDifferent, "exit code 2 here"},
		"in a test that is silent":      {ran(1, suiteMore), ran(1, suiteOld), proposal.BaseDifferent, "other lines"},
		"the same in it":                {ran(1, suiteOld), ran(1, suiteOld), proposal.BaseSame, ""},
		"another signal": {change(ran(-1, ""), func(r *proposal.Result) { r.Status, r.Signal = proposal.Signaled, "SIGSEGV" }),
			change(ran(-1, ""), func(r *proposal.Result) { r.Status, r.Signal = proposal.Signaled, "SIGABRT" }), proposal.BaseDifferent, "SIGABRT there"},
		"timed out there": {ran(1, goOld), change(ran(1, goOld), func(r *proposal.Result) { r.Status, r.Limit = proposal.TimedOut, "wall 1s" }), proposal.BaseUnknown, "timed out"},
		"killed there":    {ran(1, goOld), change(ran(1, goOld), func(r *proposal.Result) { r.Killed = proposal.KilledBudget }), proposal.BaseUnknown, "did not end by itself"},
		"crashed there":   {ran(1, goOld), change(ran(1, goOld), func(r *proposal.Result) { r.Retried = &proposal.Attempt{} }), proposal.BaseUnknown, "second time"},
		"cut off there":   {ran(1, goOld), change(ran(1, goOld), func(r *proposal.Result) { r.Stdout.Truncated = true }), proposal.BaseUnknown, "too long"},
		"withheld there":  {ran(1, ""), change(ran(1, ""), func(r *proposal.Result) { r.Stderr.Withheld = "secret" }), proposal.BaseUnknown, "withheld"},
		"not observed":    {ran(1, goOld), change(ran(1, goOld), func(r *proposal.Result) { r.Observations = &proposal.Observations{} }), proposal.BaseUnknown, "recorded"},
		"refused there": {ran(1, goOld), change(ran(1, goOld), func(r *proposal.Result) {
			r.Observations = &proposal.Observations{Complete: true, Counts: proposal.Counts{Refused: 1}}
		}), proposal.BaseUnknown, "did not end by itself"},
		"git there": {ran(1, goOld), change(ran(1, goOld), func(r *proposal.Result) {
			r.Observations = &proposal.Observations{Complete: true, Programs: []proposal.Program{{Name: "git"}}}
		}), proposal.BaseUnknown, "git"},
		"git there, which passes": {ran(1, goOld), change(ran(0, ""), func(r *proposal.Result) {
			r.Observations = &proposal.Observations{Complete: true, Programs: []proposal.Program{{Name: "git"}}}
		}), proposal.BaseUnknown, "git"},
		"a long name":     {ran(1, "not ok 1 - "+strings.Repeat("ab ", 400)+"A\n"), ran(1, "not ok 1 - "+strings.Repeat("ab ", 400)+"B\n"), proposal.BaseDifferent, "other lines"},
		"not found there": {ran(1, "x"), ran(127, "x"), proposal.BaseDifferent, "exit code 127 there"},
		"not found here":  {ran(127, "x"), ran(0, ""), proposal.BasePasses, ""},
		"not found":       {ran(127, "x"), ran(127, "x"), proposal.BaseSame, ""},
		"not run there": {ran(1, "x"), change(ran(-1, ""), func(r *proposal.Result) {
			r.Status, r.Detail = proposal.NotRun, `it needs "b~base", which did not succeed`
		}), proposal.BaseUnknown, "did not run there"},
		"no result there":             {ran(1, "x"), proposal.Record{Decision: proposal.Decision{Effect: proposal.Allow}}, proposal.BaseUnknown, "did not run there"},
		"denied there":                {ran(1, "x"), proposal.Record{}, proposal.BaseUnknown, "policy"},
		"asked there":                 {ran(1, "x"), proposal.Record{Decision: proposal.Decision{Effect: proposal.Ask}, Approval: &proposal.Approval{}}, proposal.BaseUnknown, "policy"},
		"cut off here":                {change(ran(1, goOld), func(r *proposal.Result) { r.Stdout.Truncated = true }), ran(1, goOld), proposal.BaseUnknown, "cannot be compared"},
		"timed out here":              {change(ran(1, goOld), func(r *proposal.Result) { r.Limit = "wall 1s" }), ran(1, goOld), proposal.BaseUnknown, "cannot be compared"},
		"not a failure":               {ran(0, ""), ran(1, ""), proposal.BaseUnknown, "cannot be compared"},
		"expected to fail":            {func() proposal.Record { r := ran(1, ""); r.Proposal.Expect = "fails"; return r }(), ran(1, ""), proposal.BaseUnknown, "cannot be compared"},
		"a toolchain too old, passes": {old(ran(1, "x")), ran(0, ""), proposal.BasePasses, ""},
		"a toolchain too old on both": {old(ran(1, "x")), old(ran(1, "x")), proposal.BaseUnknown, "could not run there: too old"},
		"a missing tool, passes":      {cause("tool", ran(127, "x")), ran(0, ""), proposal.BasePasses, ""},
		"another cause":               {cause("network", ran(1, "x")), ran(0, ""), proposal.BaseUnknown, "cannot be compared"},
	} {
		got := Compare(test.head, test.base)
		if got.Verdict != test.want || !strings.Contains(got.Why+strings.Join(got.New, ","), test.about) {
			t.Errorf("%s: %+v, want %s, %q", name, got, test.want, test.about)
		}
		if (got.Why == "") == slices.Contains([]string{proposal.BaseDifferent, proposal.BaseUnknown}, got.Verdict) {
			t.Errorf("%s: %+v does not say why", name, got)
		}
	}
	if got := Compare(ran(1, goMore), ran(1, goOld)); got.Old != 1 || len(got.New) != 1 {
		t.Errorf("%+v", got)
	}
}

// wrote adds to a result what a test runner wrote to a file about tests that failed.
func wrote(r proposal.Record, tests ...string) proposal.Record {
	var files failure.Results
	content := "<testsuite>"
	for _, name := range tests {
		content += fmt.Sprintf(`<testcase classname="shop" name=%q><failure message="no">at x</failure></testcase>`, name)
	}
	files.Add("junit.xml", []byte(content+"</testsuite>"))
	r.Result.TestResults = files.Stream()
	return r
}

const newTest = `<testcase classname="shop" name="added"><failure message="no"/></testcase>`

// oldTest is a document with a test that failed, which says a text, and more behind it.
func oldTest(text, more string) string {
	return `<testsuite name="shop"><testcase classname="shop" name="old"><failure message="no">` + text + `</failure></testcase>` + more + `</testsuite>`
}

func namedTests(suite string, names ...string) string {
	content := "<testsuite>"
	for _, name := range names {
		content += fmt.Sprintf(`<testcase classname=%q name=%q><failure message="no"/></testcase>`, suite, name)
	}
	return content + "</testsuite>"
}

func longTests(n int) string {
	content := "<testsuite>"
	for i := range n {
		content += fmt.Sprintf(`<testcase classname="shop" name="test_%d"><failure message="%s">at x</failure></testcase>`, i, strings.Repeat("m", 6000))
	}
	return content + "</testsuite>"
}

func wroteXML(r proposal.Record, content string) proposal.Record {
	var files failure.Results
	files.Add("junit.xml", []byte(content))
	r.Result.TestResults = files.Stream()
	return r
}

// Files of test runners make a verdict stricter and never milder: what the output alone makes new,
// different or unknown stays so.
func TestCompareFiles(t *testing.T) {
	const says = "Tests failed.\n"
	cut := func(r proposal.Record) proposal.Record { r.Result.TestResults.Truncated = true; return r }
	for name, test := range map[string]struct {
		head, base proposal.Record
		want       string
		about      string
	}{
		"the same tests":               {wrote(ran(1, says), "old"), wrote(ran(1, says), "old"), proposal.BaseSame, ""},
		"one test fixed":               {wrote(ran(1, says), "old"), wrote(ran(1, says), "old", "other"), proposal.BaseSame, ""},
		"another test":                 {wrote(ran(1, says), "old", "new"), wrote(ran(1, says), "old"), proposal.BaseNew, "shop new"},
		"only here":                    {wrote(ran(1, says), "new"), ran(1, says), proposal.BaseDifferent, "only on one side"},
		"only there":                   {ran(1, says), wrote(ran(1, says), "old"), proposal.BaseDifferent, "only on one side"},
		"other lines, the same tests":  {wrote(ran(1, "a\n"), "old"), wrote(ran(1, "b\n"), "old"), proposal.BaseDifferent, "other lines"},
		"other exit, the same tests":   {wrote(ran(2, says), "old"), wrote(ran(1, says), "old"), proposal.BaseDifferent, "exit code"},
		"the output names another":     {wrote(ran(1, goMore), "old"), wrote(ran(1, goOld), "old"), proposal.BaseNew, "example.org/x TestNew"},
		"both name another":            {wrote(ran(1, goMore), "old", "TestNew", "more"), wrote(ran(1, goOld), "old"), proposal.BaseNew, "example.org/x TestNew,shop more"},
		"other lines and another test": {wrote(ran(1, "a\n"), "old", "new"), wrote(ran(1, "b\n"), "old"), proposal.BaseNew, "shop new"},
		"passes there, with a file":    {wrote(ran(1, says), "old"), wrote(ran(0, says), "old"), proposal.BasePasses, ""},
		"cut off here":                 {cut(wrote(ran(1, says), "old")), wrote(ran(1, says), "old"), proposal.BaseUnknown, "too long"},
		"cut off here, another test":   {cut(wrote(ran(1, says), "new")), wrote(ran(1, says), "old"), proposal.BaseNew, "shop new"},
		"cut off there":                {wrote(ran(1, says), "old"), cut(wrote(ran(1, says), "old")), proposal.BaseUnknown, "too long"},
		"many long messages":           {wroteXML(ran(1, says), longTests(25)), wroteXML(ran(1, says), longTests(1)), proposal.BaseNew, "test_1"},
		"text that ends the document":  {wroteXML(ran(1, says), oldTest("1 < 2 <-x", newTest)), wroteXML(ran(1, says), oldTest("1", "")), proposal.BaseNew, "added"},
		"it is on both sides":          {wroteXML(ran(1, says), oldTest("1 < 2 <-x", newTest)), wroteXML(ran(1, says), oldTest("1 < 2 <-x", "")), proposal.BaseUnknown, "to the end"},
		"the same text":                {wroteXML(ran(1, says), oldTest("1 < 2 <-x", "")), wroteXML(ran(1, says), oldTest("1 < 2 <-x", "")), proposal.BaseUnknown, "to the end"},
		"a CDATA without an end":       {wroteXML(ran(1, says), oldTest("<![CDATA[ ", newTest)), wroteXML(ran(1, says), oldTest("<![CDATA[ ", "")), proposal.BaseUnknown, "to the end"},
		"a document that is cut":       {wroteXML(ran(1, says), oldTest("no", newTest[:10])), wroteXML(ran(1, says), oldTest("no", "")), proposal.BaseUnknown, "to the end"},
		"nothing but a broken one":     {wroteXML(ran(1, says), "<testsuite><testcase <<"), ran(1, says), proposal.BaseUnknown, "to the end"},
		"outside the tests":            {wroteXML(ran(1, says), oldTest("no", `<error message="afterAll broke">x</error>`)), wroteXML(ran(1, says), oldTest("no", "")), proposal.BaseNew, "outside its tests"},
		"without a name":               {wroteXML(ran(1, says), oldTest("no", `<testcase name=""><failure/></testcase>`)), wroteXML(ran(1, says), oldTest("no", "")), proposal.BaseNew, "without a name"},
		"the border of a name":         {wroteXML(ran(1, says), namedTests("Cart adds", "x")), wroteXML(ran(1, says), namedTests("Cart", "adds x")), proposal.BaseNew, "Cart adds x"},
		"blanks in a name":             {wroteXML(ran(1, says), namedTests("Cart", "a  b")), wroteXML(ran(1, says), namedTests("Cart", "a b")), proposal.BaseNew, "Cart a  b"},
		"a name with a number":         {wroteXML(ran(1, says), namedTests("Cart", "x", "x (2)")), wroteXML(ran(1, says), namedTests("Cart", "x", "x")), proposal.BaseNew, "Cart x (2)"},
		"a long name":                  {wrote(ran(1, says), strings.Repeat("p", 1200)+"A"), wrote(ran(1, says), strings.Repeat("p", 1200)+"B"), proposal.BaseUnknown, "too long"},
		"cut off there, other lines":   {wrote(ran(1, "a\n"), "old"), cut(wrote(ran(1, "b\n"), "old")), proposal.BaseDifferent, "other lines"},
	} {
		got := Compare(test.head, test.base)
		if got.Verdict != test.want || !strings.Contains(got.Why+strings.Join(got.New, ","), test.about) {
			t.Errorf("%s: %+v, want %s, %q", name, got, test.want, test.about)
		}
		if got.Verdict == proposal.BaseSame {
			test.head.Result.TestResults, test.base.Result.TestResults = proposal.Stream{}, proposal.Stream{}
			if alone := Compare(test.head, test.base); alone.Verdict != proposal.BaseSame {
				t.Errorf("%s: the files make the same of %q", name, alone.Verdict)
			}
		}
	}
}

// No failure is hidden behind many others that failed before, with a package's name or without.
func TestHiddenBehindMany(t *testing.T) {
	lanetest.SkipShort(t)
	for name, line := range map[string]string{
		"go":     "--- FAIL: Test%d (0.00s)\n",
		"pytest": "FAILED tests/test_a.py::test_%d - assert 1 == 2\n",
		"tap":    "not ok %d - t%[1]d\n",
		"plain":  "t%d is broken\n",
	} {
		for _, n := range []int{150, failure.MaxListed} {
			var b strings.Builder
			if name == "pytest" {
				b.WriteString("=== short test summary info ===\n")
			}
			for i := range n {
				fmt.Fprintf(&b, line, i+1)
			}
			end := "done\nwith\nit\n"
			old, more := b.String()+end, b.String()+fmt.Sprintf(line, n+1)+end
			if got := Compare(ran(1, old), ran(1, old)); got.Verdict != proposal.BaseSame {
				t.Errorf("%s, %d: %+v", name, n, got)
			}
			if got := Compare(ran(1, more), ran(1, old)); got.Verdict == proposal.BaseSame {
				t.Errorf("%s, %d and one more: %+v", name, n, got)
			}
		}
	}
}

// One command can run a runner several times: a new failure is not hidden by the list of a later run.
func TestSeveralRuns(t *testing.T) {
	for name, run := range map[string]struct{ first, fails, second string }{
		"mocha": {"\n  a\n    ✔ fine\n\n\n  1 passing (2ms)\n\n", "\n  a\n    1) breaks\n\n\n  0 passing (2ms)\n  1 failing\n\n  1) a\n       breaks:\n     Error: x\n      at Context.<anonymous> (a.js:3:1)\n\n",
			"\n  b\n    ✔ fine\n    1) old\n\n\n  1 passing (2ms)\n  1 failing\n\n  1) b\n       old:\n     Error: y\n      at Context.<anonymous> (b.js:3:1)\n\n"},
		"node": {"✔ fine (1ms)\nℹ fail 0\n", "✖ breaks (1ms)\nℹ fail 1\n\n✖ failing tests:\n\ntest at a.js:3:1\n✖ breaks (1ms)\n  Error: x\n", "✖ old (1ms)\nℹ fail 1\n\n✖ failing tests:\n\ntest at b.js:3:1\n✖ old (1ms)\n  Error: y\n"},
		"pytest": {"=== 1 passed in 0.1s ===\n", "=== FAILURES ===\n___ test_breaks ___\nE   assert 1 == 2\n=== short test summary info ===\nFAILED a/test_a.py::test_breaks - assert 1 == 2\n=== 1 failed in 0.1s ===\n",
			"=== FAILURES ===\n___ test_old ___\nE   assert 2 == 3\n=== short test summary info ===\nFAILED b/test_b.py::test_old - assert 2 == 3\n=== 1 failed in 0.1s ===\n"},
		"cargo": {"running 1 test\ntest fine ... ok\n\ntest result: ok. 1 passed\n\n", "running 1 test\ntest breaks ... FAILED\n\nfailures:\n\n---- breaks stdout ----\nthread 'breaks' panicked at src/lib.rs:3:9:\nx\n\nfailures:\n    breaks\n\ntest result: FAILED. 0 passed; 1 failed\n\n",
			"running 1 test\ntest old ... FAILED\n\nfailures:\n\n---- old stdout ----\nthread 'old' panicked at tests/b.rs:3:9:\ny\n\nfailures:\n    old\n\ntest result: FAILED. 0 passed; 1 failed\n\n"},
		"tap": {"ok 1 fine\n1..1\n", "not ok 1 breaks\n1..1\n", "not ok 1 old\nok 2 fine\nok 3 fine, too\n1..3\n"},
	} {
		if got := Compare(ran(1, run.first+run.second), ran(1, run.first+run.second)); got.Verdict != proposal.BaseSame {
			t.Errorf("%s: %+v", name, got)
		}
		if got := Compare(ran(1, run.fails+run.second), ran(1, run.first+run.second)); got.Verdict != proposal.BaseNew || !strings.Contains(strings.Join(got.New, ","), "breaks") {
			t.Errorf("%s, with a new failure in the first run: %+v", name, got)
		}
		if got := Compare(ran(1, run.first+run.second), ran(1, run.fails+run.second)); got.Verdict != proposal.BaseSame {
			t.Errorf("%s, with one fixed: %+v", name, got)
		}
	}
}

// Names are bounded: a hostile runner names as many as it likes, as long as it likes.
func TestManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "not ok %d - %s%d\n", i+1, strings.Repeat("ä", 190), i)
	}
	got := Compare(ran(1, b.String()), ran(1, "not ok 1 - old\n"))
	if got.Verdict != proposal.BaseNew || len(got.New) != valid.MaxNew || got.Omitted != 150 {
		t.Errorf("%s, %d names, %d omitted", got.Verdict, len(got.New), got.Omitted)
	}
	for _, name := range got.New {
		if len(name) > maxNewName || strings.ToValidUTF8(name, "") != name {
			t.Errorf("%q", name)
		}
	}
}

// The comparisons of a run's records, and of what was not started because of them.
func TestRecords(t *testing.T) {
	old, fresh, after := ran(1, "old\n"), ran(1, "new\n"), ran(-1, "")
	old.Proposal.ID, fresh.Proposal.ID, after.Proposal.ID = "old", "fresh", "after"
	after.Proposal.Needs, after.Result = []string{"old"}, &proposal.Result{Status: proposal.NotRun, Detail: `it needs "old", which did not succeed`}
	records := []proposal.Record{old, fresh, after}
	onBase := func(r proposal.Record, code int, out string) proposal.Record {
		b := ran(code, out)
		b.Proposal.ID = RunID(r.Proposal.ID)
		return b
	}
	setup := ran(0, "")
	setup.Proposal.ID, setup.Proposal.Origin = "setup-1~base", proposal.OriginSetup
	run := proposal.BaseRun{Records: []proposal.Record{setup, onBase(old, 1, "old\n"), onBase(fresh, 0, "")}}
	verdicts := func(run *proposal.BaseRun) (list []string) {
		for _, r := range CompareRecords(records, run, nil) {
			if r.Base == nil {
				list = append(list, "none")
				continue
			}
			list = append(list, r.Base.Verdict+r.Base.After)
		}
		return list
	}
	if diff := cmp.Diff([]string{"same", "passes", "sameold"}, verdicts(&run)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"none", "none", "none"}, verdicts(nil)); diff != "" {
		t.Errorf("without a base (-want +got):\n%s", diff)
	}
	run.Why = "it cannot be checked out"
	if diff := cmp.Diff([]string{"unknown", "unknown", "none"}, verdicts(&run)); diff != "" {
		t.Errorf("a base that is not there (-want +got):\n%s", diff)
	}
	run.Why, run.Records[0].Result.ExitCode = "", 1
	if diff := cmp.Diff([]string{"unknown", "unknown", "none"}, verdicts(&run)); diff != "" {
		t.Errorf("set-up fails on the base (-want +got):\n%s", diff)
	}
	after.Proposal.Needs = []string{"old", "fresh"}
	run.Records[0].Result.ExitCode = 0
	records[2] = after
	if diff := cmp.Diff([]string{"same", "passes", "none"}, verdicts(&run)); diff != "" {
		t.Errorf("it needs a new failure, too (-want +got):\n%s", diff)
	}
}

// A reporter that prints one line of JSON names failures in it, and tests that pass.
func TestReporterOfJSON(t *testing.T) {
	const passes = `{"ancestorTitles":["cart"],"title":"is empty","status":"passed","duration":%d,"failureMessages":[]},`
	const fails = `{"ancestorTitles":["cart"],"title":"%s","status":"failed","duration":%d,"failureMessages":["Error: expected 4, got 3\n    at Object.<anonymous> (/workspace/a.test.js:4:3)"]},`
	report := func(tests string) string {
		return `{"numFailedTests":1,"startTime":1795800699012,"testResults":[{"assertionResults":[` + strings.TrimSuffix(tests, ",") + `],"name":"/workspace/a.test.js","status":"failed"}]}` + "\n"
	}
	old := report(fmt.Sprintf(passes, 5) + fmt.Sprintf(fails, "adds", 24))
	for name, test := range map[string]struct{ head, want string }{
		"the same":              {report(fmt.Sprintf(passes, 12) + fmt.Sprintf(fails, "adds", 3)), proposal.BaseSame},
		"one more passes":       {report(fmt.Sprintf(passes, 12) + fmt.Sprintf(passes, 1) + fmt.Sprintf(fails, "adds", 3)), proposal.BaseSame},
		"another fails":         {report(fmt.Sprintf(passes, 5) + fmt.Sprintf(fails, "adds", 24) + fmt.Sprintf(fails, "removes", 2)), proposal.BaseNew},
		"another fails instead": {report(fmt.Sprintf(passes, 5) + fmt.Sprintf(fails, "removes", 2)), proposal.BaseNew},
		"without a report":      {"Killed\n", proposal.BaseDifferent},
	} {
		if got := Compare(ran(1, test.head), ran(1, old)); got.Verdict != test.want {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}
