// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxDocument is the size of the largest Document that Read accepts, in bytes.
const MaxDocument = 16 << 20

// The bounds of a Document's lists.
const (
	maxFindings = 100
	maxRuns     = 10_000
	maxEvidence = 100
)

// Read decodes a Document from an untrusted source, such as an artifact. It accepts only what
// Document.EncodeJSON writes, byte for byte, with values in bounds, verdicts that follow from the
// evidence, and positions that are those of their findings. It cannot know whether the evidence is
// true, or whether the diff has the positions. The error is a StopError with the code
// review.malformed.
func Read(data []byte) (Document, error) {
	d, err := ReadOwn(data)
	if err == nil && (d.Model != nil || d.Partial) {
		return Document{}, malformedError("it is of a model that was asked where the code ran")
	}
	return d, err
}

// ReadOwn is Read for a Document that this job's own process wrote: a model may have been asked.
func ReadOwn(data []byte) (Document, error) {
	var d Document
	if len(data) > MaxDocument {
		return d, malformedError("it is larger than %s", text.Size(MaxDocument))
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return Document{}, malformedError("%s", text.Inline(err.Error(), 200))
	}
	again, err := d.EncodeJSON()
	if err != nil || !bytes.Equal(again, bytes.TrimRight(data, "\n")) {
		return Document{}, malformedError("it is not spelled as fumehood writes it")
	}
	if why := d.invalidReason(); why != "" {
		return Document{}, malformedError("%s", why)
	}
	return d, nil
}

func malformedError(format string, args ...any) error {
	return &proposal.StopError{Code: "review.malformed", Message: "invalid review: " + fmt.Sprintf(format, args...),
		Hint: "run the job that verifies the findings again, with the same version of fumehood in every job"}
}

var (
	fullSHA    = pattern.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	digestName = pattern.New(`^sha256:[0-9a-f]{64}$`)
)

// invalidReason returns the first thing that is wrong with d, or "".
func (d Document) invalidReason() string {
	switch {
	case d.Schema != Schema:
		return "its schema is not " + Schema
	case !fullSHA.MatchString(d.Base) || !fullSHA.MatchString(d.Head):
		return "it has no full commit ids"
	case d.Findings != "" && !digestName.MatchString(d.Findings):
		return "the digest of its findings is malformed"
	case len(d.Results) > maxFindings || len(d.Runs) > maxRuns:
		return "it has too many findings or runs"
	case d.Since != "" && !fullSHA.MatchString(d.Since):
		return "the commit that was reviewed before is malformed"
	case d.Partial && (d.Model == nil || d.Reviewed):
		return "it is partial without a model that did not finish"
	case d.Reviewed == (d.Reason != ""):
		return "it has a reason and was reviewed, or neither"
	case d.Reviewed && len(d.Results) > 0 && d.CountVerdict(NotRun) == len(d.Results):
		return "it was reviewed although nothing ran"
	}
	for _, r := range d.Results {
		if why := r.invalidReason(); why != "" {
			return fmt.Sprintf("finding %q: %s", text.Inline(r.Finding.ID, 64), why)
		}
	}
	return ""
}

// invalidReason returns what is wrong with r, or "".
func (r Result) invalidReason() string {
	verdict, why := r.judgeEvidence()
	switch {
	case r.Finding.Invalid == nil && !hasValidFields(r.Finding),
		r.Finding.Invalid != nil && len(r.Finding.Invalid.Problems) == 0:
		return "a field is out of bounds"
	case verdict != r.Verdict || why != r.Why:
		return "its verdict does not follow from its evidence"
	case !isValidEvidence(r.Evidence, SideHead, SideBase):
		return "its evidence is out of bounds"
	case r.Position != nil && (r.Finding.Invalid != nil || !r.Position.isPositionOf(r.Finding)):
		return "its position is not the finding's"
	}
	return r.wrongSuggestion()
}

// wrongSuggestion requires that a suggestion is offered only for what was shown.
func (r Result) wrongSuggestion() string {
	if r.Suggestion == nil {
		return ""
	}
	again := Suggestion{Evidence: r.Suggestion.Evidence}
	again.offerIfSuccessful()
	switch {
	case !isValidEvidence(again.Evidence, SideSuggested):
		return "the evidence of its suggestion is out of bounds"
	case r.Suggestion.Offered && (!again.Offered || r.Verdict != Verified || !r.Position.isSuggestible() ||
		r.Finding.Suggestion == nil):
		return "its suggestion is offered although nothing shows that it helps"
	}
	return ""
}

