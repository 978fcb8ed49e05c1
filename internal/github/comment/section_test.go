// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	lint      = Source{Workflow: "ci.yml", Job: "lint"}
	nightly   = Source{Workflow: "nightly.yml", Job: "unit"}
	linux     = Source{Workflow: "ci.yml", Job: "unit", Name: "linux"}
	requested = Source{Workflow: "bot.yml", Job: "report", Requester: "mona"}
	forks     = Source{Workflow: "ci.yml", Job: "unit", SelfReported: true}
)

// verdict is the first heading of the only comment.
func (c *conversation) verdict(t testing.TB) string {
	t.Helper()
	c.only(t)
	for line := range strings.Lines(c.by(c.token)[0].Body) {
		if strings.HasPrefix(line, "## ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// No green result replaces a red one of another source.
func TestRedStays(t *testing.T) {
	red := results(head1, 10, 1).red().at(100)
	for name, test := range map[string]struct {
		green Results
		want  string
	}{
		"another job":                          {results(head1, 10, 1).of(lint).at(101), "## ❌ fumehood: 1 failed, 1 succeeded"},
		"another workflow":                     {results(head1, 11, 1).of(nightly).at(102), "## ❌ fumehood: 1 failed, 1 succeeded"},
		"a named plan":                         {results(head1, 10, 1).of(linux).at(101), "## ❌ fumehood: 1 failed, 1 succeeded"},
		"a bot's run":                          {results(head1, 12, 1).of(requested).at(103), "## ❌ fumehood: 1 failed, 1 succeeded"},
		"a fork's run":                         {results(head1, 12, 1).of(forks).at(103), "## ❌ fumehood: 1 failed, the pull request's own run reports: 1 succeeded"},
		"an older run with a larger id":        {results(head1, 99, 1).at(50), "## ❌ fumehood: 1 failed"},
		"the same attempt of an unnamed leg":   {results(head1, 10, 1).at(200), "## ❌ fumehood: 1 failed"},
		"an earlier commit":                    {results(head2, 99, 1).of(lint).at(300), "## ❌ fumehood: 1 failed"},
		"a newer run with a smaller id":        {results(head1, 5, 1).at(101), "## ✅ fumehood: 1 succeeded"},
		"a second attempt":                     {results(head1, 10, 2).at(101), "## ✅ fumehood: 1 succeeded"},
		"a second attempt of an older run":     {results(head1, 9, 2).at(105), "## ✅ fumehood: 1 succeeded"},
		"an attempt by a clock that is behind": {results(head1, 10, 2).at(1), "## ✅ fumehood: 1 succeeded"},
	} {
		for _, order := range [][]Results{{red, test.green}, {test.green, red}} {
			c := newConversation()
			for _, r := range order {
				if o := c.keeper(t).ReplaceResults(background, r); o.Did == Refused {
					t.Fatalf("%s: %+v", name, o.Failure)
				}
			}
			if got := c.verdict(t); got != test.want {
				t.Errorf("%s, in order %v: %q, want %q", name, order[0].RunID == 10, got, test.want)
			}
		}
	}
}

// What a pull request can have made up has no mark of success, and no heading over it has one.
func TestSelfReportedIsNoSuccess(t *testing.T) {
	c := newConversation()
	c.keeper(t).ReplaceResults(background, results(head1, 10, 1).of(forks))
	if got := c.verdict(t); got != "## fumehood: 1 succeeded" {
		t.Errorf("alone: %q", got)
	}
	c.keeper(t).ReplaceResults(background, results(head1, 11, 1))
	if got := c.verdict(t); got != "## fumehood: 1 succeeded, the pull request's own run reports: 1 succeeded" {
		t.Errorf("beside a success: %q", got)
	}
}

// The heading is of the newest commit: what older ones had is listed below, whatever reports first.
func TestNewestCommit(t *testing.T) {
	c := newConversation()
	for _, r := range []Results{results(head1, 10, 1).red(), results(head1, 10, 1).of(lint)} {
		c.keeper(t).ReplaceResults(background, r)
	}
	c.pr.Head.SHA = head2
	if o := c.keeper(t).ReplaceNotice(background, answer(900)); o.Did != Updated {
		t.Fatalf("%+v", o)
	}
	if got := c.verdict(t); got != "## fumehood: no results for the newest commit `222222222222`" || !strings.Contains(c.comments[0].Body, "### ❌ `ci.yml / unit`: 1 failed · older commit `111111111111`") {
		t.Errorf("after a push: %q\n%s", got, c.comments[0].Body)
	}
	c.keeper(t).ReplaceResults(background, results(head2, 11, 1).of(lint))
	s := c.only(t)
	if got := c.verdict(t); got != "## ✅ fumehood: 1 succeeded" || len(s.Sections) != 1 || len(s.Earlier) != 1 || s.Earlier[0].Conclusion != "failure" {
		t.Errorf("with results: %q, %+v", got, s.State)
	}
	if !strings.Contains(c.comments[0].Body, "- commit `111111111111`: failure: 1 failed\n") {
		t.Errorf("the failure is not among earlier results:\n%s", c.comments[0].Body)
	}
	if o := c.keeper(t).ReplaceResults(background, results(head1, 99, 1).of(nightly).red().at(9)); o.Did != Superseded || c.verdict(t) != "## ✅ fumehood: 1 succeeded" {
		t.Errorf("a late result of an older commit: %s, %q", o.Did, c.verdict(t))
	}
}

// However many workflows a pull request adds, those of the repository and the persons' keep their
// sections. What is left out counts in the heading.
func TestPools(t *testing.T) {
	c := newConversation()
	c.keeper(t).ReplaceResults(background, results(head1, 10, 1).red())
	c.keeper(t).ReplaceResults(background, results(head1, 11, 1).of(requested))
	for i := range 3 * maxSections[poolSelfReported] {
		r := results(head1, int64(100+i), 1).of(Source{Workflow: fmt.Sprintf("w%d.yml", i), Job: "report", SelfReported: true}).red()
		r.Conclusion, r.Mark = "error", ""
		c.keeper(t).ReplaceResults(background, r)
	}
	s := c.only(t)
	for _, source := range []Source{unit, requested} {
		if x, there := s.findSection(source); !there || x.text == "" {
			t.Errorf("the section of %s is displaced", source.Label())
		}
	}
	if len(s.Sections) != 2+maxSections[poolSelfReported] || s.Omitted == nil || !strings.HasPrefix(c.verdict(t), "## ❌ fumehood: 1 failed, 1 succeeded, ") {
		t.Errorf("%d sections, %q", len(s.Sections), c.verdict(t))
	}
	c.keeper(t).ReplaceResults(background, results(head1, 10, 2))
	if got := c.verdict(t); !strings.HasPrefix(got, "## ⚠️ fumehood: 2 succeeded, ") {
		t.Errorf("with omitted sections: %q", got)
	}
	// The worst of a pool is never left out, and what was worse stays in the heading.
	c = newConversation()
	for i := range maxSections[poolWorkflow] + 1 {
		r := results(head1, 10, 1).of(Source{Workflow: "ci.yml", Job: fmt.Sprint("job", i)})
		if i > 0 {
			r = r.red()
		}
		c.keeper(t).ReplaceResults(background, r)
	}
	for i := range maxSections[poolWorkflow] + 1 {
		c.keeper(t).ReplaceResults(background, results(head1, 10, 2).of(Source{Workflow: "ci.yml", Job: fmt.Sprint("job", i)}))
	}
	if s := c.only(t); len(s.Sections) != maxSections[poolWorkflow] || s.Omitted == nil || !strings.HasPrefix(c.verdict(t), "## ") || strings.Contains(c.verdict(t), "✅") {
		t.Errorf("%d sections, %q", len(s.Sections), c.verdict(t))
	}
}

// waiting returns r with a plan that waits, whose section has n units.
func waiting(r Results, n int) Results {
	r.Conclusion, r.Mark, r.Title = "asked", "✋", ": 1 waiting for approval"
	r.Totals = proposal.Totals{Proposed: 1, Asked: 1}
	r.Pending = []Pending{{Name: r.Job, PlanDigest: digest("a"), Policy: digest("b"), RunID: r.RunID, Artifact: "fumehood"}}
	r.Asked = n
	r.Body = func(room Room) string {
		if !room.Askable {
			return "cannot be approved"
		}
		return strings.Repeat("approve\n", n/8)
	}
	return r
}

// A section that waits for approval is shown in full, whatever others show; where there is no room for
// that, it cannot be approved. Others share the rest.
func TestRoomIsShared(t *testing.T) {
	c := newConversation()
	long := func(job string) Results {
		r := results(head1, 10, 1).of(Source{Workflow: "ci.yml", Job: job}).red()
		r.Body = func(room Room) string { return strings.Repeat(strings.Repeat("x", 98)+"\n\n", room.Units/100) }
		return r
	}
	short := results(head1, 10, 1).of(lint)
	asks := func(job string) Results {
		return waiting(results(head1, 10, 1).of(Source{Workflow: "ci.yml", Job: job}), 20000)
	}
	for _, r := range []Results{long("a"), short, long("b"), asks("c"), long("d"), asks("e"), asks("f")} {
		if o := c.keeper(t).ReplaceResults(background, r); o.Did == Refused {
			t.Fatalf("%s: %+v", r.Job, o.Failure)
		}
	}
	s, units := c.only(t), map[string]int{}
	for _, x := range s.Sections {
		units[x.Job] = text.CountUnits(x.text)
	}
	if n := text.CountUnits(c.comments[0].Body); n > MaxBody || n < MaxBody-NoticeRoom-margin-1000 {
		t.Errorf("the body has %d units", n)
	}
	if units["c"] != 19999 || units["e"] != 19999 || units["lint"] != text.CountUnits("results of run 10.1") || len(s.PendingPlans()) != 2 {
		t.Errorf("units %v, %d wait", units, len(s.PendingPlans()))
	}
	if f, _ := s.findSection(Source{Workflow: "ci.yml", Job: "f"}); f.text != "cannot be approved" || f.Mark != "✋" {
		t.Errorf("what cannot be shown: %+v", f)
	}
	for _, job := range []string{"a", "b", "d"} {
		if x, _ := s.findSection(Source{Workflow: "ci.yml", Job: job}); units[job] < 1000 || !strings.HasSuffix(x.text, strings.TrimSpace(more)) {
			t.Errorf("%s has %d units", job, units[job])
		}
	}
}

// A plan that a person approved no longer waits, as soon as its run has a section, until its own source
// reports again.
func TestApproved(t *testing.T) {
	c := newConversation()
	c.keeper(t).ReplaceResults(background, waiting(results(head1, 10, 1).at(100), 800))
	c.keeper(t).ReplaceResults(background, results(head1, 10, 1).of(lint).at(100))
	if got := c.verdict(t); got != "## ✋ fumehood: 1 waiting for approval, 1 succeeded" {
		t.Errorf("before: %q", got)
	}
	r := results(head1, 12, 1).of(requested).at(110)
	r.Approved = []string{digest("a")}
	o := c.keeper(t).ReplaceResults(background, r)
	if got := c.verdict(t); got != "## ✅ fumehood: 2 succeeded" || len(o.State.PendingPlans()) != 0 || !strings.Contains(c.comments[0].Body, "· approved since") {
		t.Errorf("after: %q\n%s", got, c.comments[0].Body)
	}
	c.keeper(t).ReplaceResults(background, waiting(results(head1, 10, 2).at(120), 800))
	if got := c.verdict(t); got != "## ✋ fumehood: 1 waiting for approval, 2 succeeded" {
		t.Errorf("run again: %q", got)
	}
}

// What else a run had whose plans were approved counts, unless all of it ran again.
func TestApprovedRest(t *testing.T) {
	for name, test := range map[string]struct {
		rest proposal.Totals
		all  bool
		want string
	}{
		"all ran again":        {proposal.Totals{CouldNotRun: 1, Succeeded: 2}, true, "## ✅ fumehood: 1 succeeded"},
		"another plan's":       {proposal.Totals{CouldNotRun: 1}, false, "## ➖ fumehood: 1 could not run, 1 succeeded"},
		"failed before":        {proposal.Totals{FailedBefore: 1}, false, "## ➖ fumehood: 1 failed before, 1 succeeded"},
		"not started":          {proposal.Totals{NotRun: 1}, false, "## ❌ fumehood: 1 not run, 1 succeeded"},
		"successes of another": {proposal.Totals{Succeeded: 2}, false, "## ✅ fumehood: 3 succeeded"},
	} {
		c := newConversation()
		r := waiting(results(head1, 10, 1).at(100), 800)
		r.Totals, r.AllPending = r.Totals.Add(test.rest), test.all
		c.keeper(t).ReplaceResults(background, r)
		r = results(head1, 12, 1).of(requested).at(110)
		r.Approved = []string{digest("a")}
		c.keeper(t).ReplaceResults(background, r)
		if got := c.verdict(t); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A text is cut where nothing is open, so that it cannot fold the next section.
func TestCutBlocks(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		room int
		want string
	}{
		"fits":               {"a\n\nb", 9, "a\n\nb"},
		"between blocks":     {"<p>a</p>\n\n" + strings.Repeat("x", 60), 60, "<p>a</p>" + more},
		"in a fold":          {"<p>a</p>\n\n<details>\n\nb\n\n" + strings.Repeat("x", 60), 60, "<p>a</p>" + more},
		"in a fence":         {"<p>a</p>\n\n```\nb\n\n" + strings.Repeat("x", 60), 60, "<p>a</p>" + more},
		"a fold in a fence":  {"```\n<details>\n```\n\n" + strings.Repeat("x", 60), 60, "```\n<details>\n```" + more},
		"after a fold":       {"<details>\n\na\n\n</details>\n\n" + strings.Repeat("x", 60), 60, "<details>\n\na\n\n</details>" + more},
		"nothing whole fits": {strings.Repeat("x", 60), 50, "… (truncated)"},
		"no room":            {strings.Repeat("x", 60), 5, ""},
	} {
		if got := cutBlocks(test.text, test.room); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Fitting again changes nothing, and whatever arrives, a heading of each section is left.
func TestFitOfMany(t *testing.T) {
	lanetest.SkipShort(t)
	r := rand.New(rand.NewPCG(3, 4))
	l := layout{limit: MaxBody}
	for range sample.Rounds(t, 40, 6, 3) {
		s := some(r)
		for i := range s.Sections {
			x := &s.Sections[i]
			x.text = strings.TrimSpace(strings.Repeat("<p>x</p>\n\n", r.IntN(3000)))
			if x.Mark == "✋" {
				x.Pending = []Pending{{PlanDigest: digest("a"), Policy: digest("b"), RunID: 1}}
			}
		}
		fitted := l.fitSections(s, head1)
		body := fitted.bodyOf(t, head1)
		if n := text.CountUnits(body); n > MaxBody {
			t.Fatalf("%d units", n)
		}
		if again := l.fitSections(readSheet(body), head1).bodyOf(t, head1); again != body {
			t.Fatal("fitting again changes the comment")
		}
		for _, x := range fitted.Sections {
			if !strings.Contains(body, x.heading()+x.Title) && len(fitted.Sections) > 1 {
				t.Fatalf("no heading of %s", x.Label())
			}
		}
	}
}

// Two sources that cannot be written as they are never become one.
func TestNewSource(t *testing.T) {
	seen := map[Source]string{}
	for _, name := range []string{"", "unit", "unit>", "unit<", "unit_", strings.Repeat("u", 60), strings.Repeat("u", 61), strings.Repeat("u", 62), "ü", "@octocat", "a\nb", "`x`"} {
		s := NewSource(Source{Job: "j", Name: name})
		if err := s.check(); err != nil || seen[s] != "" {
			t.Errorf("%q: %v, as %q", name, err, seen[s])
		}
		seen[s] = name + "."
	}
}

// The comment as a reader sees it, below the state.
func TestGoldens(t *testing.T) {
	say := func(r Results, text string) Results { r.Body = func(Room) string { return text }; return r }
	nothing := results(head1, 12, 1).of(requested)
	nothing.Mark, nothing.Title, nothing.Totals = "➖", ": no commands were proposed", proposal.Totals{}
	for name, list := range map[string][]Results{
		"two_jobs": {say(results(head1, 10, 1).of(lint), "<p>Commit <code>111111111111</code></p>"),
			say(results(head1, 10, 1).red(), "<p>❌&nbsp;<b><code>test</code></b> exit&nbsp;1 · <code>npm test</code></p>")},
		"bot_beside_ci": {say(results(head1, 10, 1).red(), "<p>❌&nbsp;<b><code>test</code></b> exit&nbsp;1 · <code>npm test</code></p>"),
			say(results(head1, 12, 1).of(requested), "<p>✅&nbsp;<b><code>count</code></b> succeeded</p>")},
		"nothing_proposed": {say(results(head1, 10, 1).red(), "<p>❌&nbsp;<b><code>test</code></b> exit&nbsp;1 · <code>npm test</code></p>"),
			say(nothing, "<p><b>No commands were proposed.</b> Nothing to do.</p>")},
	} {
		c := newConversation()
		for _, r := range list {
			c.keeper(t).ReplaceResults(background, r)
		}
		_, shown, _ := strings.Cut(c.comments[0].Body, lineEnd+"\n"+noticeMark)
		golden.Compare(t, filepath.Join("testdata", name+".md"), []byte(noticeMark+shown+"\n"))
	}
}
