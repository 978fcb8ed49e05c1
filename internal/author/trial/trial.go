// SPDX-License-Identifier: Apache-2.0

// Package trial tests policies: it runs the tests that their authors wrote, and reports
// which rules no test reaches.
//
// There are three kinds of tests:
//   - rules test_… in files that end in _test.rego, which OPA's tester runs on the layer
//     alone
//   - examples in the METADATA of a rule: match and not_match (the rule applies, or not),
//     grants and not_grants (kinds of programs), reaches and not_reaches (allowed with a
//     granted host, or not)
//   - cases, for people who do not write Rego, in files called cases.yaml or ending in
//     _cases.yaml
//
// Examples and cases are decided as in a run: with all layers, by the same engine.
//
// Two built-ins exist only in tests. fumehood.parse("go test ./...") is the input document
// of fumehood.command for the first command of the text. An optional second argument, an
// object, may have fields of a proposal ("phase", "network" …) and "command", the index of
// the command, or -1 for the input of fumehood.proposal. fumehood.decide has the same
// arguments and is the Decision of all layers. Tools other than fumehood know no optional
// argument: for them, fumehood.parse_with and fumehood.decide_with have both.
//
// It promises that a test that passes here is also true in a run. So a test file that would
// change the layer's decisions is refused, and an error in a built-in fails the test. Like
// a policy, a test cannot read the network, files or the environment. Every test has a
// deadline of processor time, after which it is reported and the next one runs; a test
// that does not even end then is abandoned.
//
// It does not limit what a test computes within its deadline, except for memory, and that
// by sampling: test untrusted policies where they cannot do harm.
package trial

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options select what is tested.
type Options struct {
	// Tried are the layers whose tests run and whose rules are counted. They decide together
	// with the others, the granting layer first. The shipped default decides as in a run;
	// it is tested only if it is in this list.
	Tried []policy.Layer
	// Beside are further layers that decide. Their tests run and their rules are counted,
	// too, but they may lack tests: a bundle usually has none.
	Beside []policy.Layer
	// Analyse returns a proposal's commands.
	Analyse func(proposal.Proposal) proposal.Analysis
	// Cases reads a file of cases.
	Cases func(data []byte, name string) ([]proposal.Case, []proposal.Problem)
	// Corpus are commands that are decided besides the tests, to find rules that have no
	// effect. Without it, examples of the shipped policy are used.
	Corpus []string
	// Only runs the tests whose names it matches; nil runs all.
	Only *regexp.Regexp
	// Deadline limits the processor time of one test; 0 is 5 s.
	Deadline time.Duration
	// Progress, when set, is called before each test with its number and the total.
	Progress func(number, of int, name string)
}

// Run runs all tests, one after the other. Its error is a *proposal.StopError: the
// policies do not compile, or ctx is done. Mistakes in tests are in the Report.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Deadline <= 0 {
		o.Deadline = 5 * time.Second
	}
	t := &trial{Options: o, spoken: map[module.Place]map[int]bool{}, seen: map[module.Place]effectCounts{},
		denies: map[module.Place]string{}, inputs: map[string]int{}}
	var err error
	if t.engine, err = t.newEngine(ctx); err != nil {
		return Report{}, err
	}
	start := time.Now()
	tried, warnings := t.collectAll(ctx)
	chosen := t.chosenTests()
	t.findDenials(tried)
	r := Report{Schema: Schema, Policy: t.engine.Digest(), Warnings: t.engine.Warnings()}
	for i, one := range chosen {
		if ctx.Err() != nil {
			return Report{}, &proposal.StopError{Code: "policy.test", Message: "the tests were interrupted",
				Hint: "run them again", Err: ctx.Err()}
		}
		if o.Progress != nil {
			o.Progress(i+1, len(chosen), one.result.Name)
		}
		r.addResult(t.timeTest(ctx, i, one))
	}
	if o.Only == nil {
		for _, failed := range t.exploreInputs(ctx, tried) {
			r.addResult(failed)
		}
	}
	for _, l := range tried {
		r.Layers = append(r.Layers, layerReport(l.Name, r.Tests))
		rules := t.ruleCoverage(l)
		r.Rules = append(r.Rules, rules...)
		if o.Only == nil {
			r.Shadows = append(r.Shadows, t.findShadows(l, rules)...)
		}
	}
	r.Warnings = append(warnings, t.engine.Warnings()...)
	r.WallMS = time.Since(start).Milliseconds()
	return r, nil
}

