// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Schema is the version of a Document as JSON.
const Schema = "fumehood.review/v1"

// A Document is what was shown about the findings of one review. Texts of the reviewer and of
// commands in it are untrusted.
type Document struct {
	Schema   string `json:"schema"`
	Base     string `json:"base"` // full ids of the two commits
	Head     string `json:"head"`
	Since    string `json:"since,omitempty"` // the commit that was reviewed before, if one is known: see MarkEarlier
	Reviewer string `json:"reviewer,omitempty"`
	Findings string `json:"findings_digest"`
	// Reviewed reports that the review ended normally and that a reproducer really ran, or that
	// there was no finding. Otherwise Reason says why not, and nothing may be concluded from the
	// absence of verified findings.
	Reviewed bool   `json:"reviewed"`
	Reason   string `json:"reason,omitempty"`
	// Partial says that the model did not finish, and Results are of what it had found.
	Partial bool     `json:"partial,omitempty"`
	Results []Result `json:"results"`
	Runs    []Run    `json:"runs"`
	// Lints, of 16 digits of lower-case hex, is the source of a document that LintsOf made. It is
	// empty for a review.
	Lints string `json:"-"`
	// Model is set if a model was asked.
	Model *ModelUse `json:"model,omitempty"`
}

// A Result is one finding with its verdict.
type Result struct {
	Finding  proposal.ReviewFinding `json:"finding"`
	Verdict  Verdict                `json:"verdict"`
	Why      string                 `json:"why"`
	Position *Position              `json:"position"` // nil if a comment cannot be placed
	Unplaced string                 `json:"unplaced,omitempty"`
	Earlier  bool                   `json:"earlier,omitempty"` // its lines did not change since Document.Since
	Evidence []Evidence             `json:"evidence"`
	// Suggestion is set if the finding has one.
	Suggestion *Suggestion `json:"suggestion,omitempty"`
	// Lint is set if a command reports it, instead of a reviewer.
	Lint *Lint `json:"-"`
}

// A Verdict is what the runs of a reproducer show.
type Verdict string

// The verdicts: see the package.
const (
	Verified      Verdict = "verified"
	PreExisting   Verdict = "pre-existing"
	Flaky         Verdict = "flaky"
	NotReproduced Verdict = "not-reproduced"
	NotRun        Verdict = "not-run"
)

// A Suggestion says whether a suggestion is offered, and if not, why.
type Suggestion struct {
	Offered  bool       `json:"offered"`
	Why      string     `json:"why,omitempty"`
	Evidence []Evidence `json:"evidence"`
}

// SideSuggested is the side of Evidence and Runs on head with a suggestion applied.
const SideSuggested = "suggested"

// An Outcome is how a reproducer or test ended.
type Outcome string

// The outcomes. Unknown says nothing about the code: the command did not run, or not as
// it should.
const (
	Unknown Outcome = "unknown"
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
)

// Evidence is one run of a command.
type Evidence struct {
	Side    string  `json:"side"`
	Run     string  `json:"run"`   // id of a Run
	Entry   int64   `json:"entry"` // of the decision in its log
	ID      string  `json:"id"`    // of the command in its report
	Outcome Outcome `json:"outcome"`
	Ended   string  `json:"ended"` // how, in words
}

// A Run is one run of the gate, with what verifies its log.
type Run struct {
	ID         string `json:"id"`
	Side       string `json:"side"`
	Log        string `json:"log"` // file
	Key        string `json:"key"`
	Checkpoint string `json:"checkpoint"`
}

func runOf(side string, r proposal.Report) Run {
	return Run{ID: r.Run.ID, Side: side, Log: r.Audit.File, Key: r.Audit.Key, Checkpoint: string(r.Audit.Checkpoint)}
}

// newDocument returns the document before anything has run.
func newDocument(diff *Diff, findings proposal.ReviewFindings) Document {
	d := Document{Schema: Schema, Reviewer: findings.Reviewer, Findings: findings.Digest, Results: []Result{},
		Runs: []Run{}}
	for _, f := range findings.Findings {
		r := Result{Finding: f, Evidence: []Evidence{}}
		if f.Invalid == nil {
			r.Position, r.Unplaced = diff.Position(f)
		}
		d.Results = append(d.Results, r)
	}
	return d
}

// setVerdicts sets the verdicts, and whether this was a review.
func (d *Document) setVerdicts(err error) {
	ran := false
	for i := range d.Results {
		r := &d.Results[i]
		r.Verdict, r.Why = r.judgeEvidence()
		ran = ran || r.Verdict != NotRun
	}
	switch {
	case err != nil:
		d.Reason = proposal.FailureOf(err).Message
	case len(d.Results) > 0 && !ran:
		d.Reason = "no reproducer ran"
	default:
		d.Reviewed = true
	}
}

// CountVerdict returns how many results have a verdict.
func (d Document) CountVerdict(v Verdict) (n int) {
	for _, r := range d.Results {
		if r.Verdict == v {
			n++
		}
	}
	return n
}

// EncodeJSON encodes d.
func (d Document) EncodeJSON() ([]byte, error) { return json.Marshal(d) }

// lastOutcome returns the latest outcome on a side, Unknown if there is none.
func (r Result) lastOutcome(side string) Outcome {
	o := Unknown
	for _, e := range r.Evidence {
		if e.Side == side {
			o = e.Outcome
		}
	}
	return o
}

// judgeEvidence returns the verdict that the evidence gives, and why.
func (r Result) judgeEvidence() (Verdict, string) {
	switch {
	case r.Finding.Invalid != nil:
		return NotRun, r.Finding.Invalid.Problems[0].String()
	case r.Finding.Reproducer == nil:
		return NotRun, "there is no reproducer"
	case len(r.Evidence) == 0:
		return NotRun, "the review ended before it"
	}
	for _, e := range r.Evidence {
		if e.Outcome == Unknown {
			return NotRun, fmt.Sprintf("on %s: %s", e.Side, e.Ended)
		}
	}
	for _, side := range []string{SideHead, SideBase} {
		if haveDifferingOutcomes(r.Evidence, side) {
			return Flaky, "its runs on " + side + " differ"
		}
	}
	return r.compareOutcomes()
}

// compareOutcomes judges runs of which none differ.
func (r Result) compareOutcomes() (Verdict, string) {
	head, base := r.lastOutcome(SideHead), r.lastOutcome(SideBase)
	switch {
	case head == Passed:
		return NotReproduced, "the reproducer succeeds on the pull request's code"
	case base == Failed:
		return PreExisting, "the reproducer fails before the pull request, too"
	case head == Failed && base == Passed && len(r.Evidence) == 2*repeats:
		return Verified, fmt.Sprintf("the reproducer fails on the pull request's code and succeeds before it, %d times each", repeats)
	}
	return NotRun, "the review ended before all of its runs"
}

func haveDifferingOutcomes(list []Evidence, side string) bool {
	var seen Outcome
	for _, e := range list {
		if e.Side != side {
			continue
		}
		if seen != "" && e.Outcome != seen {
			return true
		}
		seen = e.Outcome
	}
	return false
}

// offerIfSuccessful offers the suggestion if everything succeeded with it.
func (s *Suggestion) offerIfSuccessful() {
	for i, e := range s.Evidence {
		what := "the reproducer"
		if i > 0 {
			what = "the test " + e.ID
		}
		if e.Outcome != Passed {
			s.Why = fmt.Sprintf("with it %s does not succeed: %s", what, e.Ended)
			return
		}
	}
	s.Offered = len(s.Evidence) > 0
}
