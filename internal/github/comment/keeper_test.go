// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var background = context.Background()

func TestResultsStand(t *testing.T) {
	posted := func(rs ...Results) func(*testing.T, *conversation) {
		return func(t *testing.T, c *conversation) {
			for _, r := range rs {
				c.keeper(t).ReplaceResults(background, r)
			}
		}
	}
	pushed := func(c *conversation) { c.pr.Head.SHA = head2 }
	tests := []struct {
		name   string
		before func(*testing.T, *conversation)
		then   func(*conversation)
		say    Results
		did    WriteStatus
		stands string
		writes int
	}{
		{"no comment yet", nil, nil, results(head1, 10, 1), Posted, "10.1", 1},
		{"a larger run id", posted(results(head1, 10, 1)), nil, results(head1, 11, 1), Updated, "11.1", 1},
		{"a smaller run id", posted(results(head1, 10, 1)), nil, results(head1, 9, 9), Superseded, "10.1", 0},
		{"a larger attempt", posted(results(head1, 10, 1)), nil, results(head1, 10, 2), Updated, "10.2", 1},
		{"a smaller attempt", posted(results(head1, 10, 2)), nil, results(head1, 10, 1), Superseded, "10.2", 0},
		{"the present head, a smaller run id", posted(results(head1, 10, 1)), pushed, results(head2, 9, 1), Updated, "9.1", 1},
		{"an older head, a larger run id", posted(results(head1, 10, 1)), nil, results(head2, 11, 1), Superseded, "10.1", 0},
		{"neither is the present head", posted(results(head3, 10, 1)), pushed, results(head1, 11, 1), Updated, "11.1", 1},
		{"neither, and it is older", posted(results(head3, 10, 1)), pushed, results(head1, 9, 1), Superseded, "10.1", 1}, // the heading says that the commit is older
		{"the same again", posted(results(head1, 10, 1)), nil, results(head1, 10, 1), Unchanged, "10.1", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newConversation()
			if test.before != nil {
				test.before(t, c)
			}
			if test.then != nil {
				test.then(c)
			}
			c.ops = nil
			o := c.keeper(t).ReplaceResults(background, test.say)
			if o.Did != test.did {
				t.Errorf("got %s (%v), want %s", o.Did, o.Failure, test.did)
			}
			if s := c.only(t); s.texts() != "results of run "+test.stands {
				t.Errorf("%q stands", s.texts())
			}
			if n := c.count("create") + c.count("update"); n != test.writes {
				t.Errorf("%d writes, want %d: %v", n, test.writes, c.ops)
			}
			if o.ID != c.comments[0].ID || o.URL != c.comments[0].URL || o.Head != c.pr.Head.SHA {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func (c *conversation) count(op string) int {
	n := 0
	for _, x := range c.ops {
		if x == op {
			n++
		}
	}
	return n
}

func TestSameRunSaysMore(t *testing.T) {
	c := newConversation()
	r := results(head1, 10, 1)
	c.keeper(t).ReplaceResults(background, r)
	r.Body = func(Room) string { return "and now all of it" }
	if o := c.keeper(t).ReplaceResults(background, r); o.Did != Updated || c.only(t).texts() != "and now all of it" {
		t.Errorf("got %+v, %q", o, c.only(t).texts())
	}
}

func TestRoom(t *testing.T) {
	c := newConversation()
	for i, head := range []string{head1, head2} {
		c.pr.Head.SHA = head
		c.keeper(t).ReplaceResults(background, results(head, int64(10+i), 1))
	}
	c.pr.Head.SHA, c.pr.State = head3, "closed"
	var got Room
	r := results(head2, 12, 1)
	r.Body = func(room Room) string { got = room; return "x" }
	if o := c.keeper(t).ReplaceResults(background, r); o.Did != Updated {
		t.Fatalf("got %+v", o)
	}
	if got.Units < 50_000 {
		t.Errorf("only %d units", got.Units)
	}
	if diff := cmp.Diff(Room{Units: got.Units, Head: head3, Moved: true, Askable: true, Closed: true}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := "## fumehood: no results for the newest commit `333333333333`\n\n" + sectionMark + "\n### ✅ `ci.yml / unit`: 1 succeeded · older commit `222222222222`\n\nx\n\n" + endMark +
		"\n<details>\n<summary>Earlier results: 1</summary>\n\n- commit `111111111111`: success: 1 succeeded\n\n</details>"
	if _, results, _ := strings.Cut(c.comments[0].Body, resultsMark+"\n"); results != want {
		t.Errorf("%s", cmp.Diff(want, results))
	}
}

func TestEarlierResults(t *testing.T) {
	c := newConversation()
	var o Outcome
	for i := 1; i <= 9; i++ {
		head := fmt.Sprintf("%040d", (i+1)/2) // two runs per commit
		c.pr.Head.SHA = head
		r := results(head, int64(i), 1)
		r.Conclusion, r.Mark, r.Totals = "denied", "⛔", proposal.Totals{Proposed: i, Denied: 1}
		o = c.keeper(t).ReplaceResults(background, r)
	}
	var got []int64
	for _, r := range o.State.Earlier {
		got = append(got, r.RunID)
	}
	if diff := cmp.Diff([]int64{8, 6, 4, 2}, got); diff != "" {
		t.Errorf("the last run of each earlier commit, newest first: -want +got:\n%s", diff)
	}
	if r := o.State.Earlier[0]; r.Conclusion != "denied" || r.Totals != (proposal.Totals{Proposed: 8, Denied: 1}) {
		t.Errorf("got %+v", r)
	}
}

func TestPendingGoesWithItsResults(t *testing.T) {
	c := newConversation()
	r := results(head1, 10, 1)
	r.Conclusion, r.Mark = "asked", "✋"
	r.Pending = []Pending{{Name: "lint -- fast>", PlanDigest: digest("a"), Policy: digest("b"), RunID: 10, Artifact: "fumehood"}}
	c.keeper(t).ReplaceResults(background, r)
	c.keeper(t).ReplaceNotice(background, answer(900))
	got, err := c.keeper(t).Read(background)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Pending, got.PendingPlans()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if o := c.keeper(t).ReplaceResults(background, results(head1, 11, 1)); len(o.State.PendingPlans()) != 0 {
		t.Errorf("%v still waits", o.State.PendingPlans())
	}
}

func digest(hex string) string { return "sha256:" + strings.Repeat(hex, 64) }

func TestNotices(t *testing.T) {
	c := newConversation()
	k := c.keeper(t)
	k.ReplaceResults(background, results(head1, 10, 1))
	steps := []struct {
		name   string
		say    func() Outcome
		did    WriteStatus
		notice string
	}{
		{"an answer", func() Outcome { return k.ReplaceNotice(background, answer(900)) }, Updated, "answer to 900"},
		{"the same again", func() Outcome { return k.ReplaceNotice(background, answer(900)) }, Unchanged, "answer to 900"},
		{"to an earlier comment", func() Outcome { return k.ReplaceNotice(background, answer(899)) }, Superseded, "answer to 900"},
		{"to a later comment", func() Outcome { return k.ReplaceNotice(background, answer(901)) }, Updated, "answer to 901"},
		{"results that keep it", func() Outcome { return k.ReplaceResults(background, results(head1, 11, 1)) }, Updated, "answer to 901"},
		{"results that answer an earlier comment", func() Outcome { return k.ReplaceResults(background, answering(12, 900)) }, Updated, "answer to 901"},
		{"results that answer this comment", func() Outcome { return k.ReplaceResults(background, answering(13, 901)) }, Updated, ""},
		{"to the earlier comment again", func() Outcome { return k.ReplaceNotice(background, answer(900)) }, Superseded, ""},
		{"another answer to the same comment", func() Outcome { return k.ReplaceNotice(background, answer(901)) }, Updated, "answer to 901"},
		{"superseded results take it away", func() Outcome { return k.ReplaceResults(background, answering(12, math.MaxInt64)) }, Superseded, ""},
	}
	for _, step := range steps {
		if o := step.say(); o.Did != step.did {
			t.Errorf("%s: got %s (%v), want %s", step.name, o.Did, o.Failure, step.did)
		}
		s := c.only(t)
		if s.notice != step.notice {
			t.Errorf("%s: %q stands, want %q", step.name, s.notice, step.notice)
		}
		if !strings.HasPrefix(s.texts(), "results of run 1") {
			t.Errorf("%s: the results are %q", step.name, s.texts())
		}
	}
}

func answering(run, comment int64) Results {
	r := results(head1, run, 1)
	r.Answered = comment
	return r
}

func TestStartsAreCounted(t *testing.T) {
	c := newConversation()
	day := time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC)
	var o Outcome
	for i := range 100 {
		n := answer(int64(900 + i))
		n.Start, n.Time = int64(5000+i), day.Add(time.Duration(i/95)*time.Minute)
		o = c.keeper(t).ReplaceNotice(background, n)
	}
	if o.State.CountStarts() != 100 || len(o.State.Starts) > maxStarts || o.State.Starts[len(o.State.Starts)-1].Day != DayOf(day)+1 {
		t.Errorf("got %d, listed %v", o.State.CountStarts(), o.State.Starts)
	}
	n := answer(999)
	n.Start, n.Time = 5099, day
	if o = c.keeper(t).ReplaceNotice(background, n); o.State.CountStarts() != 100 {
		t.Errorf("a run that was counted before is counted again: %d", o.State.CountStarts())
	}
	n = answer(800) // too late for its text
	n.Start, n.Time = 5100, day
	if o = c.keeper(t).ReplaceNotice(background, n); o.State.CountStarts() != 101 || o.Did != Superseded {
		t.Errorf("got %d, %s", o.State.CountStarts(), o.Did)
	}
}

// TestSquatters: THREATS 26. Comments that only look like the bot's are not treated
// as its own.
func TestSquatters(t *testing.T) {
	state := sheet{State: State{Sections: []Section{section("unit", Result{Stamp: Stamp{Head: head1, RunID: 99, Attempt: 1}, Conclusion: "success"}, "✅", "all is well")}}}.bodyOf(t, head1)
	authors := []github.Author{
		person,
		{Login: "github-actions[bot]", ID: 41898283, Type: "Bot"},
		{Login: "github-actions[bot]", ID: 1, Type: "User"},
		{Login: "github-actions-bot", ID: 2, Type: "Bot"},
		{Login: "GitHub-Actions[bot]", ID: 3, Type: "Bot"},
		{Login: "my-github-actions[bot]", ID: 4, Type: "Bot"},
		{}, // a deleted account
	}
	c := newConversation()
	for _, a := range authors {
		c.post(a, state)
	}
	c.post(bot, "no marker")
	c.post(bot, "> "+state)
	c.post(bot, "\n"+state)
	c.post(bot, Marker+" and more")
	if s, err := c.keeper(t).Read(background); err != nil || s.Head() != "" {
		t.Errorf("got %+v, %v", s, err)
	}
	o := c.keeper(t).ReplaceResults(background, results(head1, 10, 1))
	if o.Did != Posted || o.Others != len(authors) {
		t.Errorf("got %s, %d others, want %d", o.Did, o.Others, len(authors))
	}
	if s := c.only(t); s.texts() != "results of run 10.1" {
		t.Errorf("%q stands", s.texts())
	}
}

// TestWorkflowByLogin: the server does not report the bot's id.
func TestWorkflowByLogin(t *testing.T) {
	c := newConversation()
	c.post(github.Author{Login: "github-actions[bot]", ID: 1, Type: "User"}, Marker)
	c.post(github.Author{Login: "Github-actions[bot]", ID: 2, Type: "Bot"}, Marker)
	k := c.keeper(t)
	k.Author = github.Author{Login: "github-actions[bot]", Type: "Bot"}
	if o := k.ReplaceResults(background, results(head1, 10, 1)); o.Did != Posted || o.Others != 2 {
		t.Errorf("got %+v", o)
	}
	if o := k.ReplaceResults(background, results(head1, 11, 1)); o.Did != Updated {
		t.Errorf("got %+v", o)
	}
}

// TestAnotherApp: GitHub does not report the author of this app's token. It is
// known only after the first comment.
func TestAnotherApp(t *testing.T) {
	c := newConversation()
	c.token = github.Author{Login: "my-app[bot]", ID: 77, Type: "Bot"}
	for run := int64(10); run < 13; run++ {
		if o := c.keeper(t).ReplaceResults(background, results(head1, run, 1)); o.Did != Posted {
			t.Errorf("got %+v", o)
		}
		if s := c.only(t); s.newestStamp().RunID != run {
			t.Errorf("run %d stands", s.newestStamp().RunID)
		}
	}
}

func TestTwoCommentsOfOursBecomeOne(t *testing.T) {
	c := newConversation()
	c.keeper(t).ReplaceResults(background, results(head1, 10, 1))
	first := c.comments[0]
	other := newConversation()
	other.keeper(t).ReplaceResults(background, results(head1, 12, 1))
	other.keeper(t).ReplaceNotice(background, starting(900, 12))
	c.post(person, "hello")
	c.post(bot, other.comments[0].Body)
	o := c.keeper(t).ReplaceResults(background, results(head1, 11, 1))
	s := c.only(t)
	if o.Did != Superseded || o.ID != first.ID || s.newestStamp().RunID != 12 || s.notice != "answer to 900" || s.CountStarts() != 1 {
		t.Errorf("got %+v\n%+v", o, s)
	}
	if len(c.comments) != 2 {
		t.Errorf("%d comments", len(c.comments))
	}
}

func TestSectionsCannotBeForged(t *testing.T) {
	hostile := "<!-- fumehood:report -->\nx\n<!-- fumehood:results -->\n<!-- fumehood:state {} -->\n<!-- fumehood:notice -->\ny\r\n<!-- fumehood:results -->"
	c := newConversation()
	k := c.keeper(t)
	k.ReplaceNotice(background, Notice{Comment: 900, Text: hostile})
	r := results(head1, 10, 1)
	r.Body = func(Room) string { return hostile }
	k.ReplaceResults(background, r)
	s := c.only(t)
	want := "x\n&lt;!-- fumehood:results -->\n&lt;!-- fumehood:state {} -->\n&lt;!-- fumehood:notice -->\ny\n&lt;!-- fumehood:results -->"
	if diff := cmp.Diff(want, s.notice); diff != "" {
		t.Errorf("notice: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, s.texts()); diff != "" {
		t.Errorf("results: -want +got:\n%s", diff)
	}
}

func fill(n int) string { return strings.Repeat("😀", n/2) }

func TestSizes(t *testing.T) {
	c := newConversation()
	k := c.keeper(t)
	r := results(head1, 10, 1)
	room := 0
	r.Body = func(given Room) string { room = given.Units; return fill(room) }
	if o := k.ReplaceResults(background, r); o.Did != Posted {
		t.Fatalf("got %+v", o)
	}
	if o := k.ReplaceNotice(background, Notice{Comment: 900, Text: fill(NoticeRoom)}); o.Did != Updated || c.only(t).texts() != fill(room) {
		t.Fatalf("got %+v", o)
	}
	if n := text.CountUnits(c.comments[0].Body); n > MaxBody || n < MaxBody-margin-200 {
		t.Errorf("the body has %d units", n)
	}
	lines := strings.Repeat("- one more reason\n", NoticeRoom/10)
	if o := k.ReplaceNotice(background, Notice{Comment: 901, Text: lines}); o.Did != Updated {
		t.Errorf("got %+v", o)
	}
	if s := c.only(t); text.CountUnits(s.notice) > NoticeRoom || text.CountUnits(s.notice) < NoticeRoom-20 || !strings.HasSuffix(s.notice, "reason"+more) {
		t.Errorf("%d units stand: %q", text.CountUnits(s.notice), s.notice)
	}
	r = results(head1, 11, 1)
	r.Body = func(room Room) string { return fill(room.Units) + "xx" }
	if o := k.ReplaceResults(background, r); o.Did != Refused || o.Failure.Code != "comment.too-long" {
		t.Errorf("got %+v", o)
	}
	if s := c.only(t); s.newestStamp().RunID != 10 || s.Notice.Comment != 901 {
		t.Errorf("what was refused has left a trace: %+v", s.State)
	}
}

func TestLessRoomWhenGitHubRefuses(t *testing.T) {
	c := newConversation()
	var rooms []int
	r := results(head1, 10, 1)
	r.Body = func(room Room) string { rooms = append(rooms, room.Units); return "x" }
	c.fail["create"] = []failure{{err: refusal(github.Invalid)}}
	if o := c.keeper(t).ReplaceResults(background, r); o.Did != Posted {
		t.Errorf("got %+v", o)
	}
	if len(rooms) != 2 || rooms[0]-rooms[1] != MaxBody/2 {
		t.Errorf("rooms %v", rooms)
	}
}

// TestUntrustedNames: names and counts from an untrusted report may cost it its
// approval, but not the comment.
func TestUntrustedNames(t *testing.T) {
	good := Pending{Name: "unit", PlanDigest: digest("a"), Policy: digest("b"), RunID: 1, Artifact: "fumehood-unit"}
	tests := []struct {
		name string
		f    func(*Pending)
	}{
		{"plan digest", func(p *Pending) { p.PlanDigest = "abc" }},
		{"policy digest", func(p *Pending) { p.Policy = "" }},
		{"run", func(p *Pending) { p.RunID = -1 }},
		{"artifact id", func(p *Pending) { p.ArtifactID = -1 }},
		{"name with a control", func(p *Pending) { p.Name = "a\nb" }},
		{"name with a bidi control", func(p *Pending) { p.Name = "a\u202eb" }},
		{"name that is not UTF-8", func(p *Pending) { p.Name = "a\xff" }},
		{"long name", func(p *Pending) { p.Name = strings.Repeat("x", 65) }},
		{"long artifact", func(p *Pending) { p.Artifact = strings.Repeat("x", 65) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bad := good
			test.f(&bad)
			r := results(head1, 10, 1)
			r.Pending, r.Totals.Asked = []Pending{bad, good}, maxCount+1
			askable := true
			r.Body = func(room Room) string { askable = room.Askable; return "x" }
			o := newConversation().keeper(t).ReplaceResults(background, r)
			if o.Did != Posted || o.State.PendingPlans() != nil || askable || o.State.Sections[0].Totals.Asked != maxCount {
				t.Errorf("got %s (%v), %+v", o.Did, o.Failure, o.State)
			}
		})
	}
	r := results(head1, 10, 1)
	for range 3 * MaxPending {
		r.Pending = append(r.Pending, good)
	}
	if o := newConversation().keeper(t).ReplaceResults(background, r); o.Did != Posted || o.State.PendingPlans() != nil {
		t.Errorf("got %s (%v), %d wait", o.Did, o.Failure, len(o.State.PendingPlans()))
	}
	r.Pending = r.Pending[:MaxPending]
	if o := newConversation().keeper(t).ReplaceResults(background, r); o.Did != Posted || len(o.State.PendingPlans()) != MaxPending {
		t.Errorf("got %s (%v), %d wait", o.Did, o.Failure, len(o.State.PendingPlans()))
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		name, text string
		room       int
		want       string
	}{
		{"fits", "abc\ndef", 7, "abc\ndef"},
		{"at a line", "abc\n" + strings.Repeat("x", 60), 60, "abc" + more},
		{"no line fits", strings.Repeat("x", 60), 55, more},
		{"in a fence", "````go\na\n```\n" + strings.Repeat("x", 80), 80, "````go\na\n```\n````" + more},
		{"behind a fence", "```\na\n```\n" + strings.Repeat("x", 80), 80, "```\na\n```" + more},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := cutAtLine(test.text, test.room); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A job that reports another workflow's run can be run again: its newer report of the same attempt
// replaces the older one, also a better one, and never the other way round.
func TestReportedAgain(t *testing.T) {
	k := newConversation().keeper(t)
	report := func(conclusion, mark string, at int64) Outcome {
		r := results(head1, 10, 1)
		r.SelfReported, r.Reported, r.Conclusion, r.Mark = true, at, conclusion, mark
		return k.ReplaceResults(background, r)
	}
	for _, step := range []struct {
		conclusion, mark string
		at               int64
		did              WriteStatus
		want             string
	}{
		{"error", "🛑", 100, Posted, "error"},
		{"success", "", 200, Updated, "success"},
		{"error", "🛑", 100, Superseded, "success"},
		{"failure", "❌", 200, Updated, "failure"}, // two of one moment: the worse
	} {
		o := report(step.conclusion, step.mark, step.at)
		if o.Did != step.did || len(o.State.Sections) != 1 || o.State.Sections[0].Conclusion != step.want {
			t.Errorf("%s at %d: %s (%v), %+v", step.conclusion, step.at, o.Did, o.Failure, o.State.Sections)
		}
	}
}
