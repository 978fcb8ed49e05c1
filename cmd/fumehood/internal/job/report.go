// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// reportTime is how long reporting may take once the job is cancelled: the runner kills
// what is left after ten seconds.
const reportTime = 8 * time.Second

// A Report shows results where the inputs ask for them: in the comment, a check run and
// the step summary.
type Report struct {
	Job     *Job
	Outcome Outcome
	// SummaryOnly is for a job whose results another job posts.
	SummaryOnly bool

	files changedFiles
	nonce string // of what waits for approval
}

// Do shows the Outcome and returns it as Summarized. A job that is cancelled meanwhile
// still reports, for a few seconds.
func (r Report) Do(ctx context.Context) (Outcome, error) {
	if !r.SummaryOnly {
		var done context.CancelFunc
		ctx, done = extend(ctx, reportTime)
		defer done()
	}
	r.Outcome.Summarized = true
	r.nonce = rand.Text()
	reviewErr := r.showReview(ctx)
	if len(r.Outcome.Runs) == 0 {
		return r.Outcome, reviewErr
	}
	if !r.SummaryOnly { // the job that posts says what the pull request changes
		r.files = r.listFiles(ctx)
	}
	page := r.page()
	if r.SummaryOnly {
		page.Pending = nil
		return r.Outcome, errors.Join(reviewErr, r.writeSummary(page))
	}
	notices, err := r.post(ctx, &page)
	page.Notices = append(page.Notices, notices...)
	return r.Outcome, errors.Join(reviewErr, err, r.writeSummary(page))
}

// extend returns a context that ends a while after ctx does.
func extend(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() { stop(); cancel() }
}

// post writes the comment and the check run, unless they are only to be shown. The
// notices are for the summary.
func (r Report) post(ctx context.Context, page *report.Page) (notices []report.Notice, err error) {
	if page.DryRun = r.Job.in.DryRun; page.DryRun || r.Outcome.Request.PR == 0 && r.Job.event.Group == nil {
		return nil, nil
	}
	url, locked, commentErr := r.postComment(ctx, *page)
	if locked {
		notices = append(notices, report.Notice{Level: "warning",
			Text: "The conversation is locked: nothing was posted"})
	}
	if !locked {
		commentErr = errors.Join(commentErr, r.postLints(ctx))
	}
	if err = errors.Join(commentErr, r.postChecks(ctx, *page)); err != nil {
		notices = append(notices, notPosted(err))
	}
	if r.Outcome.Request.Comment != 0 && !locked {
		r.announceEnd(ctx, url)
	}
	return notices, err
}

// announceEnd announces the end of a run that a comment requested. url is that of the comment
// with the results, or "".
func (r Report) announceEnd(ctx context.Context, url string) {
	j, q := r.Job, r.Outcome.Request
	conclusion, _ := action.ConcludeJob(r.Outcome.sum(), j.in.FailOn)
	conversation{j, q.PR}.announceEnd(ctx,
		bot.Run{Command: q.Command, Head: q.Head, Conclusion: conclusion, Results: url, Log: j.runURL(j.runID())},
		r.Outcome.comment.Mention)
}

// notPosted returns the notice that the comment or the check run is missing.
func notPosted(err error) report.Notice {
	f := proposal.FailureOf(err)
	return report.Notice{Level: "warning",
		Text: fmt.Sprintf("Some results could not be posted: %s (%s). %s", f.Message, f.Code, f.Hint)}
}

// changedFiles are the paths that a pull request changes; partial means that there may be
// others.
type changedFiles struct {
	paths   []string
	present []string // those of paths that the head has
	patches map[string]string
	partial bool
}

// listFiles lists what the pull request changes, as GitHub shows it: since the merge base of
// both branches. The commit that GitHub calls the base can be older or newer, and then also
// differs by what others have merged. If it is incomplete, a notice says so, and only annotations are lost.
func (r Report) listFiles(ctx context.Context) changedFiles {
	list := changedFiles{patches: map[string]string{}}
	if r.Outcome.Request.PR == 0 {
		return list
	}
	files, complete, err := r.Job.gh.Files(ctx, r.Outcome.Request.PR)
	if list.partial = err != nil || !complete; list.partial {
		r.Job.console.PrintWarning("the list of the pull request's files is incomplete: its changes to workflows and policy may not be reported")
	}
	for _, f := range files {
		list.paths = append(list.paths, f.Path)
		if f.Status != "removed" {
			list.present = append(list.present, f.Path)
			list.patches[f.Path] = f.Patch
		}
		if f.Previous != "" {
			list.paths = append(list.paths, f.Previous)
		}
	}
	return list
}

