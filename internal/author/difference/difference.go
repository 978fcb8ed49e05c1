// SPDX-License-Identifier: Apache-2.0

// Package difference compares two versions of a policy: what the new one newly allows, denies and asks about, and which
// grants become more or less.
//
// Both versions decide the same inputs, each together with the same further policies: past runs, examples and cases of
// both versions, examples of the shipped policy, and inputs made of the words and constants of the rules that changed.
// The inputs are not all that there are, so that a difference that is not seen is not proof of anything, except where
// Proof says why. Changed rules that held for no input are listed.
//
// It promises that the decisions are those of a run. It runs nothing.
package difference

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Schema is the value of the field "schema" in the JSON of a Difference.
const Schema = "fumehood.policydiff/v1"

// Options name what is compared.
type Options struct {
	// Old and New are the two versions. One without files is no policy.
	Old, New policy.Layer
	// Beside are the policies that decide with both.
	Beside []policy.Layer
	Past   replay.Past
	// Shipped is how many examples of the shipped policy are tried, at most.
	Shipped int
	// Analyze returns a proposal's commands, and Cases reads a file of cases.
	Analyze func(proposal.Proposal) proposal.Analysis
	Cases   func(data []byte, name string) ([]proposal.Case, []proposal.Problem)
}

// A Difference is what a change of a policy changes.
type Difference struct {
	Schema string `json:"schema"`
	Rules  []Rule `json:"rules"` // that changed
	// Inputs counts the inputs that both versions decided, by where they are from.
	Inputs  Inputs          `json:"inputs"`
	Changes []replay.Change `json:"changes"`
	// Proof says why nothing is newly allowed, for any input; "" means that this is not known.
	Proof string `json:"proof,omitempty"`
	// Warnings are those of the new version.
	Warnings []string `json:"warnings,omitempty"`

	past replay.Outcome
}

// Inputs are numbers of inputs.
type Inputs struct {
	Examples  int `json:"examples"`  // of both versions, with their cases
	Generated int `json:"generated"` // from the rules that changed
	Shipped   int `json:"shipped"`   // examples of the shipped policy
	Past      int `json:"past"`      // proposals of past runs
}

func (n Inputs) total() int { return n.Examples + n.Generated + n.Shipped + n.Past }

// A Rule is one that only one of the versions has. One that changed is in both, as two Rules.
type Rule struct {
	In    string `json:"in"` // "old" or "new"
	Point string `json:"point"`
	Set   string `json:"set"`
	ID    string `json:"id"`
	File  string `json:"file"`
	Line  int    `json:"line"`
	// Reached means that it held for an input.
	Reached bool `json:"reached"`
}

// CanLoosen reports whether more may be allowed because r is in only one version. Interception can do both: it lets
// requests be decided, and be given credentials; so can an override: one that asks takes the place of one that allows.
func (r Rule) CanLoosen() bool {
	switch r.Set {
	case "intercept", module.SetOverride, setOptions:
		return true
	case "note":
		return false
	}
	return (r.In == inNew) == module.IsWidening(r.Set)
}

// isCompared reports whether a difference of what r answers would be a Change.
func (r Rule) isCompared() bool {
	return r.Point != pointFacts && !slices.Contains([]string{"budget", "cache", "redact"}, r.Set)
}

// IsLooser reports whether something is newly allowed, or may be: there is no proof, and a rule whose change can loosen
// was not reached, or its answers were not compared.
func (d Difference) IsLooser() bool {
	return d.isSeenLooser() || d.Proof == "" && slices.ContainsFunc(d.Rules, func(r Rule) bool {
		return r.CanLoosen() && !(r.Reached && r.isCompared())
	})
}

func (d Difference) isSeenLooser() bool {
	return slices.ContainsFunc(d.Changes, func(c replay.Change) bool { return !c.IsStricter() })
}

// A side is one of the versions.
type side struct {
	engine *policy.Engine
	name   string // of its layer

	mu   sync.Mutex
	held map[module.Place]bool
}

func newSide(ctx context.Context, l policy.Layer, beside []policy.Layer) (*side, error) {
	s, layers := &side{name: l.Name, held: map[module.Place]bool{}}, slices.Clone(beside)
	if l.Files != nil {
		layers = append(layers, l)
	}
	slices.SortStableFunc(layers, func(a, b policy.Layer) int { return int(b.Role - a.Role) })
	var err error
	s.engine, err = policy.New(ctx, policy.Options{Layers: layers, OnRule: func(at module.Place) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held[at] = true
	}})
	return s, err
}

