// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Trigger checks whether policy allows what a comment requests, and answers the comment.
type Trigger struct {
	Job  *Job
	Task Task
	Base *Base
}

func (t Trigger) conversation() conversation {
	return conversation{t.Job, t.Task.PR.Number}
}

// A commentCommand is what a comment requests, as far as it can be read.
type commentCommand struct {
	command bot.Command
	problem *bot.Problem
}

// addressed reports whether the comment requests anything. Most comments do not, and
// cost no request to the API.
func (j *Job) addressed() bool {
	if j.in.Request != "" {
		return true // judged in an earlier job
	}
	_, asks := j.readComment()
	return asks
}

// readComment reads a person's command, or the plan of a bot that the workflow names.
func (j *Job) readComment() (commentCommand, bool) {
	c := j.event.Comment
	if command, asks, problem := bot.Read(c.Body); asks {
		return commentCommand{command, problem}, true
	}
	if !slices.Contains(j.in.AllowedBots, c.AuthorID) {
		return commentCommand{}, false
	}
	document, found, problem := bot.FindPlan(c.Body)
	return commentCommand{bot.Command{Name: "run", Plan: document}, problem}, found || problem != nil
}

// Do asks policy, answers the comment, and returns the Request to run. An Outcome without
// plans runs nothing: Skipped says why, or is "" when the comment has its answer.
func (t Trigger) Do(ctx context.Context) (Outcome, error) {
	o := Outcome{Request: t.request("help")} // which has no plans
	command, _ := t.Job.readComment()
	facts, err := t.facts(ctx, command)
	if err != nil {
		return o, err
	}
	d, engine, err := t.decide(ctx, &facts, command.command)
	if err != nil {
		return o, err
	}
	o.asked = t.noteDecision(facts, d, engine)
	switch {
	case d.Effect != proposal.Allow:
		o.Skipped = "policy does not allow it: " + firstRule(d)
		return o, t.refuse(ctx, facts, d)
	case command.problem != nil:
		o.Skipped = "invalid comment: " + command.problem.Message
		return o, t.conversation().answer(ctx, command.problem.RenderMarkdown(), "confused")
	}
	o.Request = t.request(facts.Command)
	return t.carryOut(ctx, o, engine, command.command)
}

// request is an empty Request of this comment, on the pull request's present commit.
func (t Trigger) request(command string) Request {
	pr := t.Task.PR
	return Request{Command: command, PR: pr.Number, Head: pr.Head.SHA, Base: pr.Base.SHA, HeadRef: pr.Head.Ref,
		BaseRef: pr.Base.Ref, Comment: t.Job.event.Comment.ID}
}

// refuse answers what policy does not allow. A bot gets no text, which it could answer;
// an author without permissions gets only a reaction: text would replace the answer to others.
func (t Trigger) refuse(ctx context.Context, facts points.Trigger, d proposal.Decision) error {
	switch {
	case facts.Actor.Type == "Bot":
		return nil
	case noWriteAccess(facts.Actor):
		t.conversation().react(ctx, "-1")
		return nil
	}
	return t.conversation().answer(ctx, bot.DeniedReply(facts, d), "-1")
}

// firstRule returns the first rule that refused.
func firstRule(d proposal.Decision) string {
	for _, r := range d.Reasons {
		if !r.Observed {
			return r.Rule
		}
	}
	return "no rule allows it"
}

// noWriteAccess reports whether a can write neither to the repository nor to the pull
// request, as any account can.
func noWriteAccess(a points.Actor) bool {
	return !a.Author && (a.Permission == "none" || a.Permission == "read")
}

