// SPDX-License-Identifier: Apache-2.0

// Package explain reports why a decision was made: which rules held, which conditions of
// a rule that nearly allowed a command failed, and which command is allowed instead.
//
// It makes no decisions. The texts that it returns may quote untrusted proposals and
// policies.
package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ExplanationSchema is the value of an Explanation's "schema" field.
const ExplanationSchema = "fumehood.explanation/v1"

// An Explanation is a Decision with its reasons. Its texts may be untrusted.
type Explanation struct {
	Schema   string            `json:"schema"`
	ID       string            `json:"id"`
	Source   string            `json:"source"` // the proposal's own text, to which spans refer; "" if no shell reads it
	Text     string            `json:"text"`   // the text that was read, and would run
	Decision proposal.Decision `json:"decision"`
	Held     []HeldRule        `json:"spoke"`
	Near     []Near            `json:"near"`            // rules that allow the program of a command that no rule allowed
	Rewrites []Rewrite         `json:"rewrites"`        // for text that could not be known
	Notes    []string          `json:"notes,omitempty"` // what else a run needs
}

// A HeldRule is a rule that held.
type HeldRule struct {
	Rule    string `json:"rule"`
	Layer   string `json:"layer"`  // as in Reason.Layer
	Policy  string `json:"policy"` // where the layer was read from
	Point   string `json:"point"`
	Set     string `json:"set"`
	Title   string `json:"title,omitempty"`
	File    string `json:"file"` // within the layer
	Line    int    `json:"line"`
	Command int    `json:"command"` // -1 for the whole proposal
}

// A Near is a rule that would have allowed a command if more of its conditions had held.
type Near struct {
	HeldRule
	Failed   []Condition `json:"failed"`
	Examples []string    `json:"examples"` // commands that it allows; each was decided
}

// A Condition is one that did not hold.
type Condition struct {
	Text string `json:"text"`
	File string `json:"file"`
	Line int    `json:"line"`
	Col  int    `json:"col"`
	// Values are the parts of the input that it reads, as JSON, cut if long.
	Values []Value `json:"values"`
}

// A Value is a part of the input.
type Value struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Evaluate decides p as Decide does, and returns the rules that held. An error is a
// *proposal.StopError.
func (v *Adviser) Evaluate(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (Explanation, error) {
	d, err := v.engine.Decide(ctx, p, a)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Schema: ExplanationSchema, ID: p.ID, Source: facts.OwnText(p, a),
		Text: strings.TrimRight(a.Canonical, "\n"), Decision: d, Notes: v.privateNotes(ctx, p)}
	err = v.addHeldRules(ctx, v.engine.Inputs(p, a), &x)
	x.Notes = append(x.Notes, v.startNotes(x.Held)...)
	return x, err
}