// Compare compares the two versions. An error is a *proposal.StopError, or that ctx ended.
func Compare(ctx context.Context, o Options) (Difference, error) {
	before, err := newSide(ctx, o.Old, o.Beside)
	if err != nil {
		return Difference{}, err
	}
	after, err := newSide(ctx, o.New, o.Beside)
	if err != nil {
		return Difference{}, err
	}
	changed := changedRules(o.Old, o.New)
	added, err := changedFacts(o.Old, o.New)
	if err != nil {
		return Difference{}, err
	}
	d := Difference{Schema: Schema, Rules: []Rule{}, Changes: []replay.Change{},
		Proof: o.proveNotLooser(changed, added)}
	if len(changed)+len(added) == 0 {
		return d, nil
	}
	for _, r := range changed {
		d.Rules = append(d.Rules, r.Rule)
	}
	var all replay.Outcome
	for _, list := range []struct {
		count  *int
		origin string
		inputs []input
	}{
		{&d.Inputs.Examples, "an example", o.exampleInputs()},
		{&d.Inputs.Generated, "generated", append(factInputs(added), generateInputs(changed)...)},
		{&d.Inputs.Shipped, "the default policy's example", o.shippedInputs()},
	} {
		for _, in := range list.inputs {
			if ctx.Err() != nil {
				return d, ctx.Err()
			}
			if err := o.compareInput(ctx, &all, list.origin, in, before.engine, after.engine); err != nil {
				return d, err
			}
			*list.count++
		}
	}
	if d.past, err = replay.Compare(ctx, o.Past, before.engine, after.engine, nil); err != nil {
		return d, err
	}
	d.Inputs.Past = d.past.Proposals
	d.Rules = append(d.Rules, added...)
	d.Changes = append(append(d.Changes, all.Changes...), d.past.Changes...)
	for i, r := range d.Rules[:len(changed)] {
		s := before
		if r.In == inNew {
			s = after
		}
		d.Rules[i].Reached = s.held[module.Place{Layer: s.name, File: r.File, Row: r.Line}]
	}
	if d.isSeenLooser() {
		d.Proof = ""
	}
	d.Warnings = after.engine.Warnings()
	return d, nil
}

// An input is one that both versions decide.
type input struct {
	value   any // a proposal.Proposal, or of a type that policy.Engine.InputOf accepts
	context proposal.Context
	about   string // the fields of the context that are set
}

// compareInput decides in by both engines, and adds what differs.
func (o Options) compareInput(
	ctx context.Context, all *replay.Outcome, origin string, in input, before, after *policy.Engine,
) error {
	if in.about != "" {
		var err error
		if before, err = before.WithContext(in.context); err != nil {
			return err
		}
		if after, err = after.WithContext(in.context); err != nil {
			return err
		}
		origin += ", with " + in.about
	}
	if p, ok := in.value.(proposal.Proposal); ok {
		act := replay.Act{Proposal: p, Analysis: o.Analyze(p)}
		var errBefore error
		act.Decision, errBefore = before.Decide(ctx, p, act.Analysis)
		to, err := after.Decide(ctx, p, act.Analysis)
		known := len(all.Changes)
		all.AddDecisions(origin, act, errBefore, to, err)
		for i := known; i < len(all.Changes); i++ {
			c := &all.Changes[i]
			if c.ID = ""; len(p.Network) > 0 {
				c.Text = fmt.Sprintf("%s (network: %s)", strings.TrimSpace(c.Text), strings.Join(p.Network, ", "))
			}
		}
		return nil
	}
	kind, text := describeInput(in.value)
	from, flags := decideInput(ctx, before, in.value)
	to, newFlags := decideInput(ctx, after, in.value)
	change := replay.Change{Kind: kind, Run: origin, Text: text, Times: 1, From: from, To: to}
	if from.Effect != to.Effect {
		all.Changes = append(all.Changes, change)
		return nil
	}
	change.Kind = replay.KindGrant
	if lost := withoutTexts(flags, newFlags); lost != "" {
		change.Less, change.From.Message, change.To.Message = true, "with "+lost, "without "+lost
		all.Changes = append(all.Changes, change)
	}
	if won := withoutTexts(newFlags, flags); won != "" {
		change.Less, change.From.Message, change.To.Message = false, "without "+won, "with "+won
		all.Changes = append(all.Changes, change)
	}
	return nil
}

