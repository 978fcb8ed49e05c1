// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/fumehood/fumehood/pkg/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ExplanationSchema is the value of an Explanation's "schema" field.
const ExplanationSchema = "fumehood.explanation/v1"

// thinking is how long an explanation may take, in deadlines of a decision: it asks
// many times what a decision asks once.
const thinking = 10

// An Explanation is a Decision with why. Texts of it may be a stranger's.
type Explanation struct {
	Schema   string            `json:"schema"`
	ID       string            `json:"id"`
	Source   string            `json:"source"` // the proposal's own text, that spans are places in; "" where no shell reads it
	Text     string            `json:"text"`   // that was read, and would run
	Decision proposal.Decision `json:"decision"`
	Spoke    []Spoken          `json:"spoke"`
	Near     []Near            `json:"near"`     // rules that allow the program of a command that none allowed
	Rewrites []Rewrite         `json:"rewrites"` // for what could not be known
}

// A Spoken is a rule that held.
type Spoken struct {
	Rule    string `json:"rule"`
	Layer   string `json:"layer"`  // as Reason.Layer has it
	Policy  string `json:"policy"` // where the layer was read
	Point   string `json:"point"`
	Set     string `json:"set"`
	Title   string `json:"title,omitempty"`
	File    string `json:"file"` // within the layer
	Line    int    `json:"line"`
	Command int    `json:"command"` // -1 for the whole proposal
}

// A Near is a rule that would have allowed a command, had more of it held.
type Near struct {
	Spoken
	Failed   []Condition `json:"failed"`
	Examples []string    `json:"examples"` // of what it allows, each decided
}

// A Condition is one that did not hold.
type Condition struct {
	Text string `json:"text"`
	File string `json:"file"`
	Line int    `json:"line"`
	Col  int    `json:"col"`
	// Values are the parts of the input that it reads, as JSON and cut where long.
	Values []Value `json:"values"`
}

// A Value is a part of the input.
type Value struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Evaluate decides p as Decide does, and says which rules spoke. An error is a
// *proposal.StopError.
func (v *Adviser) Evaluate(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (Explanation, error) {
	d, err := v.engine.Decide(ctx, p, a)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Schema: ExplanationSchema, ID: p.ID, Source: ownText(p, a), Text: strings.TrimRight(a.Canonical, "\n"), Decision: d}
	return x, v.engine.complete(ctx, v.engine.Inputs(p, a), &x)
}

