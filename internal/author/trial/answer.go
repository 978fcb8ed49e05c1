// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An answer is the engine's decision about any input.
type answer struct {
	point   string // that was asked; for the points of a proposal that of the proposal
	effect  string // "" for an event, which only has notes
	rules   []string
	reasons []proposal.Reason
	grant   *proposal.Grant
	held    map[module.Place]bool
}

// hasRule reports whether a rule is among those of a. One that ends in a dot means all with
// this prefix.
func (a answer) hasRule(rule string) bool {
	return slices.ContainsFunc(a.rules, func(r string) bool { return module.CoversID(rule, r) })
}

// ordinary are the inputs to which the fields of examples and cases are applied, by
// decision point: the shipped policy allows them, without a reason.
var ordinary = map[string]func() any{
	"trigger": func() any {
		return &points.Trigger{
			Command: "run", Event: "issue_comment",
			Actor: points.Actor{Login: "mona", ID: 9, Type: "User", Permission: "write"},
			PR:    points.TriggerPR{Number: 7, State: "open", Head: "0123456789abcdef0123456789abcdef01234567"},
			Runs:  points.TriggerRuns{PR: 1, Day: 3, MaxPR: 20, MaxDay: 100},
		}
	},
	"exec": func() any {
		return &proposal.Exec{
			Command: "t", Path: "/usr/bin/git", Argv: []string{"git", "status"}, Cwd: "/workspace", Pid: 7, Parent: 5,
			ParentPath: "/usr/bin/bash", Digest: "sha256:00", Layer: proposal.LayerRootfs,
		}
	},
	"egress": func() any {
		return &proposal.Egress{
			Command: "t", Phase: proposal.PhaseRun, Kind: points.EgressConnect, Name: "api.example.com", Type: "A",
			Address: "192.0.2.10", Port: 443,
			Protocol: "tcp", Grants: []string{"api.example.com"},
		}
	},
	"event":  func() any { return &proposal.Event{Command: "t", Program: "/tmp/x/stats.test"} },
	"output": func() any { return &points.Outgoing{Command: "unit", Kind: points.OutgoingStdout} },
}

// applyTo applies changes to the ordinary input of point.
func applyTo(point string, changes []byte) (any, error) {
	make, ok := ordinary[point]
	if !ok {
		return nil, fmt.Errorf("fumehood.%s has no ordinary input to change", point)
	}
	input := make()
	return input, decodeStrict(changes, input)
}

// decodeStrict decodes JSON and refuses unknown fields.
func decodeStrict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		text := strings.TrimPrefix(err.Error(), "json: ")
		if name, found := strings.CutPrefix(text, "unknown field "); found {
			if near := module.SuggestName(strings.Trim(name, `"`), fieldsOf(reflect.TypeOf(into).Elem())); near != "" {
				return fmt.Errorf("%s: %s", text, near)
			}
		}
		return errors.New(text)
	}
	return nil
}

func fieldsOf(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// decideProposal evaluates p.
func (t *trial) decideProposal(ctx context.Context, p proposal.Proposal) (answer, error) {
	a, err := t.decideBy(ctx, t.engine, p)
	return a, t.renewDeadEngine(ctx, err)
}

func (t *trial) decideBy(ctx context.Context, e *policy.Engine, p proposal.Proposal) (answer, error) {
	d, err := e.Decide(ctx, p, t.Analyse(p))
	return answer{point: module.PointProposal, effect: d.Effect.String(), rules: d.Rules, reasons: d.Reasons,
		grant: d.Grant}, err
}

// judgeInput evaluates an input of another point.
func (t *trial) judgeInput(ctx context.Context, input any) (answer, error) {
	a, err := decideInput(ctx, t.engine, input)
	a.point = pointOf(input)
	return a, t.renewDeadEngine(ctx, err)
}

func decideInput(ctx context.Context, e *policy.Engine, input any) (answer, error) {
	switch in := input.(type) {
	case *points.Trigger:
		d, err := e.Trigger(ctx, *in)
		return answer{effect: d.Effect.String(), rules: d.Rules, reasons: d.Reasons}, err
	case *proposal.Exec:
		d, err := e.Exec(ctx, *in)
		return answer{effect: d.Effect.String(), rules: d.Rules, reasons: reasonList(d.Reason)}, err
	case *proposal.Egress:
		d, err := e.Egress(ctx, *in)
		return answer{effect: d.Effect.String(), rules: d.Rules, reasons: reasonList(d.Reason)}, err
	case *points.Outgoing:
		d, err := e.Output(ctx, *in)
		return answer{effect: d.Effect.String(), rules: d.Rules, reasons: reasonList(d.Reason)}, err
	case *proposal.Event:
		found, err := e.Event(ctx, *in)
		var a answer
		for _, f := range found {
			a.rules = append(a.rules, f.Rule)
		}
		return a, err
	}
	panic(fmt.Sprintf("trial: internal error: no decision point for a %T", input))
}

// pointOf is the point that decides input.
func pointOf(input any) string {
	for name, make := range ordinary {
		if reflect.TypeOf(make()) == reflect.TypeOf(input) {
			return module.OwnPackage + "." + name
		}
	}
	panic(fmt.Sprintf("trial: internal error: no decision point for a %T", input))
}

func reasonList(r *proposal.Reason) []proposal.Reason {
	if r == nil {
		return nil
	}
	return []proposal.Reason{*r}
}

// renewDeadEngine makes a new engine if an evaluation never ended, which leaves the engine dead, so
// that the other tests can run.
func (t *trial) renewDeadEngine(ctx context.Context, err error) error {
	var stop *proposal.StopError
	if errors.As(err, &stop) && stop.Code == "policy.deadline" && t.remade < 4 && t.engine.IsDead() {
		t.remade++
		if engine, err := t.newEngine(ctx); err == nil {
			t.engine = engine
		}
	}
	return err
}

// setError records in r why there is no answer.
func (r *Result) setError(err error) {
	r.Status, r.Message = Erred, err.Error()
	var stop *proposal.StopError
	if errors.As(err, &stop) {
		r.Hint = stop.Hint
		if stop.Code == "policy.deadline" {
			r.Status = Endless
		}
	}
	for _, endless := range []error{errEndless, errMemory, errLeft} {
		if errors.Is(err, endless) {
			r.Status = Endless
		}
	}
}

// setAnswer is a's answer as text for r.
func (r *Result) setAnswer(a answer) {
	r.Got, r.Rules, r.Reasons = a.effect, a.rules, a.reasons
}
