// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/comment"
	"github.com/fumehood/fumehood/pkg/github"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
)

// farewell is how long telling may take once the job is cancelled: the runner kills
// what is left after ten seconds.
const farewell = 8 * time.Second

// tell gives the results every voice that was asked for: comment, check run, step
// summary. It is done for a cancelled job, too.
func (j *job) tell() error {
	ctx, done := j.outlast()
	defer done()
	page := j.page(ctx)
	var errs error
	if j.in.Staged {
		page.Staged = true
	} else if j.request.PR > 0 {
		errs = errors.Join(j.postComment(ctx, page), j.postCheck(ctx, page))
	}
	page.Notices = append(page.Notices, j.notices...)
	if errs != nil {
		page.Notices = append(page.Notices, notPosted(errs))
	}
	return errors.Join(errs, j.writeSummary(page))
}

// notPosted tells readers of the summary that others do not see what they see.
func notPosted(err error) report.Notice {
	f := proposal.FailureOf(err)
	return report.Notice{Level: "warning", Text: fmt.Sprintf("Not everything could be posted: %s (%s). %s", f.Message, f.Code, f.Hint)}
}

// outlast is the job's context, and for a while longer: a job that is cancelled while it
// tells its results still tells them.
func (j *job) outlast() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(j.Ctx))
	stop := context.AfterFunc(j.Ctx, func() { time.AfterFunc(farewell, cancel) })
	return ctx, func() { stop(); cancel() }
}

// page is what there is to say about this pull request now.
func (j *job) page(ctx context.Context) report.Page {
	p := report.Page{Repository: j.runner.Repository, RunURL: j.runURL()}
	// A comment starts the default branch's workflow, everything else the pull request's.
	foreign, selfReported, checked := j.event.Name != "issue_comment", false, true
	for _, l := range j.legs {
		p.Parts = append(p.Parts, l.part(foreign))
		if foreign && !l.own && !l.ours {
			selfReported, checked = true, checked && l.audit != ""
		}
	}
	p.Artifact = strings.Join(j.artifacts(), ", ")
	switch {
	case selfReported && !checked:
		p.Notices = append(p.Notices, report.SelfReported("not all of it could be checked"))
	case selfReported:
		p.Notices = append(p.Notices, report.SelfReported("the audit log was verified, and each decision was made again with this repository's policy"))
	}
	if touched := j.touched(ctx); len(touched) > 0 {
		p.Notices = append(p.Notices, report.Touches(touched))
	}
	if j.source != nil && j.source.partly {
		p.Notices = append(p.Notices, report.PartlyListed())
	}
	switch {
	case len(j.pending()) > 0:
		p.Pending = &report.Pending{Head: j.request.Head}
	case len(j.waiting()) > 0:
		p.Notices = append(p.Notices, report.Unaskable())
	}
	return p
}

func (j *job) runURL() string {
	return fmt.Sprintf("%s/%s/actions/runs/%d", j.runner.ServerURL, j.runner.Repository, j.stamp().RunID)
}

// touched names what the pull request changes of that by which it is judged.
func (j *job) touched(ctx context.Context) []string {
	folder := j.policyFolder()
	var list []string
	for _, path := range j.files(ctx) {
		for _, under := range []string{".github/workflows/", ".github/actions/", strings.TrimSuffix(folder, "/") + "/"} {
			if strings.HasPrefix(path, under) || path == "action.yml" || path == "action.yaml" {
				list = append(list, j.outlet.Text(path))
				break
			}
		}
	}
	return list
}

// files lists what the pull request changes: from the commits when they are here, else
// from the API. Not to know them costs annotations, nothing else.
func (j *job) files(ctx context.Context) []string {
	if j.source != nil && j.source.files != nil {
		return j.source.files
	}
	if j.request.PR == 0 {
		return nil
	}
	files, complete, err := j.hub.Files(ctx, j.request.PR)
	if err != nil || !complete {
		j.console.Warning("the list of the pull request's files is not complete: its own changes to workflows and policy may go unmentioned")
	}
	list := []string{}
	for _, f := range files {
		list = append(list, f.Path)
		if f.Previous != "" {
			list = append(list, f.Previous)
		}
	}
	if j.source == nil {
		j.source = &source{}
	}
	j.source.files, j.source.partly = list, err != nil || !complete
	return list
}

