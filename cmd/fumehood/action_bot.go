// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/bot"
	"github.com/fumehood/fumehood/pkg/comment"
	"github.com/fumehood/fumehood/pkg/github"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A wish is what a comment asks, as far as it could be read.
type wish struct {
	command bot.Command
	problem *bot.Problem
}

// addressed reports whether the comment asks anything of us: most comments do not,
// and cost nothing.
func (j *job) addressed() bool {
	if j.in.Request != "" {
		return true // judged in an earlier job
	}
	_, asks := j.readWish()
	return asks
}

// readWish reads a person's command, or the plan of a bot that the workflow names.
func (j *job) readWish() (wish, bool) {
	c := j.event.Comment
	if command, asks, problem := bot.Read(c.Body); asks {
		return wish{command, problem}, true
	}
	if !slices.Contains(j.in.AllowedBots, c.AuthorID) {
		return wish{}, false
	}
	document, found, problem := bot.FindPlan(c.Body)
	return wish{bot.Command{Name: "run", Plan: document}, problem}, found || problem != nil
}

// trigger judges the comment for the jobs that follow, which hold no right to write.
func (j *job) trigger() error {
	proceed, err := j.judge()
	if err != nil {
		return err
	}
	outputs := [][2]string{{"run", fmt.Sprint(proceed)}}
	if proceed {
		text, err := j.request.encode()
		if err != nil {
			return err
		}
		outputs = append(outputs, [2]string{"request", text})
	}
	for _, o := range outputs {
		if err := j.outputs.Set(o[0], o[1]); err != nil {
			return err
		}
	}
	return nil
}

// judge asks policy whether the comment's author may have what is asked, answers, and
// says whether something is to run; the request then says what.
func (j *job) judge() (proceed bool, err error) {
	w, _ := j.readWish()
	t, err := j.describeTrigger(w)
	if err != nil {
		return false, err
	}
	d, engine, err := j.decideTrigger(t)
	if err != nil {
		return false, err
	}
	j.noteTrigger(t, d, engine)
	if d.Effect != proposal.Allow {
		j.skipped = "policy does not allow it: " + ground(d)
		if t.Actor.Type == "Bot" {
			return false, nil // no answer that a bot could answer
		}
		if stranger(t.Actor) {
			j.react("-1")
			return false, nil
		}
		return false, j.answer(bot.Denied(t, d), "-1")
	}
	if w.problem != nil {
		j.skipped = "the comment cannot be read: " + w.problem.Message
		return false, j.answer(w.problem.Markdown(), "confused")
	}
	return j.fulfil(engine, w.command)
}

// ground is the first rule that a refusal rests on.
func ground(d proposal.Decision) string {
	for _, r := range d.Reasons {
		if !r.Observed {
			return r.Rule
		}
	}
	return "no rule allows it"
}

// stranger reports whether a is somebody whom anybody could be. They get a sign and no
// words: each answer changes the comment, and what changes cannot be approved at once.
func stranger(a proposal.Actor) bool {
	return !a.Author && (a.Permission == "none" || a.Permission == "read")
}

// describeTrigger gathers the facts: who the author is by the API, and what ran before.
func (j *job) describeTrigger(w wish) (proposal.Trigger, error) {
	c := j.event.Comment
	t := proposal.Trigger{Command: w.command.Name, Event: j.event.Name, Bots: append([]int64{}, j.in.AllowedBots...)}
	if w.problem != nil {
		t.Command = "help"
	}
	t.Actor = proposal.Actor{Login: c.AuthorLogin, ID: c.AuthorID, Type: c.AuthorType, Permission: "none", Author: c.AuthorID != 0 && c.AuthorID == j.pr.Author.ID}
	t.PR = proposal.TriggerPR{Number: j.pr.Number, State: j.pr.State, Draft: j.pr.Draft, Locked: j.pr.Locked, Fork: isFork(j.pr), Head: j.pr.Head.SHA}
	if c.AuthorType == "User" {
		p, err := j.hub.Permission(j.Ctx, c.AuthorLogin)
		if err != nil {
			return t, err
		}
		if p.UserID == c.AuthorID { // a login can change hands
			t.Actor.Permission = p.Level
		}
	}
	var err error
	t.Runs, err = j.countRuns(w.command)
	return t, err
}

// countRuns counts what comments have started before; only what starts costs a budget.
func (j *job) countRuns(c bot.Command) (proposal.TriggerRuns, error) {
	runs := proposal.TriggerRuns{MaxPR: j.in.MaxRunsPerPR, MaxDay: j.in.MaxRunsPerDay}
	if !c.Starts() {
		return runs, nil
	}
	k, err := j.keeper(j.Ctx)
	if err != nil {
		return runs, err
	}
	state, err := k.Read(j.Ctx)
	if err != nil {
		return runs, err
	}
	now := time.Now().UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	by, err := j.hub.CountWorkflowRuns(j.Ctx, "issue_comment", j.workflowFile(), midnight)
	if err != nil {
		return runs, err
	}
	runs.PR, runs.Day = state.Started(), -1 // this run is one of them
	for who, n := range by {
		counts, err := j.mayStart(who, len(by))
		if err != nil {
			return runs, err
		}
		if counts {
			runs.Day += n
		}
	}
	runs.Day = max(0, runs.Day)
	return runs, nil
}

