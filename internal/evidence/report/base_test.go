// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/watch/baseline"
	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A report cannot say that a failure is the base's where its records do not, or give a record of the
// base that is not one.
func TestForgedBase(t *testing.T) {
	changeBase := func(r *proposal.Report, change func(*proposal.Record)) {
		b := *r.Base
		b.Records = slices.Clone(b.Records)
		change(&b.Records[0])
		r.Base = &b
	}
	changeHead := func(r *proposal.Report, base *proposal.Comparison) {
		r.Records = slices.Clone(r.Records)
		r.Records[0].Base = base
	}
	same := &proposal.Comparison{Verdict: proposal.BaseSame}
	withhold := func(r *proposal.Report) {
		bare := func(list []proposal.Record) []proposal.Record {
			list = slices.Clone(list)
			for i := range list {
				result := *list[i].Result
				result.Stdout.Head, result.Stdout.Tail, result.Stderr.Head, result.Stderr.Tail = nil, nil, nil, nil
				list[i].Result = &result
			}
			return list
		}
		base := *r.Base
		base.Records = bare(base.Records)
		r.Records, r.Base = bare(r.Records), &base
		r.Withheld = &proposal.Reason{Rule: "output.withheld", Effect: proposal.Deny, Message: "policy withholds it", Command: -1}
	}
	for name, test := range map[string]struct {
		change func(*proposal.Report)
		where  string // "" if it is accepted
	}{
		"as it is":           {func(*proposal.Report) {}, ""},
		"without comparison": {func(r *proposal.Report) { changeHead(r, nil) }, ""},
		"no base":            {func(r *proposal.Report) { r.Base = nil }, "records[0].base"},
		"the base passes": {func(r *proposal.Report) {
			changeBase(r, func(b *proposal.Record) { result := *b.Result; result.ExitCode = 0; b.Result = &result })
		}, "records[0].base"},
		"the base prints nothing": {func(r *proposal.Report) {
			changeBase(r, func(b *proposal.Record) { result := *b.Result; result.Stdout = stream(""); b.Result = &result })
		}, "records[0].base"},
		"a new failure here": {func(r *proposal.Report) {
			r.Records = slices.Clone(r.Records)
			r.Records[0] = ran("old", "go test ./stats", proposal.Exited, 1, strings.ReplaceAll(oldTest, "TestOld", "TestNew"), "")
			r.Records[0].Base = same
		}, "records[0].base"},
		"not started, after a failure of its own": {func(r *proposal.Report) {
			changeHead(r, &proposal.Comparison{Verdict: proposal.BaseSame, After: "fine"})
		}, "after"},
		"withheld":              {withhold, ""},
		"withheld, and no base": {func(r *proposal.Report) { withhold(r); r.Base = nil }, "records[0].base"},
		"withheld, and the base passes": {func(r *proposal.Report) {
			withhold(r)
			changeBase(r, func(b *proposal.Record) { result := *b.Result; result.ExitCode = 0; b.Result = &result })
		}, "records[0].base"},
		"withheld, and the base was not tried": {func(r *proposal.Report) {
			withhold(r)
			r.Base.Why = "it cannot be checked out"
		}, "records[0].base"},
		"an unknown verdict":  {func(r *proposal.Report) { changeHead(r, &proposal.Comparison{Verdict: "fine"}) }, "records[0].base.verdict"},
		"of another command":  {func(r *proposal.Report) { changeBase(r, func(b *proposal.Record) { b.Proposal.ID = "other~base" }) }, "base.records[0].proposal.id"},
		"with a command's id": {func(r *proposal.Report) { changeBase(r, func(b *proposal.Record) { b.Proposal.ID = "old" }) }, "base.records[0].proposal.id"},
		"with a comparison":   {func(r *proposal.Report) { changeBase(r, func(b *proposal.Record) { b.Base = same }) }, "base.records[0]"},
		"not a commit":        {func(r *proposal.Report) { b := *r.Base; b.Commit = "main"; r.Base = &b }, "base.commit"},
		"too many new names": {func(r *proposal.Report) {
			changeHead(r, &proposal.Comparison{Verdict: proposal.BaseNew, New: make([]string, valid.MaxNew+1)})
		}, "records[0].base.new"},
	} {
		r := failedBeforeOnly()
		test.change(&r)
		r.Totals = proposal.Total(r.Records)
		_, err := Read(document(t, r), maxRead)
		switch {
		case test.where == "after": // the record ran: the comparison has no effect, or is refused
			if err == nil && r.Totals.FailedBefore > 0 {
				t.Errorf("%s: excused", name)
			}
		case test.where == "" && err != nil, test.where != "" && (err == nil || !strings.Contains(err.Error(), test.where)):
			t.Errorf("%s: %v, want %q", name, err, test.where)
		}
	}
}

