// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/bot"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

// refuse ends a job that could not even be read: its inputs, its event or the runner's
// own variables. What of the outputs and the summary can be written is written.
func (j *job) refuse(err error) int {
	if j.outputs != nil {
		err = errors.Join(err, j.outputs.Set("conclusion", action.Stopped), j.writeStop(err))
	}
	j.console.Stop(err)
	_ = j.console.Close()
	return exitStopped
}

// failure is what err says, in the words of whoever wrote the workflow: folders of the
// runner mean nothing to them.
func (j *job) failure(err error) *proposal.Failure {
	f := proposal.FailureOf(err)
	if f == nil {
		return nil
	}
	plain := *f
	plain.Message, plain.Hint = j.plain(f.Message), j.plain(f.Hint)
	return &plain
}

func (j *job) plain(s string) string {
	var pairs []string
	if j.source != nil && j.source.policy != "" {
		pairs = append(pairs, j.source.policy, j.policyFolder())
	}
	for _, dir := range []string{j.dir, j.runner.Workspace} {
		if dir != "" {
			pairs = append(pairs, dir+string(filepath.Separator), "")
		}
	}
	return j.outlet.Text(strings.NewReplacer(pairs...).Replace(s))
}

// policyFolder is where this repository's own rules are.
func (j *job) policyFolder() string {
	if j.in.Policy != "" {
		return j.in.Policy
	}
	return defaultPolicy
}

// stopError is err for the log.
func (j *job) stopError(err error) error {
	f := j.failure(err)
	return &proposal.StopError{Code: f.Code, Message: f.Message, Hint: f.Hint}
}

// writeStop leaves in the step summary why nothing ran, with the YAML that mends it: an
// indented block, in which nothing means anything.
func (j *job) writeStop(err error) error {
	f := j.failure(err)
	var b strings.Builder
	b.WriteString("## fumehood stopped\n\n🛑 **Nothing (more) ran.**\n\n")
	said := f.Code + ": " + f.Message + "\n\n" + f.Hint
	for _, p := range j.problems {
		said += "\n\n" + p.Input + " " + p.Message + "\n" + p.Hint
	}
	for line := range strings.Lines(said) {
		b.WriteString("    " + terminal.Line(strings.TrimRight(line, "\r\n")) + "\n")
	}
	j.told = true
	return j.summary.Write(b.String())
}

// abandon leaves a report of a run that could not begin, so that it can be told by
// whoever reports.
func (j *job) abandon(err error) error {
	if j.Ctx.Err() != nil {
		err = &proposal.StopError{Code: "run.cancelled", Message: "the run was cancelled before it was done", Err: err}
	}
	l := stoppedLeg(j, err)
	l.dir = filepath.Join(j.dir, "artifact")
	j.legs = append(j.legs, l)
	return l.save()
}

// apologise answers a person whose comment was read, and could not be granted for a
// reason that is ours.
func (j *job) apologise(err error) error {
	if err == nil || j.event.Comment == nil || j.event.Comment.AuthorType != "User" || j.pr.Number == 0 || j.Ctx.Err() != nil {
		return err
	}
	return errors.Join(err, j.answer(bot.Stopped(j.failure(err)), "confused"))
}

// verdict says in the log why the step is red, or would be.
func (j *job) verdict(conclusion string, fails bool) {
	stopped := false
	for _, l := range j.legs {
		if e := l.report.Error; e != nil {
			stopped = true
			said := &proposal.StopError{Code: e.Code, Message: j.plain(e.Message), Hint: j.plain(e.Hint)}
			if !l.own && !l.ours { // a stranger's words, which must not stand as ours
				said.Message, said.Hint = fmt.Sprintf("the report that the run left says %q", e.Message), ""
			}
			j.console.Stop(said)
		}
	}
	if fails && !stopped {
		j.console.Error(fmt.Sprintf("fumehood: the conclusion is %s, and fail-on is %s; the step summary says more", conclusion, j.in.FailOn))
		return
	}
	j.console.Progress("conclusion: %s", conclusion)
}
