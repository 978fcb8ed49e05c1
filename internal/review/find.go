// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxHandedOver is the maximum size of Found.Findings in bytes: a variable of a process's
// environment has at most 128 KiB on Linux.
const MaxHandedOver = 120 << 10

// A Change is what a model is asked about where nothing of it is checked out or runs.
type Change struct {
	Base, Head string // full ids
	Diff       []byte // as git prints it; untrusted
	Guidance   Guidance
	Dir        string // of the log audit.jsonl and of texts that the guidance keeps; it is created
}

// FoundFindings is what came of Find.
type FoundFindings struct {
	// Findings are a document fumehood.findings/v1 on one line, of at most MaxHandedOver bytes:
	// untrusted, redacted, and accepted by plan.DecodeFindings. nil if nothing was reviewed.
	Findings []byte
	Count    int    // of findings in it
	Unused   int    // findings that the schema of answers does not allow
	Reason   string // why nothing was reviewed; one line, redacted, untrusted
	Use      ModelUse
}

// Describe describe f in one line, without any text of the model.
func (f FoundFindings) Describe() string {
	words := fmt.Sprintf("%s, which a later job verifies. %s", countNoun(f.Count, "finding", "findings"),
		f.Use.describe())
	if f.Unused > 0 {
		words += "; " + countNoun(f.Unused, "finding was", "findings were") +
			" not used, because the schema does not allow them"
	}
	return words
}

// Find asks r once about c, without running anything. The budget is reserved, and the request
// logged, before it is sent. What the provider or the model did not do is a Found with a Reason;
// an error means that fumehood failed. r needs neither Rounds nor Guidance.
func (r Reviewer) Find(ctx context.Context, c Change) (f FoundFindings, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	r.Rounds = 1
	s := promptContext{rounds: 1, once: true, guidance: c.Guidance, diff: c.Diff}
	if !s.hasCoveredChange() {
		return FoundFindings{Reason: "the change has no text in files that are to be reviewed"}, nil
	}
	id := newID()
	log, err := r.findLog(c, id)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	talk := r.newConversation(systemOnce, log, c.Guidance.newTextKeeper(c.Dir))
	talk.setting = s
	ended := talk.askRounds(ctx)
	f, err = r.handOver(talk, c, ended)
	return f, errors.Join(err, r.sealFind(log, &f, err))
}

// findLog creates the log. Its first entry has all that is fixed.
func (r Reviewer) findLog(c Change, id string) (*audit.Log, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, &proposal.StopError{Code: "artifacts.not-writable", Message: "cannot make the review's directory",
			Hint: "free space in RUNNER_TEMP", Err: err}
	}
	log, err := audit.Create(filepath.Join(c.Dir, "audit.jsonl"),
		audit.Options{Origin: "fumehood/" + id, Signer: r.Signer})
	if err != nil {
		return nil, err
	}
	fixed := r.firstEntry(id, systemOnce, c.Guidance)
	fixed.Base, fixed.Head = c.Base, c.Head
	if _, err := log.Append("review", fixed); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}

// handOver makes a Found of what a conversation ended with.
func (r Reviewer) handOver(talk *conversation, c Change, ended error) (f FoundFindings, err error) {
	reported, left := c.Guidance.reportedFindings(talk.found)
	f.Use = talk.use
	f.Use.Provider, f.Use.Model, f.Use.Spent, f.Use.Priced, f.Use.Left, f.Use.Once = r.Name, r.Model,
		r.Budget.SpentAmount(), r.Prices != "", left, true
	var partly *incomplete
	switch {
	case errors.As(ended, &partly):
		f.Reason = r.Redactor.Text(partly.why)
		return f, nil
	case ended != nil:
		return f, ended
	}
	if f.Findings, f.Count, err = encodeFindings(reported); err != nil {
		return f, err
	}
	f.Unused = len(reported.Findings) - f.Count
	switch {
	case f.Count == 0 && f.Unused > 0:
		f.Findings, f.Reason = nil, fmt.Sprintf("none of the model's %s fits the schema",
			countNoun(f.Unused, "finding", "findings"))
	case len(f.Findings) > MaxHandedOver:
		f.Reason = fmt.Sprintf("the model's findings have %d bytes, more than %d", len(f.Findings), MaxHandedOver)
		f.Findings, f.Count = nil, 0
	}
	return f, nil
}

// An answerFinding is a finding as a document has it. There is a field for all that the schema of
// answers allows, and for nothing else: neither for a network nor for variables of a command.
type answerFinding struct {
	ID         string      `json:"id"`
	File       string      `json:"file"`
	Line       int         `json:"line"`
	Start      int         `json:"start_line,omitempty"`
	Side       string      `json:"side,omitempty"`
	Severity   string      `json:"severity,omitempty"`
	Claim      string      `json:"claim"`
	Reproducer *reproducer `json:"reproducer,omitempty"`
	Suggestion *string     `json:"suggestion,omitempty"`
}

type reproducer struct {
	Run string `json:"run"`
}

// encodeFindings writes findings on one line, and returns how many. One is left out if it is not
// the same once it is read again: it is invalid, or has what handedOver has no field for.
func encodeFindings(found proposal.ReviewFindings) (data []byte, count int, err error) {
	list := []answerFinding{}
	for _, f := range found.Findings {
		one := handedOverOf(f)
		if data, err = encodeDocument(found.Reviewer, nil, one); err != nil {
			return nil, 0, err
		}
		again, problems := plan.DecodeFindings(data, "findings")
		if len(problems) == 0 && reflect.DeepEqual(again.Findings, []proposal.ReviewFinding{f}) {
			list = append(list, one)
		}
	}
	data, err = encodeDocument(found.Reviewer, found.Tests, list...)
	return data, len(list), err
}

func handedOverOf(f proposal.ReviewFinding) answerFinding {
	h := answerFinding{ID: f.ID, File: f.File, Line: f.Line, Start: f.Start, Side: f.Side, Severity: f.Severity,
		Claim: f.Claim, Suggestion: f.Suggestion}
	if f.Reproducer != nil {
		h.Reproducer = &reproducer{f.Reproducer.Run}
	}
	return h
}

func encodeDocument(reviewer string, tests []proposal.Proposal, list ...answerFinding) ([]byte, error) {
	fields := map[string]any{"schema": proposal.FindingsSchema, "reviewer": reviewer, "findings": list}
	var runs []reproducer
	for _, t := range tests {
		runs = append(runs, reproducer{t.Run})
	}
	if len(runs) > 0 {
		fields["tests"] = runs
	}
	return json.Marshal(fields)
}

// sealFind writes the last entry and seals the log.
func (r Reviewer) sealFind(log *audit.Log, f *FoundFindings, failure error) error {
	digest := ""
	if f.Findings != nil {
		digest = digestOf(f.Findings)
	}
	_, err := log.Append("end", endEntry{Reviewed: f.Findings != nil, Reason: f.Reason, Findings: digest,
		Verdicts: map[string]Verdict{}, Runs: []Run{},
		Spent: r.Budget.SpentAmount(), Error: proposal.FailureOf(r.Redactor.Error(failure))})
	if err != nil {
		return err
	}
	checkpoint, err := log.Seal()
	f.Use.Log = Run{Side: "model", Log: log.Path(), Key: log.Key(), Checkpoint: checkpoint}
	return err
}

// The sides of a ReviewFinding.
const (
	SideHead = "head"
	SideBase = "base"
)
