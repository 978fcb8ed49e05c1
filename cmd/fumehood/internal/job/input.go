// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// reviewerFailed is the error that the reviewer's job did not succeed, as far as the workflow says so.
func (j *Job) reviewerFailed() error {
	words := map[string]string{"failure": "failed", "cancelled": "was cancelled",
		"skipped": "was skipped"}[j.in.ReviewerResult]
	if words == "" {
		return nil
	}
	return &proposal.StopError{Code: report.ReviewerFailed, Message: "the reviewer's job " + words,
		Hint: "see the log of the reviewer's job, and request the review again"}
}

// readInputPlan reads the plan that the workflow names: a document, or a file that an
// earlier step wrote.
func (r Run) readInputPlan() (Planned, error) {
	j := r.Job
	if document, inline := j.in.PlanDocument(); inline {
		return Planned{Name: j.in.Name, Document: string(document), File: "plan"}, nil
	}
	if j.in.PlanPath() == "" {
		return Planned{}, &proposal.StopError{Code: "plan.missing", Message: "the inputs plan and run are empty",
			Hint: "give the plan that the reviewer's job proposed: plan: ${{ needs.propose.outputs.plan }}"}
	}
	data, name, err := j.readInput("plan", "plan.unreadable", j.in.Plan)
	return Planned{Name: j.in.Name, Document: string(data), File: name}, err
}

// readInput reads an input that is a document, or a file that an earlier step wrote. what is the
// input's name, code the code of a failure, and name what messages call the document.
func (j *Job) readInput(what, code, input string) (data []byte, name string, err error) {
	document, file := action.DocumentOrPath(input)
	if document != nil {
		return document, what, nil
	}
	f, err := openPlan(j.runner.Workspace, file)
	if err != nil {
		return nil, "", inputError(what, code, file, err)
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, plan.MaxDocument+1))
	if err != nil {
		return nil, "", inputError(what, code, file, err)
	}
	return data, path.Base(file), nil
}

// openPlan opens a file. A file in the workspace may be the pull request's, so no link is
// followed there: otherwise the plan could be any file that the job can read, and the
// error message would publish part of it. Opening a pipe does not block.
func openPlan(workspace, name string) (*os.File, error) {
	file := name
	if !filepath.IsAbs(file) {
		file = filepath.Join(workspace, name)
	}
	var f *os.File
	inside, err := filepath.Rel(workspace, file)
	if err == nil && filepath.IsLocal(inside) {
		f, err = openInside(workspace, inside)
	} else if err == nil {
		f, err = os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.New("not a regular file")
	}
	return f, nil
}

// openInside opens a file in dir by a path without links.
func openInside(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for p := name; p != "."; p = path.Dir(p) {
		if info, err := root.Lstat(p); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return nil, errors.Join(err, fmt.Errorf("%q is a link or does not exist", p))
		}
	}
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func inputError(what, code, name string, err error) error {
	switch path := (*fs.PathError)(nil); {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("no such file")
	case errors.As(err, &path):
		err = path.Err // the message names the file as the workflow does
	}
	hint := "write the " + what + " to this path in the workspace in an earlier step of the same job, or give the " +
		what + " itself"
	if what == "plan" {
		hint += ":\n\n" + planExample
	}
	return &proposal.StopError{Code: code, Message: fmt.Sprintf("cannot read %s %q", what, name), Hint: hint, Err: err}
}

const planExample = `with:
  plan: |
    schema: fumehood.plan/v1
    proposals:
      - id: test
        run: npm test
`

// invalidPlan reports the first problem of a plan, and how many more there are.
func invalidPlan(document []byte, file string, problems []proposal.Problem) error {
	hint := "fix the plan at this position; the whole plan was rejected and nothing ran"
	if !bytes.Contains(document, []byte("fumehood.plan/v1")) {
		hint = "write a plan like this:\n\n" + planExample
	}
	return &proposal.StopError{Code: "plan.invalid", Message: firstProblem(file, problems), Hint: hint}
}

// firstProblem describes the first problem, and says how many more there are.
func firstProblem(file string, problems []proposal.Problem) string {
	if n := len(problems) - 1; n > 0 {
		return plan.Describe(file, problems[0]) + fmt.Sprintf(" (and %d more)", n)
	}
	return plan.Describe(file, problems[0])
}
