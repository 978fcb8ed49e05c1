// SPDX-License-Identifier: Apache-2.0

//go:build linux

package job

import (
	"errors"
	"math"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// failure describes err for the workflow's author, to whom the runner's directories mean
// nothing.
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
		dir := filepath.Join(j.dir, policyDir)
		pairs = append(pairs, dir+"-", policyDir+"-", dir, j.policyFolder())
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
// indented block: in it no Markdown means anything.
func (j *Job) writeStop(err error) error {
	f := j.failure(err)
	said := f.Code + ": " + f.Message + "\n\n" + f.Hint
	var bad *inputsError
	if errors.As(err, &bad) {
		for _, p := range bad.problems {
			said += "\n\n" + p.Input + " " + p.Message + "\n" + p.Hint
		}
	}
	var b strings.Builder
	b.WriteString("## fumehood stopped\n\n🛑 **Nothing (more) ran.**\n\n")
	for line := range strings.Lines(said) {
		b.WriteString("    " + text.Inline(strings.TrimRight(line, "\r\n"), math.MaxInt) + "\n")
	}
	return j.summary.Write(b.String())
}
