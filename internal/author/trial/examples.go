// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The keys of METADATA's custom that contain examples.
var exampleKeys = []string{"match", "not_match", "grants", "not_grants", "reaches", "not_reaches"}

// An example is one entry of a rule's METADATA.
type example struct {
	description
	key    string
	set    string
	point  string // without "fumehood."
	layer  policy.Layer
	places []module.Place // of all rules with the id, in the layer
	value  any
}

// addExamples makes a test of each example in a layer.
func (t *trial) addExamples(f files) {
	places := map[string][]module.Place{}
	for _, m := range f.rules {
		for _, r := range m.Rules {
			if at, ok := module.RuleAt(f.layer.Name, r); ok {
				for _, id := range []string{describeRule(r).id, headID(r)} {
					places[id] = append(places[id], at)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.rules)) {
		for _, r := range f.rules[name].Rules {
			t.examplesOf(f, f.rules[name], r, places)
		}
	}
}

func (t *trial) examplesOf(f files, m *ast.Module, r *ast.Rule, places map[string][]module.Place) {
	d := describeRule(r)
	for _, key := range slices.Sorted(maps.Keys(d.custom)) {
		if !slices.Contains(exampleKeys, key) {
			if meant := suggestKey(key); meant != "" {
				t.addBroken(KindExample, f.layer.Name, r.Location.File, r.Location.Row,
					fmt.Sprintf("unknown key %q in METADATA's custom", key), "did you mean "+meant+"?")
			}
			continue
		}
		list, ok := d.custom[key].([]any)
		switch {
		case !ok:
			t.addBroken(KindExample, f.layer.Name, r.Location.File, r.Location.Row,
				fmt.Sprintf("custom.%s is not a list", key), `write `+key+`: ["go test ./..."]`)
			continue
		case d.id == "":
			t.addBroken(KindExample, f.layer.Name, r.Location.File, r.Location.Row, "the rule has examples but no id",
				"write custom: {rule: my.rule} in its METADATA")
			continue
		}
		for _, value := range list {
			x := example{description: d, key: key, set: string(r.Head.Ref()[0].Value.(ast.Var)),
				point: strings.TrimPrefix(module.PackageOf(m), "fumehood."), layer: f.layer, places: places[d.id],
				value: value}
			subject := x.subjectText()
			t.tests = append(t.tests, test{
				result: Result{Name: fmt.Sprintf("%s %s %s", d.id, key, subject), Kind: KindExample,
					Layer: f.layer.Name, File: r.Location.File, Line: r.Location.Row, Subject: subject},
				run: func(ctx context.Context, r *Result) { t.testExample(ctx, x, r) },
			})
		}
	}
}

// suggestKey is the key of which this one is a misspelling, or "".
func suggestKey(key string) string {
	letters := func(s string) string {
		return strings.TrimRight(strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s)), "es")
	}
	for _, known := range exampleKeys {
		if letters(key) == letters(known) {
			return known
		}
	}
	return ""
}

func (x example) subjectText() string {
	if s, ok := x.value.(string); ok {
		return s
	}
	text, err := json.Marshal(x.value)
	if err != nil {
		return fmt.Sprint(x.value)
	}
	return string(text)
}

// testExample decides x and checks whether its rule held.
func (t *trial) testExample(ctx context.Context, x example, r *Result) {
	a, err := t.decideAndNote(func() (answer, error) { return t.answerTo(ctx, x) })
	if err != nil {
		r.setError(err)
		return
	}
	r.setAnswer(a)
	holds, denier := x.isMetBy(a), t.overrulingRule(x, a)
	if r.Status = Passed; holds && denier == "" {
		return
	}
	r.Status = Failed
	if r.Want, r.Message = x.expectation(); holds {
		r.Want, r.Message = "allow or ask",
			fmt.Sprintf("%s allows it, but %s denies it: the rule has no effect", x.id, denier)
		r.Hint = "use an example that is allowed, or remove the rule: an allow cannot loosen a denial"
		return
	}
	if x.set == "allow" && x.layer.Role < policy.Allows {
		r.Hint = "pass its directory with --organization or --granting: a layer of this kind must not allow"
	}
}