// postComment updates the one comment. Failure fails the step. A comment that shows
// something newer does not. url is the comment's, if there is one.
func (r Report) postComment(ctx context.Context, page report.Page) (url string, locked bool, err error) {
	j, q := r.Job, r.Outcome.Request
	if !j.in.Comment || q.PR == 0 {
		return "", false, nil
	}
	c := conversation{j, q.PR}
	k, err := c.keeper(ctx)
	if err != nil {
		return "", false, err
	}
	o := k.ReplaceResults(ctx, r.results(page))
	locked, err = c.applyOutcome(o)
	return o.URL, locked, err
}

// results is the section of the comment that shows page.
func (r Report) results(page report.Page) comment.Results {
	j, q := r.Job, r.Outcome.Request
	conclusion, _ := action.ConcludeJob(sumUp(r.Outcome.Runs), j.in.FailOn)
	shown, pending := page.Section(), r.pending()
	return comment.Results{
		Section: comment.Section{Source: j.source(q), Mark: shown.Mark, Title: shown.Title, Pending: pending,
			AllPending: len(pending) == len(r.Outcome.Runs), Approved: q.approved(),
			Result: comment.Result{Stamp: j.stamp(q.Head), Conclusion: conclusion, Totals: totalsOf(r.Outcome.Runs)}},
		Asked: report.AskedUnits(parts(r.Outcome.Runs)), Answered: j.answers(q),
		Body: func(room comment.Room) string { return r.body(page, room) },
	}
}

// answers is the noticeID up to which the results of q remove notices: that of the comment
// that requested them. Results that no comment requested remove every notice, which is about
// an older run.
func (j *Job) answers(q Request) int64 {
	if q.Comment == 0 {
		return math.MaxInt64
	}
	return j.noticeID()
}

func totalsOf(runs []PlanRun) (sum proposal.Totals) {
	for _, l := range runs {
		sum = sum.Add(l.Report.Totals)
	}
	return sum
}

// body renders the page with what is known just before it is written.
func (r Report) body(page report.Page, room comment.Room) string {
	page.Limit = room.Units
	if room.Moved {
		page.Notices = append([]report.Notice{report.Moved(room.Head)}, page.Notices...)
		page.Pending = nil
	}
	if !room.Askable {
		page.Notices, page.Pending = append(slices.Clone(page.Notices), report.Unaskable()), nil
	}
	return page.Sized(r.shown()).Section().Text
}

// shown is how much the comment shows: what the inputs say, or else the configuration.
func (r Report) shown() config.Comment {
	in, c := r.Job.in, r.Outcome.comment
	return config.Comment{Detail: cmp.Or(in.CommentDetail, c.Detail), Length: cmp.Or(in.CommentLength, c.Length)}
}

// postChecks makes the check runs.
func (r Report) postChecks(ctx context.Context, page report.Page) error {
	if !r.Job.in.CheckRun {
		return nil
	}
	each, app := r.checks(ctx)
	var errs []error
	for _, one := range each {
		if app {
			page.Parts = one.page().Parts
		}
		errs = append(errs, one.postCheck(ctx, page, app))
	}
	return errors.Join(errs...)
}

// postCheck makes a check run, with annotations on the pull request's files.
func (r Report) postCheck(ctx context.Context, page report.Page, app bool) error {
	j := r.Job
	check, run := page.Check(), github.CheckRun{Name: checkName(j.source(r.Outcome.Request)),
		HeadSHA: r.Outcome.Request.Head, Status: "completed", DetailsURL: page.RunURL}
	run.Conclusion, run.Title, run.Summary = check.Conclusion, check.Title, check.Summary
	for _, l := range r.Outcome.Runs {
		list, more := report.Annotations(l.Report, r.sources())
		for _, a := range list {
			run.Annotations = append(run.Annotations,
				github.Annotation{Path: a.Path, StartLine: a.Line, EndLine: max(a.Line, a.EndLine),
					Level: a.Level, Title: a.Title, Message: a.Message})
		}
		if more > 0 {
			j.console.PrintProgress("%d more annotations are shown only in the output", more)
		}
	}
	if app {
		run = r.rerunnable(run)
	}
	id, err := j.gh.CreateCheckRun(ctx, run)
	if err == nil {
		j.console.PrintProgress("check run %d: %s", id, run.Conclusion)
	}
	return err
}

// writeSummary writes the page to the step summary. Where no check run has them, what
// tools reported about lines of files becomes annotations.
func (r Report) writeSummary(page report.Page) error {
	if !r.Job.in.CheckRun {
		for _, l := range r.Outcome.Runs {
			list, _ := report.Annotations(l.Report, r.sources())
			for _, a := range list {
				r.Job.console.Annotate(action.Annotation{Level: levels[a.Level], File: a.Path, Line: a.Line,
					EndLine: a.EndLine, Col: a.Col, Title: a.Title, Message: a.Message})
			}
		}
	}
	return r.Job.summary.Write(page.Summary())
}