// startNotes says of each denial in a policy of one's own that it is about texts, unless the policy also
// denies the start.
func (v *Adviser) startNotes(held []HeldRule) (notes []string) {
	for _, h := range held {
		if h.Point != module.PointCommand || h.Set != "deny" || h.Layer == policy.DefaultLayer {
			continue
		}
		starts, names := false, false
		for _, b := range v.indexes {
			for _, d := range b.definitionsIn(allFiles) {
				if d.set == "deny" && d.id == h.Rule {
					starts, names = starts || d.point == module.PointExec, names ||
						d.point == module.PointCommand && module.NamesProgram(d.rule)
				}
			}
		}
		if note := h.Rule + " is about texts: fumehood.exec decides what make or npm test start, and has no rule with this id"; names && !starts && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

// Explain is Evaluate, and also returns the rules that nearly matched and alternatives that
// would be allowed.
func (v *Adviser) Explain(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (Explanation, error) {
	x, err := v.Evaluate(ctx, p, a)
	if err != nil || x.Decision.Effect == proposal.Allow {
		return x, err
	}
	x.Decision.Reasons = v.AdviseReasons(ctx, p, a, x.Decision)
	docs := v.unallowedDocuments(v.engine.Inputs(p, a), x.Held)
	err = v.engine.RunExplanation(ctx, func(ctx context.Context) error {
		x.Near = append(x.Near, v.nearMatches(ctx, docs)...)
		return nil
	})
	if err != nil {
		return Explanation{}, err
	}
	for i := range x.Near {
		x.Near[i].Examples = v.examplesOf(ctx, a, x.Near[i])
	}
	for _, w := range rewritesOf(cmp.Or(x.Text, x.Source), a.Unknowns) {
		if t := v.tryText(ctx, w.After); w.After != "" && t.allowed {
			w.After = t.canonical
		} else {
			w.After = ""
		}
		x.Rewrites = append(x.Rewrites, w)
	}
	return x, nil
}

// EvaluateInput is Evaluate for the types that InputOf accepts.
func (v *Adviser) EvaluateInput(ctx context.Context, in any) (Explanation, error) {
	e := v.engine
	doc, ok := e.InputOf(in)
	if !ok {
		return Explanation{}, module.Stop(module.CodeNoDecision, "no decision point for this input",
			"this is a defect: report it", nil)
	}
	x := Explanation{Schema: ExplanationSchema, ID: strings.TrimPrefix(doc.Point, "fumehood.")}
	var err error
	switch in := in.(type) {
	case *points.Trigger:
		x.Decision, err = e.Trigger(ctx, *in)
	case *proposal.Exec:
		var d proposal.ExecDecision
		d, err = e.Exec(ctx, *in)
		x.Decision = simpleDecision(d.Effect, d.Rules, d.Reason)
	case *proposal.Egress:
		var d proposal.EgressDecision
		d, err = e.Egress(ctx, *in)
		x.Decision, x.Notes = simpleDecision(d.Effect, d.Rules, d.Reason), v.privateNote(ctx, *in)
	case *points.Outgoing:
		var d points.OutputDecision
		d, err = e.Output(ctx, *in)
		x.Decision = simpleDecision(d.Effect, d.Rules, d.Reason)
	case *proposal.Event:
		var found []proposal.Finding
		found, err = e.Event(ctx, *in)
		x.Decision = simpleDecision(proposal.Allow, nil, nil)
		for _, f := range found {
			x.Decision.Rules = append(x.Decision.Rules, f.Rule)
			x.Decision.Reasons = append(x.Decision.Reasons,
				proposal.Reason{Rule: f.Rule, Effect: proposal.Allow, Message: f.Message, Command: -1})
		}
	}
	if err != nil {
		return Explanation{}, err
	}
	return x, v.addHeldRules(ctx, []policy.Document{doc}, &x)
}

func simpleDecision(effect proposal.Effect, rules []string, r *proposal.Reason) proposal.Decision {
	d := proposal.Decision{Effect: effect, Rules: append([]string{}, rules...), Reasons: []proposal.Reason{}}
	if r != nil {
		d.Reasons = append(d.Reasons, *r)
	}
	return d
}

// addHeldRules adds the rules that held for docs.
func (v *Adviser) addHeldRules(ctx context.Context, docs []policy.Document, x *Explanation) error {
	x.Near, x.Rewrites, x.Held = []Near{}, []Rewrite{}, []HeldRule{}
	if x.Decision.Reasons == nil {
		x.Decision.Reasons = []proposal.Reason{}
	}
	return v.engine.RunExplanation(ctx, func(ctx context.Context) error {
		for _, doc := range docs {
			for i, b := range v.indexes {
				places, err := v.engine.HeldPlaces(ctx, i, doc)
				if err != nil {
					return err
				}
				x.Held = append(x.Held, b.heldRules(places, doc)...)
			}
		}
		return nil
	})
}

// heldRules are the rules at places.
func (b *ruleIndex) heldRules(places []module.Place, doc policy.Document) []HeldRule {
	var held []HeldRule
	named := func(f policy.File) bool {
		return slices.ContainsFunc(places, func(at module.Place) bool { return at.File == f.Name })
	}
	for _, d := range b.definitionsIn(named) {
		if slices.Contains(places, module.Place{Layer: b.layer.Name, File: d.file, Row: d.row}) &&
			d.point == doc.Point {
			held = append(held, d.heldRule(doc.Command))
		}
	}
	return held
}

func (d definition) heldRule(command int) HeldRule {
	return HeldRule{Rule: d.id, Layer: d.layer.Label, Policy: d.layer.Name, Point: d.point, Set: d.set, Title: d.title,
		File: d.file, Line: d.row, Command: command}
}

// unallowedDocuments are the documents of commands that no rule of a layer that may allow allows.
func (v *Adviser) unallowedDocuments(docs []policy.Document, held []HeldRule) []policy.Document {
	return slices.DeleteFunc(docs, func(doc policy.Document) bool {
		return doc.Point != module.PointCommand || slices.ContainsFunc(held, func(s HeldRule) bool {
			return s.Command == doc.Command && s.Point == module.PointCommand && s.Set == "allow" &&
				v.layerWithLabel(s.Layer).Role >= policy.Allows
		})
	})
}

func (v *Adviser) layerWithLabel(label string) policy.LoadedLayer {
	i := slices.IndexFunc(v.indexes, func(b *ruleIndex) bool { return b.layer.Label == label })
	return v.indexes[i].layer
}