// facts gathers what policy decides by, except for what ran before: who the author is by the
// API, and the pull request.
func (t Trigger) facts(ctx context.Context, c commentCommand) (points.Trigger, error) {
	j, pr := t.Job, t.Task.PR
	facts := points.Trigger{Command: c.command.Name, Event: j.event.Name, Bots: append([]int64{}, j.in.AllowedBots...)}
	if c.problem != nil {
		facts.Command = "help"
	}
	facts.PR = points.TriggerPR{Number: pr.Number, State: pr.State, Draft: pr.Draft, Locked: pr.Locked,
		Fork: isFork(pr), Head: pr.Head.SHA}
	facts.Runs = points.TriggerRuns{MaxPR: j.in.MaxRunsPerPR, MaxDay: j.in.MaxRunsPerDay}
	var err error
	facts.Actor, err = t.actor(ctx)
	return facts, err
}

// actor is the comment's author. Only a person's permission is read, and it counts only
// if the login still belongs to the account that wrote: a login can change hands.
func (t Trigger) actor(ctx context.Context) (points.Actor, error) {
	c := t.Job.event.Comment
	a := points.Actor{Login: c.AuthorLogin, ID: c.AuthorID, Type: c.AuthorType, Permission: "none",
		Author: c.AuthorID != 0 && c.AuthorID == t.Task.PR.Author.ID}
	if c.AuthorType != "User" {
		return a, nil
	}
	p, err := t.Job.permission(ctx, c.AuthorLogin)
	if err == nil && p.UserID == c.AuthorID {
		a.Permission = p.Level
	}
	return a, err
}

// readState returns the state of the pull request's comment, as it was when the step first asked.
func (t Trigger) readState(ctx context.Context) (comment.State, error) {
	j := t.Job
	if j.known.state != nil {
		return *j.known.state, nil
	}
	k, err := t.conversation().keeper(ctx)
	if err != nil {
		return comment.State{}, err
	}
	state, err := k.Read(ctx)
	if err != nil {
		return comment.State{}, err
	}
	j.known.state = &state
	return state, nil
}

// countRuns counts in runs what comments have started before.
func (t Trigger) countRuns(ctx context.Context, runs *points.TriggerRuns) error {
	j := t.Job
	state, err := t.readState(ctx)
	if err != nil {
		return err
	}
	by, err := j.gh.CountWorkflowRuns(ctx, action.CommentEvents, j.workflowFile(), midnight(time.Now()))
	if err != nil {
		return err
	}
	runs.PR = state.CountStarts()
	runs.Day, err = dayRuns(by, j.in.AllowedBots, func(login string) (string, error) {
		p, err := j.permission(ctx, login)
		return p.Level, err
	})
	return err
}

// decide evaluates the shipped policy first, so that a person sees a reaction within a
// second or two, then this repository's. The engine is nil when the shipped policy
// refused. What ran before is counted only for a command that starts a run and that the
// shipped policy otherwise allows: anyone can comment, and counting takes many requests.
func (t Trigger) decide(
	ctx context.Context, facts *points.Trigger, c bot.Command,
) (proposal.Decision, *policy.Engine, error) {
	shipped, err := t.Job.options.Compile(ctx, policy.Options{})
	if err != nil {
		return proposal.Decision{}, nil, err
	}
	d, err := shipped.Trigger(ctx, *facts)
	if err == nil && d.Effect == proposal.Allow && c.StartsRun() {
		if err = t.countRuns(ctx, &facts.Runs); err == nil {
			d, err = shipped.Trigger(ctx, *facts)
		}
	}
	if err != nil || d.Effect != proposal.Allow {
		return d, nil, err
	}
	t.conversation().react(ctx, "eyes")
	engine, err := t.Base.compileEngine(ctx, t.Task)
	if err != nil {
		return d, nil, err
	}
	d, err = engine.Trigger(ctx, *facts)
	return d, engine, err
}

// carryOut answers what was allowed, or adds to o what is to run.
func (t Trigger) carryOut(ctx context.Context, o Outcome, engine *policy.Engine, c bot.Command) (Outcome, error) {
	switch c.Name {
	case "help":
		return o, t.conversation().answer(ctx, bot.HelpText(), "")
	case "explain":
		return o, t.explain(ctx, engine, c)
	}
	plans, problem, err := t.plans(ctx, engine, c)
	if err != nil {
		return o, err
	}
	if problem != nil {
		o.Skipped = problem.Message
		return o, t.conversation().answer(ctx, problem.RenderMarkdown(), "confused")
	}
	o.Request.Plans = plans
	return o, t.accept(ctx, c)
}

