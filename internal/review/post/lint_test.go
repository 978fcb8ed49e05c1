// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/post"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// linted is the report of a command on w's head that printed out.
func (w *town) linted(code int, out string) proposal.Report {
	return proposal.Report{Run: proposal.Run{HeadSHA: w.head, BaseSHA: w.base}, Records: []proposal.Record{{
		Proposal: proposal.Proposal{ID: "lint", Run: "npm run lint"}, Decision: proposal.Decision{Effect: proposal.Allow},
		Result: &proposal.Result{Status: proposal.Exited, ExitCode: code, Stdout: proposal.Stream{Head: []byte(out), Bytes: int64(len(out))}},
	}}}
}

// lints is what the commands of reports say about the lines that GitHub shows as changed.
func (w *town) lints(source string, reports ...proposal.Report) review.Document {
	w.t.Helper()
	files, _, err := w.client(nil).Files(w.t.Context(), number)
	if err != nil {
		w.t.Fatal(err)
	}
	patches := map[string]string{}
	for _, f := range files {
		patches[f.Path] = f.Patch
	}
	return review.LintsOf(source, w.head, w.base, reports, review.PatchDiff(patches))
}

// The pull request of these tests adds lines 2 to 4 of shop.js and line 6 of calc.go.
const (
	shopBefore = "const a = 1\n\n\n\nconst z = 9\n"
	shopAfter  = "const a = 1\nvar b = 2\nvar  c = 3\nvar d = 4\n\n\n\nconst z = 9\n"
	calcBefore = "package calc\n\nfunc one() int {\n\treturn 1\n}\n"
	calcAfter  = "package calc\n\nfunc one() int {\n\treturn 1\n}\nfunc two() int { return  2 }\n"

	// What eslint and gofmt -d print.
	eslintSays = "/workspace/shop.js\n  1:7  error  'a' is assigned a value but never used  no-unused-vars\n" +
		"  2:1  error  Unexpected var, use let or const instead  no-var\n  4:1  error  Unexpected var, use let or const instead  no-var\n\n✖ 3 problems (3 errors, 0 warnings)\n"
	gofmtSays = "diff calc.go.orig calc.go\n--- calc.go.orig\n+++ calc.go\n@@ -3,4 +3,5 @@\n func one() int {\n \treturn 1\n }\n-func two() int { return  2 }\n+\n+func two() int { return 2 }\n"
)

func newLinted(t *testing.T) *town {
	return newTown(t, map[string]string{"shop.js": shopBefore, "calc.go": calcBefore}, map[string]string{"shop.js": shopAfter, "calc.go": calcAfter})
}

// What linters report on changed lines is posted once, with the changes that formatters print as
// suggestions. It is marked and resolved when it is gone, and findings are left alone.
func TestLints(t *testing.T) {
	lanetest.SkipShort(t)
	w := newLinted(t)
	w.mayResolve()
	both := eslintSays + gofmtSays
	d := w.lints("ci.yml lint", w.linted(1, both))
	if o := w.post(d); o.Created != 3 || o.Failure != nil || len(o.Notes) > 0 {
		t.Fatalf("%+v", o)
	}
	var got []string
	for _, c := range w.ReviewComments(number) {
		got = append(got, fmt.Sprintf("%s:%d", c.Path, c.Line))
		isFix := strings.Contains(c.Body, "```suggestion\n\nfunc two() int { return 2 }\n```")
		isRule := strings.Contains(c.Body, "**eslint**: ` no-var `") || strings.Contains(c.Body, "**eslint**: ``` no-var ```")
		if isFix != (c.Path == "calc.go") || isRule != (c.Path == "shop.js") || !strings.HasPrefix(c.Body, "<!-- fumehood:lint ") {
			t.Errorf("%s", c.Body)
		}
	}
	if s := fmt.Sprint(got); s != "[shop.js:2 shop.js:4 calc.go:6]" {
		t.Errorf("comments on %s", s)
	}
	for _, source := range []string{"ci.yml lint", "other.yml lint"} {
		if o := w.post(w.lints(source, w.linted(1, both))); o.Created+o.Updated != 0 || o.Failure != nil {
			t.Errorf("again by %s: %+v", source, o)
		}
	}
	// A finding is another kind, and lints are not findings that are still open.
	f := finding(3)
	f.File = "shop.js"
	if o := w.post(w.document(f)); o.Created != 1 || len(o.Open) != 0 {
		t.Errorf("a finding: %+v", o)
	}
	// One that is gone says so if everything ran, and comes back.
	cut := w.linted(1, gofmtSays)
	cut.Records[0].Result.Status, cut.Records[0].Result.Limit = proposal.TimedOut, "wall 1s"
	if o := w.post(w.lints("ci.yml lint", cut)); o.Updated != 0 {
		t.Errorf("timed out: %+v", o)
	}
	if o := w.post(w.lints("other.yml lint", w.linted(0, ""))); o.Updated != 0 {
		t.Errorf("nothing by another source: %+v", o)
	}
	if o := w.post(w.lints("ci.yml lint", w.linted(0, ""))); o.Updated != 3 || o.Threads != 3 || o.Created != 0 {
		t.Errorf("gone: %+v", o)
	}
	if c := w.ReviewComments(number)[0]; !strings.Contains(c.Body, "**No longer reported**") || strings.Contains(c.Body, "no-var") {
		t.Error(c.Body)
	}
	if o := w.post(w.lints("ci.yml lint", w.linted(1, eslintSays))); o.Updated != 2 || o.Threads != 2 || o.Created != 0 {
		t.Errorf("back: %+v", o)
	}
	if list := w.ReviewComments(number); len(list) != 4 || !strings.Contains(list[3].Body, "fumehood:finding") {
		t.Errorf("%d comments", len(list))
	}
}