// pending are the plans that somebody may approve: none when the comment cannot show
// them whole.
func (j *job) pending() []comment.Pending {
	var parts []report.Part
	for _, l := range j.legs {
		parts = append(parts, report.Part{Report: l.report})
	}
	if !report.Askable(parts) {
		return nil
	}
	return j.waiting()
}

// waiting are the plans that wait for a person: only such whose decisions we have
// made ourselves, so that what is approved is what is shown.
func (j *job) waiting() []comment.Pending {
	var list []comment.Pending
	for _, l := range j.legs {
		if l.report.Totals.Asked == 0 || !l.own && !l.sure || heldSecrets(l.report) {
			continue
		}
		name := l.artifact.name
		if name == "" {
			name = j.artifactName()
		}
		list = append(list, comment.Pending{Name: l.name, PlanDigest: l.report.Run.PlanDigest, Policy: l.report.Run.Policy,
			RunID: j.stamp().RunID, Artifact: name, ArtifactID: l.artifact.id})
	}
	return list
}

// artifacts names what the run has left, each once.
func (j *job) artifacts() []string {
	var names []string
	for _, l := range j.legs {
		name := l.artifact.name
		if l.dir != "" {
			name = j.artifactName()
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if j.in.Artifact != "" && j.leftFiles() {
		names = append(names, filesOf(j.artifactName()))
	}
	return names
}

// filesOf names the artifact with what the commands left, beside the one that is
// reported on: however much they left, the report can be read.
func filesOf(name string) string { return "files-of-" + name }

// leftFiles reports whether the commands of this job left any file.
func (j *job) leftFiles() bool {
	for _, l := range j.legs {
		if entries, err := os.ReadDir(l.files); err == nil && len(entries) > 0 {
			return true
		}
	}
	return false
}

// artifactName is what the upload step calls what this job leaves.
func (j *job) artifactName() string {
	if j.in.Artifact == "" || j.in.Name == "" {
		return j.in.Artifact
	}
	return j.in.Artifact + "-" + j.in.Name
}

func (j *job) artifactOutputs() [][2]string {
	dir := j.legs[0].dir
	values := [][2]string{}
	if dir != "" {
		values = append(values, [2]string{"report", filepath.Join(dir, reportName)}, [2]string{"audit-log", filepath.Join(dir, auditName)})
	}
	if j.in.Artifact != "" && dir != "" {
		values = append(values, [2]string{"artifact-path", filepath.Join(j.dir, "artifact")}, [2]string{"artifact-name", j.artifactName()})
		if j.leftFiles() {
			values = append(values, [2]string{"files-path", filepath.Join(j.dir, "files")}, [2]string{"files-name", filesOf(j.artifactName())})
		}
	}
	return values
}

func (j *job) keeper(ctx context.Context) (*comment.Keeper, error) {
	author, err := j.hub.Author(ctx)
	if err != nil {
		return nil, err
	}
	pause, _ := time.ParseDuration(settle) // 0, the default, in all but tests
	return comment.New(comment.Options{Client: j.hub, Author: author, PR: j.request.PR, Settle: pause})
}

// settle is set by the linker, in tests only: every job of a repository must wait as
// long as the others.
var settle = ""

// postComment keeps the one comment. That it could not is told, and fails the step;
// that something newer stands does not.
func (j *job) postComment(ctx context.Context, page report.Page) error {
	if !j.in.Comment {
		return nil
	}
	k, err := j.keeper(ctx)
	if err != nil {
		return err
	}
	conclusion, _ := action.Conclude(action.OutcomeOf(j.reports()...), j.in.FailOn)
	var totals proposal.Totals
	for _, l := range j.legs {
		totals = addTotals(totals, l.report.Totals)
	}
	return j.heed(k.Results(ctx, comment.Results{
		Result: comment.Result{Stamp: j.stamp(), Conclusion: conclusion, Totals: totals}, Pending: j.pending(), Answered: j.answered(),
		Body: func(room comment.Room) string { return j.body(page, room) },
	}))
}

// answered names the comment whose notice these results take away: the one that asked
// for them, and when nobody did every one, since it speaks of an older run.
func (j *job) answered() int64 {
	if j.request.Comment == 0 {
		return math.MaxInt64
	}
	return j.request.Comment
}

// body renders the page with what is known just before it is written.
func (j *job) body(page report.Page, room comment.Room) string {
	page.Limit = room.Units
	if room.Moved {
		page.Notices = append([]report.Notice{report.Moved(room.Head)}, page.Notices...)
		page.Pending = nil
	}
	for _, e := range room.Earlier {
		page.Earlier = append(page.Earlier, report.Earlier{Head: e.Head, Words: words(e),
			URL: fmt.Sprintf("%s/%s/actions/runs/%d", j.runner.ServerURL, j.runner.Repository, e.RunID)})
	}
	return page.Body()
}

func words(r comment.Result) string {
	return fmt.Sprintf("%s: %d succeeded, %d failed, %d denied, %d waiting", r.Conclusion, r.Totals.Succeeded, r.Totals.Failed, r.Totals.Denied, r.Totals.Asked)
}

func addTotals(a, b proposal.Totals) proposal.Totals {
	return proposal.Totals{Proposed: a.Proposed + b.Proposed, Allowed: a.Allowed + b.Allowed, Denied: a.Denied + b.Denied,
		Asked: a.Asked + b.Asked, Succeeded: a.Succeeded + b.Succeeded, Failed: a.Failed + b.Failed}
}

// heed tells what became of a comment.
func (j *job) heed(o comment.Outcome) error {
	if o.Others > 0 {
		j.console.Notice(fmt.Sprintf("%d comments of others carry fumehood's marker; they were passed over", o.Others))
	}
	if o.Did == comment.Refused && o.Failure.Code == "github.locked" {
		// Whoever locked it wants silence, and the results stand in the summary.
		j.notices = append(j.notices, report.Notice{Level: "warning", Text: "The conversation is locked, so nothing was posted"})
		j.console.Warning("the pull request's conversation is locked: nothing was posted")
		return nil
	}
	if o.Did == comment.Refused {
		return &proposal.StopError{Code: o.Failure.Code, Message: o.Failure.Message, Hint: o.Failure.Hint}
	}
	j.console.Progress("comment %s: %s", o.Did, o.URL)
	if o.URL == "" {
		return nil
	}
	return j.outputs.Set("comment-url", o.URL)
}

// postCheck makes the check run, with annotations on the pull request's files.
func (j *job) postCheck(ctx context.Context, page report.Page) error {
	if !j.in.CheckRun {
		return nil
	}
	check, run := page.Check(), github.CheckRun{Name: "fumehood", HeadSHA: j.request.Head, Status: "completed", DetailsURL: j.runURL()}
	run.Conclusion, run.Title, run.Summary = check.Conclusion, check.Title, check.Summary
	for _, l := range j.legs {
		list, more := report.Annotations(l.report, j.files(ctx))
		for _, a := range list {
			run.Annotations = append(run.Annotations, github.Annotation{Path: a.Path, StartLine: a.Line, EndLine: max(a.Line, a.EndLine),
				Level: a.Level, Title: a.Title, Message: a.Message})
		}
		if more > 0 {
			j.console.Progress("%d more annotations are only in the output", more)
		}
	}
	id, err := j.hub.CreateCheckRun(ctx, run)
	if err == nil {
		j.console.Progress("check run %d: %s", id, run.Conclusion)
	}
	return err
}

// writeSummary shows the page in the step summary, and what tools said of lines of
// files as annotations when there is no check run to have them.
func (j *job) writeSummary(page report.Page) error {
	if len(page.Parts) == 0 {
		page = j.page(j.Ctx)
		page.Pending = nil
	}
	if !j.in.CheckRun {
		for _, l := range j.legs {
			list, _ := report.Annotations(l.report, j.files(context.WithoutCancel(j.Ctx)))
			for _, a := range list {
				j.console.Annotate(action.Annotation{Level: levels[a.Level], File: a.Path, Line: a.Line, EndLine: a.EndLine, Col: a.Col, Title: a.Title, Message: a.Message})
			}
		}
	}
	j.told = true
	return j.summary.Write(page.Summary())
}

var levels = map[string]string{"failure": action.LevelError, "warning": action.LevelWarning, "notice": action.LevelNotice}