// accept answers that a run has started, and counts it.
func (t Trigger) accept(ctx context.Context, c bot.Command) error {
	j := t.Job
	t.conversation().react(ctx, "rocket")
	text := fmt.Sprintf("`/fumehood %s` was accepted for commit `%.12s`. [Running](%s). Results will appear here.\n",
		c.Name, t.Task.PR.Head.SHA, j.runURL(j.runID()))
	return t.conversation().notify(ctx,
		comment.Notice{Comment: j.noticeID(), Text: text, Start: j.runner.RunID, Time: time.Now()})
}

// plans are what c starts. A plan that cannot be read is a problem here already, so that
// its author sees the place.
func (t Trigger) plans(
	ctx context.Context, engine *policy.Engine, c bot.Command,
) (plans []Planned, problem *bot.Problem, err error) {
	switch c.Name {
	case reviewCommand:
		return nil, t.checkReviewer(), nil
	case "run":
		plans = []Planned{{Document: string(c.Plan), File: "the comment's plan"}}
	default:
		if plans, problem, err = t.repeat(ctx, engine, c); problem != nil || err != nil {
			return nil, problem, err
		}
	}
	for _, p := range plans {
		decoded, problems := plan.Decode([]byte(p.Document), p.File)
		if len(problems) > 0 {
			return nil, &bot.Problem{Message: "the whole plan was rejected", Text: plan.Describe(p.File, problems[0])},
				nil
		}
		if nothingValid(decoded) {
			return nil, &bot.Problem{Message: "no proposal of the plan is valid",
				Text: plan.Describe(p.File, decoded.Refused()[0])}, nil
		}
	}
	return plans, nil, nil
}

// checkReviewer refuses a review in a workflow without a reviewer.
func (t Trigger) checkReviewer() *bot.Problem {
	if t.Job.in.Reviewer {
		return nil
	}
	return &bot.Problem{Message: "this repository's workflow has no AI reviewer; copy one of .github/examples/review-*.yml of fumehood's repository"}
}

func nothingValid(p proposal.Plan) bool {
	return !slices.ContainsFunc(p.Proposals, func(one proposal.Proposal) bool { return one.Invalid == nil })
}

// repeat plans what was proposed before: rerun decides it anew, approve adds a person's
// approval for what policy asks about.
func (t Trigger) repeat(ctx context.Context, engine *policy.Engine, c bot.Command) ([]Planned, *bot.Problem, error) {
	s, runs, problem, err := t.last(ctx, engine, c)
	if problem != nil {
		problem.Usage = c.Name == "approve" && c.Digits == ""
	}
	if problem != nil || err != nil {
		return nil, problem, err
	}
	if c.Name == "approve" {
		now := current{approver: t.approver(), head: t.Task.PR.Head.SHA, policy: engine.Digest(), cwd: t.Job.cwd()}
		plans, problem := approve(c, questionsOf(s), runs, now)
		return plans, problem, nil
	}
	var plans []Planned
	for _, l := range runs {
		// The newest run of the plan of a check run is enough.
		if t.Job.check.ID == 0 || l.Report.Run.PlanDigest == t.Job.rerun.plan && len(plans) == 0 {
			plans = append(plans, Planned{Name: l.Name, Document: string(l.document), File: planName})
		}
	}
	if len(plans) == 0 {
		return nil, &bot.Problem{Message: "the last run has another plan than this check run; request the plan in a comment"}, nil
	}
	return plans, nil, nil
}

func (t Trigger) approver() bot.Approver {
	c := t.Job.event.Comment
	return bot.Approver{Login: c.AuthorLogin, ID: c.AuthorID, URL: c.URL, Created: c.Created}
}