// A test is one thing to run.
type test struct {
	result Result // as far as it is known before
	run    func(context.Context, *Result)
}

type trial struct {
	Options
	engine *policy.Engine
	opened *policy.Engine // which grants every requested host
	remade int
	tests  []test
	watch
	spoken map[module.Place]map[int]bool // the tests in which a rule held
	seen   map[module.Place]effectCounts // by decisions of all layers
	denies map[module.Place]string       // the ids of the denials and questions that are tested
	inputs map[string]int                // of these decisions, by inputPoint

	known    []string // ids of rules
	readable bool     // all of them
}

// collectAll finds the tests of all layers. It returns the layers whose rules are counted:
// without those Beside that have no test, for which there is a warning.
func (t *trial) collectAll(ctx context.Context) (counted []policy.Layer, warnings []string) {
	for _, l := range t.Tried {
		t.collectTests(ctx, l)
	}
	counted = slices.Clone(t.Tried)
	for _, l := range t.Beside {
		before := len(t.tests)
		if t.collectTests(ctx, l); len(t.tests) > before {
			counted = append(counted, l)
			continue
		}
		warnings = append(warnings, fmt.Sprintf("policy.no-tests: the policy layer %q has no tests: it decides, and its rules are not counted", l.Name))
	}
	return counted, warnings
}

// findDenials finds the ids of the denials and questions of the layers.
func (t *trial) findDenials(tried []policy.Layer) {
	for _, l := range tried {
		for _, r := range t.ruleCoverage(l) {
			if r.Set == "deny" || r.Set == "ask" {
				t.denies[module.Place{Layer: l.Name, File: r.File, Row: r.Line}] = r.Rule
			}
		}
	}
}

// chosenTests are the tests to run.
func (t *trial) chosenTests() []test {
	if t.Only == nil {
		return t.tests
	}
	var some []test
	for _, one := range t.tests {
		if t.Only.MatchString(one.result.Name) {
			some = append(some, one)
		}
	}
	return some
}

// timeTest runs a test and times it.
func (t *trial) timeTest(ctx context.Context, number int, one test) Result {
	r := one.result
	t.setListener(func(at module.Place) {
		if t.spoken[at] == nil {
			t.spoken[at] = map[int]bool{}
		}
		t.spoken[at][number] = true
	})
	defer t.setListener(nil)
	start := time.Now()
	if one.run != nil {
		one.run(ctx, &r)
	}
	r.WallUS = time.Since(start).Microseconds()
	return r
}

// newEngine makes an engine that decides with all layers, and with further ones.
func (t *trial) newEngine(ctx context.Context, further ...policy.Layer) (*policy.Engine, error) {
	var layers []policy.Layer
	for _, l := range slices.Concat(t.Tried, t.Beside, further) {
		if l.Name != policy.DefaultLayer {
			layers = append(layers, l)
		}
	}
	var current atomic.Pointer[policy.Engine]
	engine, err := policy.New(ctx, policy.Options{Layers: sortedByRole(layers), OnRule: func(at module.Place) {
		if e := current.Load(); e != nil && !e.IsDead() {
			t.reportPlace(at, nil)
		}
	}})
	current.Store(engine)
	return engine, err
}

// opening grants every requested host.
var opening = policy.Layer{Name: "hosts of examples", Role: policy.Opens, Files: []policy.File{{Name: "hosts.rego", Content: []byte(`# METADATA
# title: Every host, for examples
package fumehood.proposal

# METADATA
# title: Every host that is asked for
# custom: {rule: examples.hosts}
network contains {"rule": "examples.hosts", "host": host} if some host in input.proposal.network
`)}}}

// newReachEngine makes the engine for examples with granted hosts.
func (t *trial) newReachEngine(ctx context.Context) (*policy.Engine, error) {
	if t.opened != nil && !t.opened.IsDead() {
		return t.opened, nil
	}
	var err error
	t.opened, err = t.newEngine(ctx, opening)
	return t.opened, err
}

// sortedByRole sorts layers by role, highest first, as the command line does.
func sortedByRole(layers []policy.Layer) []policy.Layer {
	var sorted []policy.Layer
	for role := policy.Grants; role >= policy.Restricts; role-- {
		for _, l := range layers {
			if l.Role == role {
				sorted = append(sorted, l)
			}
		}
	}
	return sorted
}
