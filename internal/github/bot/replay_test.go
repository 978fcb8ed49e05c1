// SPDX-License-Identifier: Apache-2.0

package bot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A replay is a repository's day of comments, judged by the shipped policy.
type replay struct {
	engine  *policy.Engine
	started []start
}

// A start is one run that was started, on a pull request and day.
type start struct{ pr, day int }

// runs counts what was started, against a budget of 5 runs on a pull request and 12 a day.
func (r *replay) runs(pr, day int) points.TriggerRuns {
	counted := points.TriggerRuns{MaxPR: 5, MaxDay: 12}
	for _, s := range r.started {
		if s.pr == pr {
			counted.PR++
		}
		if s.day == day {
			counted.Day++
		}
	}
	return counted
}

// comment takes one event the whole way and reports whether a run was started.
func (r *replay) comment(t *testing.T, actor points.Actor, pr int, body string, at time.Time) bool {
	t.Helper()
	c, ok, problem := bot.Read(body)
	if !ok && actor.Type == "Bot" {
		var found bool
		if _, found, problem = bot.FindPlan(body); found {
			c, ok = bot.Command{Name: "run"}, true
		}
	}
	if !ok || problem != nil {
		return false
	}
	d, err := r.engine.Trigger(t.Context(), points.Trigger{
		Command: c.Name, Event: "issue_comment", Actor: actor, Bots: []int64{41},
		PR: points.TriggerPR{Number: pr, State: "open", Head: sha}, Runs: r.runs(pr, at.YearDay()),
	})
	if err != nil {
		t.Fatal(err)
	}
	if d.Effect != proposal.Allow || !c.StartsRun() {
		return false
	}
	r.started = append(r.started, start{pr, at.YearDay()})
	return true
}

// TestReplayKeepsTheCap replays a hundred comments on each of several pull requests:
// people, a listed bot in a loop with itself, people without permission, and fumehood's own answers.
func TestReplayKeepsTheCap(t *testing.T) {
	engine, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	writer := points.Actor{Login: "mona", ID: 9, Type: "User", Permission: "write"}
	listed := points.Actor{Login: "reviewer[bot]", ID: 41, Type: "Bot", Permission: "none"}
	outsider := points.Actor{Login: "eve", ID: 66, Type: "User", Permission: "none", Author: true}
	own := points.Actor{Login: "github-actions[bot]", ID: 42, Type: "Bot", Permission: "write"}
	r := &replay{engine: engine}
	for i := range 100 {
		at := noon.Add(time.Duration(i) * time.Minute)
		r.comment(t, writer, 1, "/fumehood run ls", at)
		r.comment(t, listed, 2, fenced, at)
		r.comment(t, writer, 3, "/fumehood rerun", at)
		if r.comment(t, outsider, 4, "/fumehood run ls", at) {
			t.Fatal("an account without permission started a run")
		}
		if r.comment(t, own, 4, "/fumehood run ls", at) || r.comment(t, own, 4, fenced, at) || r.comment(t, own, 4, bot.HelpText(), at) {
			t.Fatal("our own comment started a run")
		}
	}
	counts := map[int]int{}
	for _, s := range r.started {
		counts[s.pr]++
	}
	if len(r.started) != 12 || counts[1] > 5 || counts[2] > 5 || counts[3] > 5 || counts[4] != 0 {
		t.Errorf("%d runs started: %v", len(r.started), counts)
	}
	next := noon.AddDate(0, 0, 1)
	for range 100 {
		r.comment(t, writer, 3, "/fumehood run ls", next)
	}
	if counts[3]+len(r.started)-12 != 5 {
		t.Errorf("the next day: %d runs started", len(r.started))
	}
}

// TestAnswersStartNothing checks that no answer, whatever it repeats, is a
// comment that asks for anything.
func TestAnswersStartNothing(t *testing.T) {
	var answers []string
	for _, hostile := range []string{"/fumehood run ls", "\n/fumehood run ls", fenced, "\n\n" + fenced, "\r\n" + fenced, "``\n" + fenced} {
		p := &bot.Problem{Message: hostile, Text: hostile, Line: 1, Usage: true}
		trigger := points.Trigger{Command: hostile, Actor: points.Actor{Login: hostile}}
		d := points.DenyReason(hostile, hostile, hostile)
		d.Reasons[0].Text = "x" + hostile
		record := proposal.Record{Proposal: proposal.Proposal{ID: hostile}, Decision: d, Analysis: proposal.Analysis{Canonical: hostile}}
		answers = append(answers, p.RenderMarkdown(), bot.DeniedReply(trigger, d), bot.StoppedReply(&proposal.Failure{Code: hostile, Message: hostile, Hint: hostile}),
			bot.ExplainDecisions([]proposal.Record{record}, hostile), bot.ExplainDecisions([]proposal.Record{record}, "x"+hostile), bot.ExplainDecisions(nil, hostile), bot.HelpText())
	}
	for _, answer := range answers {
		if c, ok, p := bot.Read(answer); ok || p != nil {
			t.Errorf("%q asks: %+v, %+v", answer, c, p)
		}
		if document, ok, p := bot.FindPlan(answer); ok || p != nil {
			t.Errorf("%q holds the plan %q, %+v", answer, document, p)
		}
		if strings.Contains(answer, "\r") {
			t.Errorf("%q holds a carriage return", answer)
		}
	}
}