// answerTo decides an example.
func (t *trial) answerTo(ctx context.Context, x example) (answer, error) {
	if strings.HasSuffix(x.key, "reaches") {
		text, _ := x.value.(string)
		return t.decideReach(ctx, text)
	}
	input, err := NewInput(x.point, x.value)
	if err != nil {
		return answer{}, err
	}
	if p, ok := input.(proposal.Proposal); ok {
		return t.decideProposal(ctx, p)
	}
	return t.judgeInput(ctx, input)
}

// NewInput is an input of point, without "fumehood.", as examples describe it: a text is a command, and an object has
// fields of a proposal or of the point's input. It is a proposal.Proposal or of a type that policy.Engine.InputOf
// accepts.
func NewInput(point string, value any) (any, error) {
	text, isText := value.(string)
	switch {
	case isText && ordinary[point] != nil:
		return nil, fmt.Errorf("an example of fumehood.%s must be an object with fields of its input", point)
	case isText:
		return proposal.Proposal{ID: "t", Run: text}, nil
	}
	changes, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if ordinary[point] == nil {
		p := proposal.Proposal{ID: "t"}
		err := decodeStrict(changes, &p)
		return p, err
	}
	return applyTo(point, changes)
}

// Examples are the inputs of the examples in the METADATA of l.
func Examples(l policy.Layer) (inputs []any) {
	modules := ParseModules(l)
	for _, f := range l.Files {
		if modules[f.Name] == nil {
			continue
		}
		point := strings.TrimPrefix(module.PackageOf(modules[f.Name]), "fumehood.")
		for _, r := range modules[f.Name].Rules {
			for _, key := range exampleKeys {
				list, _ := describeRule(r).custom[key].([]any)
				for _, value := range list {
					if in, err := NewInput(point, value); err == nil {
						inputs = append(inputs, in)
					}
				}
			}
		}
	}
	return inputs
}

// decideReach decides text with a granted host.
func (t *trial) decideReach(ctx context.Context, text string) (answer, error) {
	e, err := t.newReachEngine(ctx)
	if err != nil {
		return answer{}, err
	}
	return t.decideBy(ctx, e, proposal.Proposal{ID: "t", Run: text, Network: []string{"api.example.com"}})
}

// silent are the sets whose rules have an effect without being named in a decision.
var silent = []string{"limits", "network", "env", "exec", "programs", "cache", module.SetOverride}

func (x example) isMetBy(a answer) bool {
	switch x.key {
	case "grants":
		return a.effect == "allow" && a.grant != nil && len(a.grant.Exec) > 0
	case "not_grants":
		return a.effect == "allow" && a.grant != nil && len(a.grant.Exec) == 0
	case "reaches", "not_reaches":
		return (a.effect == "allow") == (x.key == "reaches")
	}
	spoke, held := a.hasRule(x.id), slices.ContainsFunc(x.places, func(at module.Place) bool { return a.held[at] })
	if slices.Contains(silent, x.set) {
		spoke = held
	}
	if x.key == "match" { // another layer may have a rule with the same id
		return spoke && held
	}
	return !spoke
}

// overrulingRule returns the rule that denies what x says an allow is for, or "". A layer with
// a lower role may deny it: that restricts the allow, which otherwise has an effect.
func (t *trial) overrulingRule(x example, a answer) string {
	if x.key != "match" || x.set != "allow" || a.effect != "deny" {
		return ""
	}
	lower := map[string]bool{}
	for _, l := range t.engine.Layers() {
		lower[l.Label] = l.Role < x.layer.Role
	}
	for _, r := range a.reasons {
		if r.Effect == proposal.Deny && !r.Observed && !lower[r.Layer] {
			return r.Rule
		}
	}
	return ""
}

// expectation returns the expectation, and the message if it was not met.
func (x example) expectation() (want, message string) {
	switch x.key {
	case "grants":
		return "allow with a grant of programs", "it is not allowed with a grant of programs"
	case "not_grants":
		return "allow without a grant of programs", "it is not allowed without a grant of programs"
	case "reaches":
		return "allow", "it is not allowed with a granted host"
	case "not_reaches":
		return "deny", "it is allowed with a granted host"
	case "match":
		return "rule " + x.id, x.id + " does not apply to it"
	}
	return "not rule " + x.id, x.id + " applies to it"
}