// withoutTexts lists the texts that others do not have.
func withoutTexts(texts, others []string) string {
	own := slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return slices.Contains(others, t) })
	return strings.Join(own, ", ")
}

// decideInput decides an input of a point that is not of a proposal. The flags are what an answer about a connection
// permits besides it.
func decideInput(ctx context.Context, e *policy.Engine, in any) (replay.Answer, []string) {
	switch in := in.(type) {
	case *points.Trigger:
		d, err := e.Trigger(ctx, *in)
		return replay.NewAnswer(d.Effect, d.Rules, d.Reasons, err), nil
	case *proposal.Exec:
		d, err := e.Exec(ctx, *in)
		return replay.NewAnswer(d.Effect, d.Rules, replay.ReasonList(d.Reason), err), nil
	case *points.Outgoing:
		d, err := e.Output(ctx, *in)
		return replay.NewAnswer(d.Effect, d.Rules, replay.ReasonList(d.Reason), err), nil
	case *proposal.Egress:
		d, err := e.Egress(ctx, *in)
		return replay.NewAnswer(d.Effect, d.Rules, replay.ReasonList(d.Reason), err), egressFlags(d)
	}
	return replay.Answer{Effect: proposal.Allow.String()}, nil // an event has notes only
}

// egressFlags are what d permits besides the step itself.
func egressFlags(d proposal.EgressDecision) (flags []string) {
	for name, set := range map[string]bool{"private addresses": d.Private, "raw bytes": d.Raw,
		"no interception": !d.Intercept, "no search for secrets": !d.Filter, "many names": d.Below == ""} {
		if set {
			flags = append(flags, name)
		}
	}
	slices.Sort(flags)
	return flags
}

// describeInput returns the kind of an input, and what it is in one line.
func describeInput(in any) (kind, text string) {
	switch in := in.(type) {
	case *proposal.Exec:
		return replay.KindExec, fmt.Sprintf("%s (%s)", strings.Join(in.Argv, " "), in.Path)
	case *proposal.Egress:
		return replay.KindEgress, strings.TrimSpace(in.Kind + " " + in.Destination() + " " + in.Path)
	case *points.Trigger:
		kind = "trigger"
	case *points.Outgoing:
		kind = "output"
	default:
		kind = "event"
	}
	data, err := json.Marshal(in)
	if err != nil {
		panic("difference: internal error: " + err.Error())
	}
	return kind, string(data)
}

// exampleInputs are the examples and cases of both versions.
func (o Options) exampleInputs() (inputs []input) {
	seen := map[string]bool{}
	for _, l := range []policy.Layer{o.Old, o.New} {
		values := trial.Examples(l)
		for _, f := range l.Files {
			if !f.IsCases() {
				continue
			}
			cases, _ := o.Cases(f.Content, f.Name)
			for _, c := range cases {
				if c.Proposal != nil {
					values = append(values, *c.Proposal)
				}
			}
		}
		inputs = append(inputs, newInputs(values, seen)...)
	}
	return inputs
}

// newInputs are inputs of the values that are not in seen, which it adds.
func newInputs(values []any, seen map[string]bool) (inputs []input) {
	for _, v := range values {
		if in := (input{value: v}); in.isNew(seen) {
			inputs = append(inputs, in)
		}
	}
	return inputs
}

// isNew reports whether seen has not in, and adds it.
func (in input) isNew(seen map[string]bool) bool {
	data, err := json.Marshal(in.value)
	key := fmt.Sprintf("%T %s %s", in.value, data, in.about)
	if err != nil || seen[key] {
		return false
	}
	seen[key] = true
	return true
}

// shippedInputs are examples of the shipped policy, from all parts of it.
func (o Options) shippedInputs() (some []input) {
	l, err := policy.ShippedLayer()
	if err != nil || o.Shipped <= 0 {
		return nil // policy.New has read it
	}
	all := newInputs(trial.Examples(l), map[string]bool{})
	step := max(1, (len(all)+o.Shipped-1)/o.Shipped)
	for i := 0; i < len(all); i += step {
		some = append(some, all[i])
	}
	return some
}