// The line of a command with a new failure is the new one's, in whichever list of a runner it is.
func TestLineOfNewFailure(t *testing.T) {
	const old = "not ok 1 - old\n  ---\n  location: '/workspace/a.js:1:1'\n  error: 'x'\n  ...\n1..1\n"
	fresh := strings.ReplaceAll(strings.ReplaceAll(old, "a.js", "b.js"), "old", "fresh")
	r := failedBeforeOnly()
	base := *r.Base
	base.Records = slices.Clone(base.Records)
	r.Records, r.Base = slices.Clone(r.Records), &base
	r.Records[0] = ran("old", "npm test", proposal.Exited, 1, old+fresh, "")
	result := *ran("old", "npm test", proposal.Exited, 1, old+"ok 1 - fresh\n1..1\n", "").Result
	base.Records[0].Result = &result
	r.Records = baseline.CompareRecords(r.Records, r.Base, nil)
	if got := r.Records[0].Base; got.Verdict != proposal.BaseNew || got.Old != 1 {
		t.Fatalf("%+v", got)
	}
	page := Page{Parts: []Part{{Report: r}}, Files: []string{"a.js", "b.js"}}.withCauses()
	page.tree = failure.NewTree(page.Files, true)
	found := page.onlyNew(r, r.Records[0], failuresOf(r, r.Records[0], page.tree))
	if len(found) != 1 || found[0].Test != "fresh" {
		t.Errorf("lines %+v", found)
	}
	list, _ := Annotations(r, page.Files)
	if len(list) != 1 || list[0].Path != "b.js" {
		t.Errorf("annotations %+v", list)
	}
}

// What fails on the base, too, is neutral at every door, and no line is blamed for it.
func TestFailedBeforeIsNeutral(t *testing.T) {
	r := failedBeforeOnly()
	files := []string{"stats_test.go", "parse_test.go"}
	if check := (Page{Parts: []Part{{Report: r}}}).Check(); check.Conclusion != "neutral" || check.Title != "fumehood: 1 failed before, 1 succeeded" {
		t.Errorf("%s, %q", check.Conclusion, check.Title)
	}
	if list, _ := Annotations(r, files); len(list) > 0 {
		t.Errorf("annotations %v", list)
	}
	if md := Markdown(r); strings.Contains(md, "❌") || !strings.Contains(md, failsBefore) || !strings.Contains(md, "base stdout") {
		t.Errorf("the comment:\n%s", md)
	}
	r = failedBefore()
	if check := (Page{Parts: []Part{{Report: r}}}).Check(); check.Conclusion != "failure" {
		t.Errorf("with new failures: %s", check.Conclusion)
	}
	var lines []string
	list, _ := Annotations(r, files)
	for _, a := range list {
		lines = append(lines, a.Path+" "+a.Message)
	}
	if got := strings.Join(lines, "|"); !strings.Contains(got, "got 2") || !strings.Contains(got, "got 3") || strings.Contains(got, "got 1") {
		t.Errorf("annotations %s", got)
	}
	list, _ = Annotations(asExpected(), files)
	if check := (Page{Parts: []Part{{Report: asExpected()}}}).Check(); len(list) > 0 || check.Conclusion != "failure" {
		t.Errorf("as expected: %v, %s", list, check.Conclusion)
	}
	r.Withheld = &proposal.Reason{Rule: "output.withheld", Message: "no"}
	if md := Markdown(r); strings.Contains(md, "TestNew") || !strings.Contains(md, "fails here and not on") {
		t.Errorf("names of withheld output:\n%s", md)
	}
}

// A run that is cancelled while the base runs has all results, and says what is missing.
func TestCancelledComparison(t *testing.T) {
	r := proposal.Report{Run: proposal.Run{ID: "1"}, Records: []proposal.Record{ran("old", "go test ./stats", proposal.Exited, 1, oldTest, "")},
		Error: &proposal.Failure{Code: "run.cancelled", Message: "the run ended before the comparison with the base was done"},
		Base:  &proposal.BaseRun{Commit: strings.Repeat("b", 40), Why: "the run ended before it was compared"}}
	page := Comment(r, config.Comment{})
	if !strings.Contains(page, "before the comparison with the base was done") || strings.Contains(page, "for the rest") || !strings.Contains(page, "go test ./stats") {
		t.Error(page)
	}
	r.Base = nil
	if page := Comment(r, config.Comment{}); !strings.Contains(page, "run it again for the rest") {
		t.Error(page)
	}
}