// Explain is Evaluate, and says besides what nearly matched and what would be allowed.
func (v *Adviser) Explain(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (Explanation, error) {
	x, err := v.Evaluate(ctx, p, a)
	if err != nil || x.Decision.Effect == proposal.Allow {
		return x, err
	}
	x.Decision = v.Advise(ctx, p, a, x.Decision)
	docs := v.engine.unallowed(v.engine.Inputs(p, a), x.Spoke)
	near, err := attempt(ctx, v.engine, thinking*v.engine.deadline, func(ctx context.Context) ([]Near, error) {
		return v.engine.near(ctx, docs), nil
	})
	if err != nil {
		return Explanation{}, err
	}
	for _, n := range near {
		n.Examples = v.examplesOf(ctx, a, n)
		x.Near = append(x.Near, n)
	}
	for _, w := range rewritesOf(cmpText(x.Text, x.Source), a.Unknowns) {
		if t := v.try(ctx, w.After); w.After != "" && t.allowed {
			w.After = t.canonical
		} else {
			w.After = ""
		}
		x.Rewrites = append(x.Rewrites, w)
	}
	return x, nil
}

// EvaluateInput is Evaluate for what InputOf takes.
func (v *Adviser) EvaluateInput(ctx context.Context, in any) (Explanation, error) {
	e := v.engine
	doc, ok := e.InputOf(in)
	if !ok {
		return Explanation{}, module.Stop(module.CodeNoDecision, "there is no decision point for this", hintDefect, nil)
	}
	x := Explanation{Schema: ExplanationSchema, ID: strings.TrimPrefix(doc.Point, "fumehood.")}
	var err error
	switch in := in.(type) {
	case *proposal.Trigger:
		x.Decision, err = e.Trigger(ctx, *in)
	case *proposal.Exec:
		var d proposal.ExecDecision
		d, err = e.Exec(ctx, *in)
		x.Decision = simple(d.Effect, d.Rules, d.Reason)
	case *proposal.Egress:
		var d proposal.EgressDecision
		d, err = e.Egress(ctx, *in)
		x.Decision = simple(d.Effect, d.Rules, d.Reason)
	case *proposal.Outgoing:
		var d proposal.OutputDecision
		d, err = e.Output(ctx, *in)
		x.Decision = simple(d.Effect, d.Rules, d.Reason)
	case *proposal.Event:
		var found []proposal.Finding
		found, err = e.Event(ctx, *in)
		x.Decision = simple(proposal.Allow, nil, nil)
		for _, f := range found {
			x.Decision.Rules = append(x.Decision.Rules, f.Rule)
			x.Decision.Reasons = append(x.Decision.Reasons, proposal.Reason{Rule: f.Rule, Effect: proposal.Allow, Message: f.Message, Command: whole})
		}
	}
	if err != nil {
		return Explanation{}, err
	}
	return x, e.complete(ctx, []Document{doc}, &x)
}

func simple(effect proposal.Effect, rules []string, r *proposal.Reason) proposal.Decision {
	d := proposal.Decision{Effect: effect, Rules: append([]string{}, rules...), Reasons: []proposal.Reason{}}
	if r != nil {
		d.Reasons = append(d.Reasons, *r)
	}
	return d
}

// complete says which rules spoke about docs.
func (e *Engine) complete(ctx context.Context, docs []Document, x *Explanation) error {
	spoke, err := attempt(ctx, e, thinking*e.deadline, func(ctx context.Context) ([]Spoken, error) { return e.listen(ctx, docs) })
	if x.Near, x.Rewrites, x.Spoke = []Near{}, []Rewrite{}, append([]Spoken{}, spoke...); x.Decision.Reasons == nil {
		x.Decision.Reasons = []proposal.Reason{}
	}
	return err
}

// listen asks every layer again, and hears which rules hold.
func (e *Engine) listen(ctx context.Context, docs []Document) ([]Spoken, error) {
	var all []Spoken
	for _, doc := range docs {
		for _, l := range e.layers {
			var spoke []Spoken
			var err error
			l.meter(ctx).Run(func() { spoke, err = l.listen(ctx, doc) })
			if err != nil {
				return nil, err
			}
			all = append(all, spoke...)
		}
	}
	return all, nil
}

// unallowed are the documents of commands that no rule allows which may.
func (e *Engine) unallowed(docs []Document, spoke []Spoken) []Document {
	return slices.DeleteFunc(docs, func(doc Document) bool {
		return doc.Point != module.PointCommand || slices.ContainsFunc(spoke, func(s Spoken) bool {
			return s.Command == doc.Command && s.Point == module.PointCommand && s.Set == "allow" && e.labelled(s.Layer).may(Allows)
		})
	})
}

func (e *Engine) labelled(label string) *layer {
	i := slices.IndexFunc(e.layers, func(l *layer) bool { return l.label == label })
	return e.layers[i]
}

func (e *Engine) near(ctx context.Context, docs []Document) []Near {
	var all []Near
	for _, doc := range docs[:min(len(docs), mostStrange)] {
		for _, l := range e.layers {
			l.meter(ctx).Run(func() { all = append(all, l.near(ctx, doc)...) })
		}
	}
	return all
}

// listen returns the rules of l that hold for doc, in the order of their places.
func (l *layer) listen(ctx context.Context, doc Document) ([]Spoken, error) {
	p := l.points[doc.Point]
	if p == nil {
		return nil, nil
	}
	c, err := p.compiled()
	if err != nil {
		return nil, err
	}
	var places []module.Place
	tell := func(at module.Place) {
		if !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	if _, err := c.query.Eval(ctx, rego.EvalParsedInput(doc.Input), rego.EvalQueryTracer(module.Listener{Layer: l.name, Tell: tell})); err != nil {
		return nil, evalStop(ctx, l.name, doc.Point, err)
	}
	slices.SortFunc(places, func(a, b module.Place) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return a.Row - b.Row
	})
	var spoke []Spoken
	for _, d := range l.book.about(wholly) {
		if slices.Contains(places, module.Place{Layer: l.name, File: d.file, Row: d.row}) && d.point == doc.Point {
			spoke = append(spoke, d.spoken(doc.Command))
		}
	}
	return spoke, nil
}

func (d definition) spoken(command int) Spoken {
	return Spoken{Rule: d.id, Layer: d.layer.label, Policy: d.layer.name, Point: d.point, Set: d.set, Title: d.title, File: d.file, Line: d.row, Command: command}
}