// last reads the runs that c is about, of those that the comment on this pull request shows.
func (t Trigger) last(
	ctx context.Context, engine *policy.Engine, c bot.Command,
) (comment.State, []PlanRun, *bot.Problem, error) {
	s, err := t.readState(ctx)
	if err != nil {
		return s, nil, nil, err
	}
	stamps := t.shown(s, c)
	if len(stamps) == 0 && c.Name == "approve" && s.Head() != "" {
		return s, nil, nil, nil
	}
	if len(stamps) == 0 {
		return s, nil, &bot.Problem{Message: "nothing has run on this pull request yet"}, nil
	}
	var runs []PlanRun
	for _, stamp := range stamps {
		some, err := t.readRuns(ctx, engine, stamp)
		if err != nil {
			return s, nil, nil, err
		}
		runs = append(runs, some...)
	}
	if len(runs) == 0 {
		return s, nil, &bot.Problem{Message: "the artifacts of the last run were deleted or refused; start a new run"},
			nil
	}
	return s, runs, nil, nil
}

// maxShown is how many runs an explanation reads.
const maxShown = 4

// shown are the runs that c is about, the newest first: those whose plans wait to be approved, those
// whose decisions are explained or one of which has a plan's check run, or else the last run.
func (t Trigger) shown(s comment.State, c bot.Command) []comment.Stamp {
	waits := map[int64]bool{}
	for _, p := range s.PendingPlans() {
		waits[p.RunID] = true
	}
	var stamps []comment.Stamp
	for _, x := range s.Sections {
		known := slices.ContainsFunc(stamps,
			func(stamp comment.Stamp) bool { return stamp.RunID == x.RunID && stamp.Attempt == x.Attempt })
		if !x.Review && !known && (c.Name != "approve" || waits[x.RunID]) {
			stamps = append(stamps, x.Stamp)
		}
	}
	slices.SortFunc(stamps, func(a, b comment.Stamp) int { return b.Compare(a) })
	switch {
	case c.Name == "approve":
		return stamps
	case c.Name == "explain" || t.Job.check.ID != 0:
		return stamps[:min(len(stamps), maxShown)]
	}
	return stamps[:min(len(stamps), 1)]
}

// readRuns reads the artifacts of a workflow run. It leaves out those that are gone and
// those that would not be reported.
func (t Trigger) readRuns(ctx context.Context, engine *policy.Engine, s comment.Stamp) ([]PlanRun, error) {
	run, err := t.Job.gh.WorkflowRun(ctx, s.RunID)
	if err != nil {
		return nil, err
	}
	artifacts, err := t.Job.artifactsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	request := t.request("")
	request.Head = s.Head
	r := reviewer{job: t.Job, base: t.Base, engine: engine, fork: t.Task.Fork, request: request,
		// whose workflow no pull request changes
		run: s.RunID, labels: t.Job.labelArtifacts(artifacts), local: action.Event{Name: run.Event}.OfDefaultBranch()}
	var runs []PlanRun
	for _, a := range artifacts {
		found, err := r.read(ctx, a)
		if err != nil && !leftOut(err) {
			return nil, err
		}
		if err == nil {
			runs = append(runs, found...)
		}
	}
	return runs, nil
}

// leftOut reports whether err is about an artifact that is gone, or was refused.
func leftOut(err error) bool {
	var failed *github.Error
	if errors.As(err, &failed) {
		return failed.Kind == github.NotFound
	}
	return refused(err)
}

// explain answers why a proposal of the last report was decided as it was: by this
// repository's policy, or not at all.
func (t Trigger) explain(ctx context.Context, engine *policy.Engine, c bot.Command) error {
	_, runs, problem, err := t.last(ctx, engine, c)
	if err != nil {
		return err
	}
	var records []proposal.Record
	for _, l := range runs {
		if !l.decidedHere() {
			problem = &bot.Problem{Message: "this repository's policy has changed since the last run; run it again"}
			break
		}
		records = append(records, l.Report.Records...)
	}
	if problem != nil {
		return t.conversation().answer(ctx, problem.RenderMarkdown(), "confused")
	}
	return t.conversation().answer(ctx, bot.ExplainDecisions(records, c.ID), "")
}