// Nothing that is doubtful is posted: no line that the pull request does not change, no change of
// other lines than those of head, no hidden character, nothing of a command that did not run.
func TestDoubtfulLints(t *testing.T) {
	w := newLinted(t)
	hunk := func(names, lines string) string { return names + "@@ -6 +6 @@\n" + lines }
	const names = "--- a/calc.go\n+++ b/calc.go\n"
	old := "-func two() int { return  2 }\n"
	for name, out := range map[string]string{
		"an unchanged line":          "/workspace/shop.js\n  1:7  error  unused  no-unused-vars\n",
		"a line that is not there":   "/workspace/shop.js\n  99:7  error  unused  no-unused-vars\n",
		"another file":               "/workspace/other.js\n  2:1  error  unused  no-unused-vars\n",
		"no rule":                    "shop.js:2:1: error: something\n",
		"a change of other lines":    hunk(names, "-func two() int { return 99 }\n+func two() int { return 2 }\n"),
		"a change of unchanged ones": names + "@@ -4 +4 @@\n-\treturn 1\n+\treturn 3\n",
		"two files":                  hunk("--- calc.go\n+++ other.go\n", old+"+x\n"),
		"outside":                    hunk("--- ../../etc/passwd\n+++ ../../etc/passwd\n", old+"+x\n"),
		"an expected text":           hunk("--- expected\n+++ actual\n", old+"+x\n"),
		"a hunk that is cut":         names + "@@ -6,2 +6,2 @@\n" + old + "+x\n",
		"a wrong count":              names + "@@ -6 +6,9 @@\n" + old + "+x\n",
		"no line end":                hunk(names, old+"+x\n\\ No newline at end of file\n"),
		"a hidden character":         hunk(names, old+"+func two() int { return \u202e2 }\n"),
		"a control character":        hunk(names, old+"+func two() int { return \x1b[31m2 }\n"),
		"not UTF-8":                  hunk(names, old+"+func two() int { return \xff }\n"),
		"a long change":              hunk(names, old+"+"+strings.Repeat("x", 20<<10)+"\n"),
	} {
		if d := w.lints("ci", w.linted(1, out)); len(d.Results) != 0 {
			t.Errorf("%s: %+v", name, d.Results[0])
		}
	}
	good := w.linted(1, hunk(names, old+"+func two() int { return 2 }\n"))
	if d := w.lints("ci", good); len(d.Results) != 1 {
		t.Errorf("a change: %+v", d)
	}
	for name, change := range map[string]func(*proposal.Report){
		"denied":   func(r *proposal.Report) { r.Records[0].Decision.Effect = proposal.Deny },
		"asked":    func(r *proposal.Report) { r.Records[0].Decision.Effect = proposal.Ask },
		"withheld": func(r *proposal.Report) { r.Withheld = &proposal.Reason{Rule: "x"} },
		"redacted": func(r *proposal.Report) {
			r.Records[0].Result.Stdout.Redacted = []proposal.Redaction{{Rule: "jwt", Count: 1}}
		},
	} {
		r := w.linted(1, hunk(names, old+"+func two() int { return 2 }\n"))
		change(&r)
		if d := w.lints("ci", r); len(d.Results) != 0 {
			t.Errorf("%s: %+v", name, d.Results[0])
		}
	}
}

// However much linters report, a run posts few comments, and a pull request does not fill up.
func TestManyLints(t *testing.T) {
	lanetest.SkipShort(t)
	w := newTown(t, map[string]string{"f.js": "a\n"}, map[string]string{"f.js": "a\n" + numbered(300)})
	out := "/workspace/f.js\n"
	for i := range 300 {
		out += fmt.Sprintf("  %d:1  error  Bad %d @everyone ```  rule-%d\n", i+2, i, i)
	}
	for run := 1; run <= 7; run++ {
		o := w.post(w.lints("ci", w.linted(1, out)))
		want := post.MaxLints
		if run*post.MaxLints > post.MaxAllLints {
			want = 0
		}
		if o.Created != want || o.Failure != nil || len(o.Notes) != 1 {
			t.Errorf("run %d: %+v", run, o)
		}
	}
}