var levels = map[string]string{"failure": action.LevelError, "warning": action.LevelWarning,
	"notice": action.LevelNotice}

// page returns the current results for the pull request.
func (r Report) page() report.Page {
	j := r.Job
	p := report.Page{Repository: j.runner.Repository, RunURL: j.runURL(j.runID()),
		Artifact: strings.Join(j.artifacts(r.Outcome.Runs), ", "), PolicyFrom: r.Outcome.policy,
		Head: r.Outcome.Request.Head, Files: r.sources()}
	foreign := !j.event.OfDefaultBranch() // everything else starts the pull request's workflow
	for _, l := range r.Outcome.Runs {
		p.Parts = append(p.Parts, l.part(foreign))
	}
	if foreign {
		p.Notices = selfReported(r.Outcome.Runs)
	}
	if touched := r.touched(); len(touched) > 0 {
		p.Notices = append(p.Notices, report.Touches(touched))
	}
	if changed := r.setupFiles(); len(changed) > 0 {
		p.Notices = append(p.Notices, report.SetupTouched(changed))
	}
	if r.files.partial {
		p.Notices = append(p.Notices, report.PartlyListed())
	}
	switch {
	case len(r.pending()) > 0:
		p.Pending = &report.Pending{Command: bot.ApproveCommand(question{r.Outcome.Request.Head,
			r.pending()}.asked().Digits())}
	case len(r.waiting()) > 0:
		p.Notices = append(p.Notices, report.Unaskable())
	}
	return p
}

// selfReported returns the notice that runs were reported by a workflow that the pull
// request can change, and what was checked.
func selfReported(runs []PlanRun) []report.Notice {
	some, checked := false, true
	for _, l := range runs {
		if !l.local && !l.substitute {
			some, checked = true, checked && l.audit != ""
		}
	}
	switch {
	case !some:
		return nil
	case !checked:
		return []report.Notice{report.SelfReported("some of them could not be checked")}
	}
	return []report.Notice{report.SelfReported("the audit log was verified, and each decision was made again with this repository's policy")}
}

// sources are the files of the commit that may be linked and annotated: those that the pull
// request changes, and if the commit is on this machine, all of it.
func (r Report) sources() []string {
	return append(slices.Clone(r.files.present), r.Outcome.sources...)
}

// touched lists the workflow and policy files that a pull request changes.
func (r Report) touched() []string {
	var list []string
	for _, path := range r.files.paths {
		for _, under := range []string{".github/workflows/", ".github/actions/",
			strings.TrimSuffix(r.Job.policyPath(), "/") + "/"} {
			if strings.HasPrefix(path, under) || path == "action.yml" || path == "action.yaml" || path == config.Path {
				list = append(list, r.Job.redactor.Text(path))
				break
			}
		}
	}
	return list
}

// setupFiles lists the files of set-up that a pull request changes, if set-up failed.
func (r Report) setupFiles() []string {
	failed := slices.ContainsFunc(reports(r.Outcome.Runs), func(l proposal.Report) bool {
		return slices.ContainsFunc(l.Records, func(x proposal.Record) bool {
			return x.Proposal.Origin == proposal.OriginSetup && x.CouldNotRun()
		})
	})
	var list []string
	for _, path := range r.files.paths {
		if failed && setup.IsSetupFile(path) {
			list = append(list, r.Job.redactor.Text(path))
		}
	}
	return list
}

// pending are the plans that a person may approve: none when the comment cannot show them
// in full.
func (r Report) pending() []comment.Pending {
	if !report.Askable(parts(r.Outcome.Runs)) {
		return nil
	}
	return r.waiting()
}

func parts(runs []PlanRun) (list []report.Part) {
	for _, l := range runs {
		list = append(list, report.Part{Report: l.Report})
	}
	return list
}

// waiting are the plans that need a person: only those whose decisions are this
// repository's, so that what is approved is what is shown.
func (r Report) waiting() []comment.Pending {
	var list []comment.Pending
	for _, l := range r.Outcome.Runs {
		if l.Report.Totals.Asked == 0 || !l.decidedHere() || heldSecrets(l.Report) {
			continue
		}
		name := l.artifact.name
		if name == "" {
			name = r.Job.artifactName()
		}
		list = append(list, comment.Pending{Name: l.Name, PlanDigest: l.Report.Run.PlanDigest,
			Policy: l.Report.Run.Policy,
			RunID:  r.Job.runID(), Artifact: name, ArtifactID: l.artifact.id, Nonce: r.nonce})
	}
	return list
}
