// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Status is the meaning of a step's exit code. The zero Status is Stopped.
type Status int

// The statuses.
const (
	Stopped Status = iota // fumehood failed and ran nothing (more)
	Refused               // a command was denied or did not succeed, and the input fail-on makes that a failure
	Passed                // anything else
)

// A Conclusion is how a step ended.
type Conclusion struct {
	Status Status
	// Name is the output "conclusion": action.Success and its like.
	Name string
}

// conclude writes the outputs, and the result of the step to the log.
func (s step) conclude(ctx context.Context, out Outcome, err error) Conclusion {
	j := s.job
	o := outcomeOf(ctx, out, err)
	s.printEnd(out, o, err)
	name, fails := action.ConcludeJob(o, j.in.FailOn)
	// An error that another job had is not this job's: that job has failed already.
	fails = fails && !(out.Delivered && j.in.FailOn == action.FailOnError)
	if err == nil && (len(out.Runs) > 0 || out.Review != nil || out.Found != nil) {
		s.printVerdict(out.Runs, name, fails)
	}
	failed := s.setOutputs(name, out, o.Totals)
	if err != nil && !out.Summarized {
		failed = errors.Join(failed, j.writeStop(err))
	}
	if failed != nil {
		j.console.Stop(failed)
	}
	_ = j.console.Close()
	return Conclusion{Name: name, Status: statusOf(fails, err != nil || o.Stopped, failed != nil)}
}

// statusOf is Stopped for a step that could not write its outputs, whatever fail-on says:
// the jobs that read them would misread a missing output.
func statusOf(fails, stopped, unwritten bool) Status {
	switch {
	case stopped && fails || unwritten:
		return Stopped
	case fails:
		return Refused
	}
	return Passed
}

// refuse ends a step whose inputs, event or runner's variables cannot be read. It writes
// what it can of the outputs and the summary.
func (s step) refuse(err error) Conclusion {
	j := s.job
	if j.outputs != nil {
		err = errors.Join(err, j.outputs.Set("conclusion", action.Stopped), j.writeStop(err))
	}
	j.console.Stop(err)
	_ = j.console.Close()
	return Conclusion{Status: Stopped, Name: action.Stopped}
}

// outcomeOf returns the basis of a conclusion. An error is never "nothing to do".
func outcomeOf(ctx context.Context, out Outcome, err error) action.Outcome {
	o := out.sum()
	switch {
	case err != nil && (ctx.Err() != nil || proposal.FailureOf(err).Code == "run.cancelled"):
		o.Cancelled = true
	case err != nil:
		o.Stopped = true
	case out.Skipped != "":
		o.Skipped = true
	}
	return o
}

func (s step) printEnd(out Outcome, o action.Outcome, err error) {
	j := s.job
	switch {
	case err != nil && o.Cancelled:
		j.console.PrintWarning("the run was cancelled")
	case err != nil:
		j.console.Stop(stopError(j.failure(err)))
	case out.Skipped != "":
		j.console.PrintProgress("nothing to do: %s", out.Skipped)
	}
}

// printVerdict writes to the log why the step fails, or the conclusion.
func (s step) printVerdict(runs []PlanRun, conclusion string, fails bool) {
	j := s.job
	stopped := false
	for _, l := range runs {
		if e := l.Report.Error; e != nil {
			stopped = true
			stop := &proposal.StopError{Code: e.Code, Message: j.plain(e.Message), Hint: j.plain(e.Hint)}
			if !l.local && !l.substitute { // untrusted text, which must not look like ours
				stop.Message, stop.Hint = fmt.Sprintf("the run's report says %q", e.Message), ""
			}
			j.console.Stop(stop)
		}
	}
	if fails && !stopped {
		j.console.Error(fmt.Sprintf("fumehood: the step fails because the conclusion is %s and fail-on is %s; see the step summary", conclusion, j.in.FailOn))
		return
	}
	j.console.PrintProgress("conclusion: %s", conclusion)
}

// setOutputs sets the outputs that every phase has, and those of the artifact.
func (s step) setOutputs(conclusion string, out Outcome, t proposal.Totals) error {
	j := s.job
	r := out.Request
	values := [][2]string{{"conclusion", conclusion}, {"sha", r.Head},
		{"allowed", strconv.Itoa(t.Allowed)}, {"denied", strconv.Itoa(t.Denied)}, {"failed", strconv.Itoa(t.Failed)}}
	if r.PR > 0 {
		values = append(values, [2]string{"pr", strconv.Itoa(r.PR)}, [2]string{"head", r.Head},
			[2]string{"base", r.Base})
	}
	for _, v := range slices.Concat(values, j.artifactOutputs(out.Runs), j.evidenceOutputs(out.Runs),
		j.durationsOutputs(), j.reviewOutputs(out.Review), j.findOutputs(out)) {
		if err := j.outputs.Set(v[0], v[1]); err != nil {
			return err
		}
	}
	return nil
}

// failure describes err for the workflow's author, without the runner's directories.
func (j *Job) failure(err error) *proposal.Failure {
	f := proposal.FailureOf(err)
	if f == nil {
		return nil
	}
	plain := *f
	plain.Message, plain.Hint = j.plain(f.Message), j.plain(f.Hint)
	return &plain
}

// plain redacts s and names directories of the runner as the workflow does.
func (j *Job) plain(s string) string {
	var pairs []string
	if j.dir != "" {
		for _, name := range []string{policyDir, branchPolicyDir} {
			dir := filepath.Join(j.dir, name)
			pairs = append(pairs, dir+"-", name+"-", dir, j.policyPath())
		}
	}
	for _, dir := range []string{j.dir, j.runner.Workspace} {
		if dir != "" {
			pairs = append(pairs, dir+string(filepath.Separator), "")
		}
	}
	return j.redactor.Text(strings.NewReplacer(pairs...).Replace(s))
}

func stopError(f *proposal.Failure) error {
	return &proposal.StopError{Code: f.Code, Message: f.Message, Hint: f.Hint}
}

// writeStop writes to the step summary why nothing ran, with the YAML that fixes it, as an
// indented block, in which Markdown has no effect.
func (j *Job) writeStop(err error) error {
	f := j.failure(err)
	why := f.Code + ": " + f.Message + "\n\n" + f.Hint
	var bad *inputsError
	if errors.As(err, &bad) {
		for _, p := range bad.problems {
			why += "\n\n" + p.Input + " " + p.Message + "\n" + p.Hint
		}
	}
	var b strings.Builder
	b.WriteString("## fumehood stopped\n\n🛑 **No more commands ran.**\n\n")
	for line := range strings.Lines(why) {
		b.WriteString("    " + text.Inline(strings.TrimRight(line, "\r\n"), math.MaxInt) + "\n")
	}
	return j.summary.Write(b.String())
}
