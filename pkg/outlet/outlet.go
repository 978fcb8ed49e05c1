// SPDX-License-Identifier: Apache-2.0

// Package outlet is the filter in a fume hood's exhaust: whatever leaves a run passes it,
// and what looks like a secret, or is a value that it was told to mask, stays behind.
//
// It promises that nothing of what a sandbox left reaches the artifacts, the report or
// the log before it was searched and policy (fumehood.output) was asked about it: the
// sandbox leaves its files in a folder of its own, which never is part of what is
// published, and each is copied from there with markers in the place of finds, or not at
// all. A file that is no text is copied as it is or withheld. A length or digest is told
// of what was copied, never of what was found. Where it cannot search or policy cannot
// answer, nothing of the thing leaves and the run stops.
//
// It is the second line: it does not protect against a program that wishes to hide what
// it prints, by compression, encryption, an encoding of its own, or by the length of
// things. pkg/internal/secrets says what is found and what is not.
package outlet

import (
	"context"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/pkg/internal/lease"
	"github.com/fumehood/fumehood/pkg/internal/secrets"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Mask is a value that must never leave, by the name that stands for it.
type Mask = secrets.Mask

// LeastMask is the length from which a value can be masked.
const LeastMask = secrets.LeastMask

// Options say what an Outlet works with.
type Options struct {
	Masks []Mask
	// Decide asks policy; nil replaces everything that is found and withholds what is no
	// text with a find in it.
	Decide func(context.Context, proposal.Outgoing) (proposal.OutputDecision, error)
	// Artifacts is the folder for what may leave; without it nothing is copied.
	Artifacts string
}

// An Outlet is one run's.
type Outlet struct {
	o        Options
	redactor *secrets.Redactor
	raw      *lease.Dir
}

// New returns an Outlet. Its error is a *proposal.StopError that holds no value of a mask.
func New(o Options) (*Outlet, error) {
	r, err := secrets.NewRedactor(o.Masks)
	if err != nil {
		return nil, &proposal.StopError{Code: "output.mask", Message: err.Error(), Hint: "mask values that are found nowhere else, of 6 bytes to 64 KiB, and a hundred at most, 192 KiB together"}
	}
	if o.Decide == nil {
		o.Decide = replaceAll
	}
	return &Outlet{o: o, redactor: r}, nil
}

// replaceAll is the answer of who has no policy.
func replaceAll(_ context.Context, x proposal.Outgoing) (proposal.OutputDecision, error) {
	d := proposal.OutputDecision{Effect: proposal.Allow}
	for _, s := range x.Secrets {
		d.Redact = append(d.Redact, s.Rule)
	}
	if n, _ := proposal.CountRedactions(x.Secrets); x.Binary && n+x.Masked > 0 {
		d.Effect = proposal.Deny
	}
	return d, nil
}

// Record returns r as it may be told: with markers in its texts, and counts of them.
// What its Result holds has passed Result already.
func (u *Outlet) Record(r proposal.Record) proposal.Record {
	result := r.Result
	r.Result = nil
	id := r.Proposal.ID
	r, r.Redacted = clean(u, r)
	r.Proposal.ID, r.Result = id, result // an id with a secret is refused: see Named
	return r
}

func clean[T any](u *Outlet, v T) (T, []proposal.Redaction) { return secrets.Value(u.redactor, v) }

// Named refuses a plan with an id that would have to be replaced: everything that is
// told of a command is told by its id.
func (u *Outlet) Named(plan proposal.Plan) error {
	for i, p := range plan.Proposals {
		if _, found := clean(u, p.ID); found != nil {
			return &proposal.StopError{Code: "output.id", Message: fmt.Sprintf("the id of proposal %d holds what looks like a secret (%s)", i+1, found[0].Rule),
				Hint: "give it another id"}
		}
	}
	return nil
}

// Run returns what is told of the run, and Failure why it stopped.
func (u *Outlet) Run(r proposal.Run) proposal.Run {
	told, _ := clean(u, r)
	return bound(told, r)
}

// bound is told with what binds a run to its log, its plan and its commits, none of which
// is anybody's text: a mask like "sha256" must not cut those ties.
func bound(told, r proposal.Run) proposal.Run {
	told.ID, told.PlanDigest, told.Policy, told.HeadSHA, told.BaseSHA = r.ID, r.PlanDigest, r.Policy, r.HeadSHA, r.BaseSHA
	return told
}

// Failure is Run for why a run stopped.
func (u *Outlet) Failure(f *proposal.Failure) *proposal.Failure {
	f, _ = clean(u, f)
	return f
}

// Error returns err with its message redacted: what stopped a run may quote what the run
// handled. u may be nil.
func (u *Outlet) Error(err error) error {
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

// Event returns what was seen of a command. Where words of a program are replaced,
// their digest goes: it could tell a short one. A word that the kernel's side has cut
// loses what may be the half of a secret.
func (u *Outlet) Event(e proposal.Event) proposal.Event {
	id := e.Command
	e, short := u.shortened(e)
	e, found := clean(u, e)
	e.Command = id
	if (found != nil || short) && e.Exec != nil {
		e.Exec.ArgvDigest = ""
	}
	return e
}

// cutWord is the length from which a word of a program may have been cut: wire.MaxWord.
const cutWord = 1 << 10

// shortened cuts words again where a secret may begin, and says whether it did. The last
// word may have been cut at any length.
func (u *Outlet) shortened(e proposal.Event) (proposal.Event, bool) {
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
		if n := u.redactor.Begun(w); n < len(w) {
			x.Argv[i], short = w[:n]+"…", true
		}
	}
	e.Exec = &x
	return e, short
}

// Report returns r, which may hold markers already, with those that are missing, for
// who tells a report that another has made and pkg/report has read: nothing is asked and no file is touched.
func (u *Outlet) Report(r proposal.Report) proposal.Report {
	run := r.Run
	r, _ = clean(u, r)
	r.Run = bound(r.Run, run)
	r.Records = slices.Clone(r.Records)
	for i := range r.Records {
		if r.Records[i].Result == nil {
			continue
		}
		result := *r.Records[i].Result
		for _, s := range []*proposal.Stream{&result.Stdout, &result.Stderr} {
			s.Head, s.Tail = u.bytes(s.Head), u.bytes(s.Tail)
		}
		r.Records[i].Result = &result
	}
	return r
}

func (u *Outlet) bytes(b []byte) []byte {
	if text, found := clean(u, string(b)); found != nil {
		return []byte(text)
	}
	return b
}

// Text is s with markers in the place of secrets.
func (u *Outlet) Text(s string) string {
	if u == nil { // not made yet: what stopped that knows no secret
		return s
	}
	s, _ = clean(u, s)
	return s
}
