// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// outputInput is the input document of fumehood.output. Every field is always present.
type outputInput struct {
	Command   string               `json:"command"`              // id of the proposal, "" for output about the whole run
	Kind      string               `json:"kind" enum:"outgoing"` // what it is; output is a file that the proposal declared
	Name      string               `json:"name"`                 // for an output: its path in the workspace
	Ending    string               `json:"ending" form:"ending"` // of Name: ".png", or ""
	Size      int64                `json:"size"`                 // bytes
	Binary    bool                 `json:"binary"`               // it is not text
	Secrets   []proposal.Redaction `json:"secrets"`              // possible secrets, by the detector's rule
	Found     int                  `json:"found"`                // the number of possible secrets
	Masked    int                  `json:"masked"`               // the number of values found that the caller registered to mask
	Encodings []string             `json:"encodings"`            // the encodings of these values
}

// unreadable is the finding for content that could not be searched: see internal/egress/secrets.
const unreadable = "unscanned"

// Output decides about one output that is about to leave. Deny withholds all of it. An
// error is a *proposal.StopError, as for Decide, and then the output must not leave.
//
// Any layer may deny, and redact findings. Findings that the granting layer does not redact
// remain, if it has any rules at fumehood.output; if it has none, all findings are
// redacted. Whatever the layers say, a value that the caller registered to mask is
// redacted, and so is content that could not be searched. If either is in binary content,
// all of it is withheld.
func (e *Engine) Output(ctx context.Context, x points.Outgoing) (points.OutputDecision, error) {
	return inTime(ctx, e, func(ctx context.Context) (points.OutputDecision, error) {
		m := newMerger(e)
		m.replaced = map[string]bool{}
		if err := e.askLayers(ctx, m, module.PointOutput, e.newDocument(outputInputOf(x)), whole,
			x.Name); err != nil {
			return points.OutputDecision{}, err
		}
		return m.outputDecision(x), nil
	})
}

func outputInputOf(x points.Outgoing) outputInput {
	in := outputInput{Command: x.Command, Kind: x.Kind, Name: x.Name, Ending: path.Ext(x.Name), Size: x.Size,
		Binary:  x.Binary,
		Secrets: x.Secrets, Masked: x.Masked, Encodings: x.Encodings}
	in.Found, _ = redaction.CountFinds(x.Secrets)
	return in
}

// allFindings is the secret of a redact that names none.
const allFindings = ""

// readReplacement reads one member of redact at fumehood.output.
func (m *merger) readReplacement(l *layer, fields map[string]string) {
	if m.isObserved(l) {
		return
	}
	m.rules[fields["rule"]] = true
	m.replaced[fields["secret"]] = true
}

func (m *merger) outputDecision(x points.Outgoing) points.OutputDecision {
	m.outputFloor(x)
	m.observeCandidate(func(would *merger) { would.outputFloor(x) })
	d := points.OutputDecision{Effect: m.strictestEffect(), Redact: []string{},
		Rules: slices.Sorted(maps.Keys(m.rules)), Reason: mostImportantReason(m.reasons)}
	for _, s := range x.Secrets {
		if m.replaced[allFindings] || m.replaced[s.Rule] || s.Rule == unreadable {
			d.Redact = append(d.Redact, s.Rule)
		}
	}
	if d.Effect != proposal.Allow {
		d.Effect = proposal.Deny
		return d
	}
	d.Observed = d.Reason != nil
	return d
}

// outputFloor applies whatever the layers say.
func (m *merger) outputFloor(x points.Outgoing) {
	if !slices.ContainsFunc(m.engine.layers,
		func(l *layer) bool { return l.hasRole(Grants) && l.points[module.PointOutput] != nil }) {
		m.replaced[allFindings] = true
	}
	if !x.Binary {
		return
	}
	withhold := func(rule, what string) {
		m.addReason("deny", map[string]string{"rule": rule,
			"message":    fmt.Sprintf("%s, which cannot be redacted there", what),
			"suggestion": "write it as text, or remove the value"}, whole, x.Name)
	}
	if x.Masked > 0 {
		withhold("output.masked", "it is a binary file and contains a value that must be masked")
	}
	if slices.ContainsFunc(x.Secrets, func(s proposal.Redaction) bool { return s.Rule == unreadable }) {
		withhold("output.unscanned", "it is a binary file and has content that could not be searched for secrets")
	}
}
