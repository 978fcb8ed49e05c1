// SPDX-License-Identifier: Apache-2.0

// Package redact redacts secrets: everything that leaves a run passes it, and text that
// looks like a secret, or is a value to mask, is removed.
//
// It promises that nothing from a sandbox reaches the artifacts, the report or the log
// before it was searched and policy (fumehood.output) was asked about it. The sandbox
// writes its files to a separate directory, which is never published. Each file is copied
// from there with markers in place of finds, or not at all. A file that is not a text is
// copied unchanged or withheld. A reported length or digest is that of the copy, never of
// the original. If it cannot search something or policy cannot answer, that thing does
// not leave and the run stops.
//
// It is the second line of defense: it does not protect against a program that hides its
// output by compression, encryption, its own encoding, or the length of things.
// internal/egress/secrets documents what is found and what is not.
package redact

import (
	"context"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/internal/egress/secrets"
	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Mask is a value that must never leave, with the name that replaces it.
type Mask = secrets.Mask

// MinMask is the minimum length of a masked value.
const MinMask = secrets.MinMask

// Options configure a Redactor.
type Options struct {
	Masks []Mask
	// Decide asks policy. nil redacts every find, and withholds a file that is not a text
	// if it contains one.
	Decide func(context.Context, points.Outgoing) (points.OutputDecision, error)
	// Artifacts is the directory for files that may leave; without it nothing is copied.
	Artifacts string
}

// A Redactor redacts the output of one run.
type Redactor struct {
	o        Options
	redactor *secrets.Redactor
	raw      *lease.Dir
}

// New returns a Redactor. Its error is a *proposal.StopError that contains no masked value.
func New(o Options) (*Redactor, error) {
	r, err := secrets.NewRedactor(o.Masks)
	if err != nil {
		return nil, &proposal.StopError{Code: "output.mask", Message: err.Error(),
			Hint: "mask at most 100 values of 6 bytes to 64 KiB, 192 KiB together, that do not occur in ordinary text"}
	}
	if o.Decide == nil {
		o.Decide = replaceAll
	}
	return &Redactor{o: o, redactor: r}, nil
}

// replaceAll decides if there is no policy.
func replaceAll(_ context.Context, x points.Outgoing) (points.OutputDecision, error) {
	d := points.OutputDecision{Effect: proposal.Allow}
	for _, s := range x.Secrets {
		d.Redact = append(d.Redact, s.Rule)
	}
	if n, _ := redaction.CountFinds(x.Secrets); x.Binary && n+x.Masked > 0 {
		d.Effect = proposal.Deny
	}
	return d, nil
}

// Record returns r with markers in its texts, and counts of them. Its Result must have
// passed Result already.
func (u *Redactor) Record(r proposal.Record) proposal.Record {
	result := r.Result
	r.Result = nil
	id := r.Proposal.ID
	r, r.Redacted = redactValue(u, r)
	r.Proposal.ID, r.Result = id, result // an ID with a secret is refused: see RefuseSecretIDs
	return r
}

func redactValue[T any](u *Redactor, v T) (T, []proposal.Redaction) {
	return secrets.RedactValue(u.redactor, v)
}

// RefuseSecretIDs refuses a plan with an ID that would have to be redacted: everything that is
// reported of a command refers to it by its ID.
func (u *Redactor) RefuseSecretIDs(plan proposal.Plan) error {
	for i, p := range plan.Proposals {
		if _, found := redactValue(u, p.ID); found != nil {
			return &proposal.StopError{Code: "output.id",
				Message: fmt.Sprintf("the id of proposal %d contains what looks like a secret (%s)", i+1,
					found[0].Rule),
				Hint: "give it another id"}
		}
	}
	return nil
}

// Run returns r redacted.
func (u *Redactor) Run(r proposal.Run) proposal.Run {
	redacted, _ := redactValue(u, r)
	return restoreRunLinks(redacted, r)
}

// restoreRunLinks restores in redacted the fields of r that link a run to its log, its plan and its
// commits. None of them is free text, and a mask like "sha256" must not break these links.
func restoreRunLinks(redacted, r proposal.Run) proposal.Run {
	redacted.ID, redacted.PlanDigest, redacted.Policy, redacted.HeadSHA, redacted.BaseSHA = r.ID, r.PlanDigest,
		r.Policy, r.HeadSHA, r.BaseSHA
	return redacted
}

// Findings returns f, which a model or a person wrote, redacted.
func (u *Redactor) Findings(f proposal.ReviewFindings) proposal.ReviewFindings {
	redacted, _ := redactValue(u, f)
	redacted.Schema, redacted.Digest = f.Schema, f.Digest
	return redacted
}

// Failure is Run for the reason that a run stopped.
func (u *Redactor) Failure(f *proposal.Failure) *proposal.Failure {
	f, _ = redactValue(u, f)
	return f
}

// Error returns err with its message redacted: what stopped a run may quote what the run
// handled. u may be nil.
func (u *Redactor) Error(err error) error {
	f := proposal.FailureOf(err)
	if f == nil || u == nil {
		return err
	}
	clean := u.Failure(f)
	if *clean == *f {
		return err
	}
	return &proposal.StopError{Code: clean.Code, Message: clean.Message, Hint: clean.Hint}
}

// Event returns e redacted. If words of a program are replaced, the digest of its argv is
// removed, because a short word could be found from it. A word that the kernel's side has
// truncated loses an end that may be half of a secret.
func (u *Redactor) Event(e proposal.Event) proposal.Event {
	id := e.Command
	e, short := u.trimCutWords(e)
	e, found := redactValue(u, e)
	e.Command = id
	if (found != nil || short) && e.Exec != nil {
		e.Exec.ArgvDigest = ""
	}
	return e
}

// cutWord is the minimum length of a word of a program that may have been cut: wire.MaxWord.
const cutWord = 1 << 10

// trimCutWords cuts words again where a secret may begin, and reports whether it did. The
// last word may have been cut at any length.
func (u *Redactor) trimCutWords(e proposal.Event) (proposal.Event, bool) {
	if e.Exec == nil || !e.Exec.ArgvCut {
		return e, false
	}
	x := *e.Exec
	x.Argv = slices.Clone(x.Argv)
	short := false
	for i, w := range x.Argv {
		if len(w) < cutWord && i < len(x.Argv)-1 {
			continue
		}
		if n := u.redactor.SafeLength(w); n < len(w) {
			x.Argv[i], short = w[:n]+"…", true
		}
	}
	e.Exec = &x
	return e, short
}

// Report returns r, which may already contain markers, with the missing ones added. It is
// for callers that print a report made elsewhere and read by internal/evidence/report: policy is not
// asked and no file is touched.
func (u *Redactor) Report(r proposal.Report) proposal.Report {
	run := r.Run
	r, _ = redactValue(u, r)
	r.Run = restoreRunLinks(r.Run, run)
	r.Records = u.redactStreams(r.Records)
	if r.Base != nil {
		base := *r.Base
		base.Records = u.redactStreams(base.Records)
		r.Base = &base
	}
	return r
}

// redactStreams returns records with what commands printed redacted.
func (u *Redactor) redactStreams(records []proposal.Record) []proposal.Record {
	records = slices.Clone(records)
	for i := range records {
		if records[i].Result == nil {
			continue
		}
		result := *records[i].Result
		for _, s := range []*proposal.Stream{&result.Stdout, &result.Stderr, &result.TestResults} {
			s.Head, s.Tail = u.redactBytes(s.Head), u.redactBytes(s.Tail)
		}
		records[i].Result = &result
	}
	return records
}

func (u *Redactor) redactBytes(b []byte) []byte {
	if text, found := redactValue(u, string(b)); found != nil {
		return []byte(text)
	}
	return b
}

// Text returns s with markers in place of secrets.
func (u *Redactor) Text(s string) string {
	if u == nil { // not created yet: what failed before that knows no secret
		return s
	}
	s, _ = redactValue(u, s)
	return s
}