// The bounds of a finding, which are those of plan.DecodeFindings.
const (
	maxID         = 64
	maxPath       = 4096
	maxClaim      = 4 << 10
	maxSuggestion = 16 << 10
	maxLine       = 10_000_000
)

// hasValidFields reports whether the fields of a finding have values that DecodeFindings returns.
func hasValidFields(f proposal.ReviewFinding) bool {
	return f.ID != "" && len(f.ID) <= maxID && filepath.IsLocal(f.File) && len(f.File) <= maxPath &&
		len(f.Claim) <= maxClaim &&
		f.Line >= 1 && f.Line <= maxLine && f.Start >= 0 && f.Start <= f.Line &&
		(f.Suggestion == nil || len(*f.Suggestion) <= maxSuggestion) &&
		slices.Contains([]string{"", SideHead, SideBase}, f.Side) &&
		(f.Severity == "" || slices.Contains(valid.Severities, f.Severity))
}

// isValidEvidence reports whether evidence is of the given sides, with known outcomes.
func isValidEvidence(list []Evidence, sides ...string) bool {
	return len(list) <= maxEvidence && !slices.ContainsFunc(list, func(e Evidence) bool {
		return !slices.Contains(sides, e.Side) || !slices.Contains([]Outcome{Unknown, Passed, Failed}, e.Outcome)
	})
}

// isPositionOf reports whether p can be the position of f. Only the name of an old file can have changed.
func (p *Position) isPositionOf(f proposal.ReviewFinding) bool {
	start := 0
	if f.Start < f.Line {
		start = f.Start
	}
	if f.Side == SideBase {
		return p.Side == "LEFT" && p.Line == f.Line && p.StartLine == start && filepath.IsLocal(p.Path)
	}
	return *p == Position{Path: f.File, Line: f.Line, StartLine: start, Side: "RIGHT"}
}

// WithRedactedTexts returns d with every text passed through redact. A suggestion that is changed by it is
// not offered: it is no longer what was tried.
func (d Document) WithRedactedTexts(redact func(string) string) Document {
	d.Reviewer, d.Reason = redact(d.Reviewer), redact(d.Reason)
	d.Results, d.Runs = slices.Clone(d.Results), slices.Clone(d.Runs)
	for i := range d.Results {
		d.Results[i] = d.Results[i].withRedactedTexts(redact)
	}
	return d
}

func (r Result) withRedactedTexts(redact func(string) string) Result {
	f := &r.Finding
	f.ID, f.Claim = redact(f.ID), redact(f.Claim)
	if f.Invalid != nil {
		f.Invalid = &proposal.Invalid{Problems: slices.Clone(f.Invalid.Problems), Text: redact(f.Invalid.Text)}
		for i := range f.Invalid.Problems {
			f.Invalid.Problems[i].Message = redact(f.Invalid.Problems[i].Message)
		}
	}
	if f.Reproducer != nil {
		p := redactProposal(*f.Reproducer, redact)
		f.Reproducer = &p
	}
	r.Evidence = redactEvidence(r.Evidence, redact)
	if s := f.Suggestion; s != nil {
		text := redact(*s)
		f.Suggestion = &text
		if r.Suggestion != nil {
			copied := Suggestion{Offered: r.Suggestion.Offered, Why: redact(r.Suggestion.Why),
				Evidence: redactEvidence(r.Suggestion.Evidence, redact)}
			if text != *s {
				copied.Offered, copied.Why = false, "it has a value that is redacted"
			}
			r.Suggestion = &copied
		}
	}
	r.Verdict, r.Why = r.judgeEvidence()
	return r
}

func redactEvidence(list []Evidence, redact func(string) string) []Evidence {
	list = slices.Clone(list)
	for i := range list {
		list[i].Ended = redact(list[i].Ended)
	}
	return list
}

func redactProposal(p proposal.Proposal, redact func(string) string) proposal.Proposal {
	p.Run, p.Code, p.Why, p.Stdin, p.Expect = redact(p.Run), redact(p.Code), redact(p.Why), redact(p.Stdin),
		redact(p.Expect)
	p.Argv, p.Env = slices.Clone(p.Argv), maps.Clone(p.Env)
	for i := range p.Argv {
		p.Argv[i] = redact(p.Argv[i])
	}
	for name, value := range p.Env {
		p.Env[name] = redact(value)
	}
	return p
}