// maxAsked is about how many people's rights are asked for: past that everybody counts.
const maxAsked = 50

// mayStart reports whether who could have started anything: what a stranger writes
// starts the workflow, but must not spend the day's budget of those who may.
func (j *job) mayStart(who github.Author, of int) (bool, error) {
	switch {
	case slices.Contains(j.in.AllowedBots, who.ID) || of > maxAsked || who.Login == "":
		return true, nil
	case who.Type != "User":
		return false, nil
	}
	p, err := j.hub.Permission(j.Ctx, who.Login)
	return slices.Contains([]string{"write", "maintain", "admin"}, p.Level), err
}

// workflowFile is this workflow's path in the repository, "" when the runner does not
// say.
func (j *job) workflowFile() string {
	ref, _, _ := strings.Cut(j.runner.WorkflowRef, "@")
	return strings.TrimPrefix(ref, j.runner.Repository+"/")
}

// decideTrigger asks the shipped policy first, so that a person sees within a second
// or two that something happens; then the repository's own, at the base commit.
func (j *job) decideTrigger(t proposal.Trigger) (proposal.Decision, *policy.Engine, error) {
	engine, err := newEngine(j.Ctx, policy.Options{})
	if err != nil {
		return proposal.Decision{}, nil, err
	}
	d, err := engine.Trigger(j.Ctx, t)
	if err != nil || d.Effect != proposal.Allow {
		return d, nil, err
	}
	j.react("eyes")
	j.request = request{Command: t.Command, PR: j.pr.Number, Head: j.pr.Head.SHA, Base: j.pr.Base.SHA, Comment: j.event.Comment.ID}
	if err := j.open(j.request.Base); err != nil {
		return d, nil, err
	}
	if err := j.readPolicy(); err != nil {
		return d, nil, err
	}
	if engine, err = j.engine(); err != nil {
		return d, nil, err
	}
	d, err = engine.Trigger(j.Ctx, t)
	return d, engine, err
}

// react is a courtesy: that it fails is told in the log, and stops nothing.
func (j *job) react(content string) {
	if j.in.Staged {
		return
	}
	if err := j.hub.React(j.Ctx, j.event.Comment.ID, content); err != nil {
		j.console.Warning("cannot react to the comment: " + err.Error())
	}
}

// answer writes to the notice of the one comment.
func (j *job) answer(text, reaction string) error {
	if reaction != "" {
		j.react(reaction)
	}
	return j.notify(comment.Notice{Comment: j.event.Comment.ID, Text: text})
}

func (j *job) notify(n comment.Notice) error {
	if j.in.Staged || !j.in.Comment {
		return j.summary.Write(n.Text + "\n")
	}
	if j.request.PR == 0 {
		j.request.PR = j.pr.Number
	}
	k, err := j.keeper(j.Ctx)
	if err != nil {
		return err
	}
	return j.heed(k.Notice(j.Ctx, n))
}

// fulfil does what was allowed, or makes it the request of what runs next.
func (j *job) fulfil(engine *policy.Engine, c bot.Command) (proceed bool, err error) {
	switch c.Name {
	case "help":
		return false, j.answer(bot.Help(), "")
	case "explain":
		return false, j.explain(engine, c)
	case "run":
		j.request.Plans = []planned{{Document: string(c.Plan), File: "the comment's plan"}}
	default:
		problem, err := j.again(engine, c)
		if problem != nil {
			j.skipped = problem.Message
			return false, j.answer(problem.Markdown(), "confused")
		}
		if err != nil {
			return false, err
		}
	}
	if problem := j.readable(); problem != nil {
		j.skipped = problem.Message
		return false, j.answer(problem.Markdown(), "confused")
	}
	j.react("rocket")
	text := fmt.Sprintf("`/fumehood %s` was accepted for commit `%.12s`. [The run](%s) is under way; its results will stand here.\n", c.Name, j.request.Head, j.runURL())
	return true, j.notify(comment.Notice{Comment: j.event.Comment.ID, Text: text, Start: j.runner.RunID, Time: time.Now()})
}

// readable says early what is wrong with a plan in a comment, with its place.
func (j *job) readable() *bot.Problem {
	for _, p := range j.request.Plans {
		if _, problems := plan.Decode([]byte(p.Document), p.File); len(problems) > 0 {
			return &bot.Problem{Message: "the plan was rejected as a whole", Text: plan.Describe(p.File, problems[0])}
		}
	}
	return nil
}

// last fetches what the comment on this pull request speaks of.
func (j *job) last(engine *policy.Engine) (comment.Standing, []leg, *bot.Problem, error) {
	k, err := j.keeper(j.Ctx)
	if err != nil {
		return comment.Standing{}, nil, nil, err
	}
	s, err := k.Standing(j.Ctx)
	if err != nil {
		return s, nil, nil, err
	}
	if s.State.Result == nil {
		return s, nil, &bot.Problem{Message: "nothing has run on this pull request yet"}, nil
	}
	legs, err := j.legsOf(engine, s.State.Result.Stamp)
	if err == nil && len(legs) == 0 {
		return s, nil, &bot.Problem{Message: "the artifacts of the last run are gone, or were refused; start a new one"}, nil
	}
	return s, legs, nil, err
}

// legsOf reads the artifacts of a run. What cannot be read, or would not be reported,
// is not there.
func (j *job) legsOf(engine *policy.Engine, s comment.Stamp) ([]leg, error) {
	run, err := j.hub.WorkflowRun(j.Ctx, s.RunID)
	if err != nil {
		return nil, err
	}
	artifacts, err := j.artifactsOf(s.RunID)
	if err != nil {
		return nil, err
	}
	var legs []leg
	for _, a := range artifacts {
		found, err := j.fetchLegs(a)
		for i := range found {
			l := &found[i]
			l.artifact.run, l.own = s.RunID, run.Event == "issue_comment" // whose workflow no pull request changes
			if err == nil {
				err = j.review(engine, s.Head, l)
			}
		}
		var gone *github.Error
		if errors.As(err, &gone) && gone.Kind != github.NotFound || err != nil && gone == nil && !refused(err) {
			return nil, err
		}
		if err == nil {
			legs = append(legs, found...)
		}
	}
	return legs, nil
}

// explain answers from the last report why a proposal was decided as it was: in the
// words of this repository's policy, or not at all.
func (j *job) explain(engine *policy.Engine, c bot.Command) error {
	_, legs, problem, err := j.last(engine)
	if err != nil {
		return err
	}
	var records []proposal.Record
	for _, l := range legs {
		if !l.own && !l.sure {
			problem = &bot.Problem{Message: "the last run was decided otherwise than this repository's policy decides now; run it again"}
			break
		}
		records = append(records, l.report.Records...)
	}
	if problem != nil {
		return j.answer(problem.Markdown(), "confused")
	}
	return j.answer(bot.Explain(records, c.ID), "")
}

// again makes the request for what was proposed before: rerun decides it anew, approve
// carries a person's word for what policy asked about.
func (j *job) again(engine *policy.Engine, c bot.Command) (*bot.Problem, error) {
	s, legs, problem, err := j.last(engine)
	if problem != nil || err != nil {
		return problem, err
	}
	for _, l := range legs {
		p := planned{Name: l.name, Document: string(l.document), File: planName}
		if c.Name == "approve" {
			waits, found := waiting(s.State, l)
			if !found {
				continue
			}
			approval, problem := j.approve(engine, c, s, waits, l)
			if problem != nil {
				return problem, nil
			}
			p.Name, p.Approval = waits.Name, &approval
		}
		j.request.Plans = append(j.request.Plans, p)
	}
	if len(j.request.Plans) == 0 {
		return &bot.Problem{Message: "nothing waits for an approval"}, nil
	}
	return nil, nil
}

// waiting finds what of l waits: the same plan, or what the artifact held before, so
// that another plan in its place is told.
func waiting(s comment.State, l leg) (comment.Pending, bool) {
	var there []comment.Pending
	for _, p := range s.Pending {
		if p.Artifact == l.artifact.name && p.RunID == l.artifact.run {
			there = append(there, p)
		}
	}
	i := slices.IndexFunc(there, func(p comment.Pending) bool { return p.PlanDigest == l.report.Run.PlanDigest })
	switch {
	case i >= 0:
		return there[i], true
	case len(there) == 1 && l.artifact.dir == "":
		return there[0], true
	}
	return comment.Pending{}, false
}

// approve binds the approval to what the comment showed, after checking that the plan
// in the artifact and the policy of this repository are still those.
func (j *job) approve(engine *policy.Engine, c bot.Command, s comment.Standing, waits comment.Pending, l leg) (proposal.Approval, *bot.Problem) {
	asked := bot.Asked{HeadSHA: s.State.Result.Head, PlanDigest: waits.PlanDigest, Policy: waits.Policy, Since: s.Since}
	voice := bot.Voice{Login: j.event.Comment.AuthorLogin, ID: j.event.Comment.AuthorID, URL: j.event.Comment.URL, Created: j.event.Comment.Created}
	approval, problem := bot.Approve(asked, c, voice, j.request.Head)
	switch {
	case problem != nil:
		return approval, problem
	case waits.ArtifactID != 0 && waits.ArtifactID != l.artifact.id:
		return approval, &bot.Problem{Message: "what was shown has been replaced by another artifact"}
	case l.report.Run.Cwd != j.folder():
		return approval, &bot.Problem{Message: "what was shown starts in another folder than it would now", Text: l.report.Run.Cwd}
	}
	p, problems := plan.Decode(l.document, planName)
	if len(problems) > 0 {
		return approval, &bot.Problem{Message: "the plan that was shown cannot be read any more"}
	}
	return approval, bot.Void(approval, proposal.Run{HeadSHA: j.request.Head, PlanDigest: p.Digest, Policy: engine.Digest()})
}
