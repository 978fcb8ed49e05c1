// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"encoding/json"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Schema names the version of a Report's JSON.
const Schema = "fumehood.policy-test/v1"

// A Report is the result of all tests.
type Report struct {
	Schema   string        `json:"schema"`
	Policy   string        `json:"policy"` // digest of the policy that decided
	Tests    []Result      `json:"tests"`
	Passed   int           `json:"passed"`
	Failed   int           `json:"failed"` // includes tests with an error and those that did not end
	Skipped  int           `json:"skipped"`
	Layers   []LayerReport `json:"layers"`
	Rules    []RuleReport  `json:"rules"`
	Shadows  []Shadow      `json:"shadows,omitempty"`
	Warnings []string      `json:"warnings"`
	WallMS   int64         `json:"wall_ms"`
}

// A LayerReport has the number of tests of a tested layer.
type LayerReport struct {
	Layer string `json:"layer"`
	Tests int    `json:"tests"` // without skipped ones
}

// A RuleReport has the number of tests in which a rule held.
type RuleReport struct {
	Layer string `json:"layer"`
	File  string `json:"file"`
	Line  int    `json:"line"`
	Point string `json:"point"`
	Set   string `json:"set"`
	Rule  string `json:"rule"` // "" for a rule without an id of its own
	Title string `json:"title"`
	Tests int    `json:"tests"`
}

// A Shadow is a rule that had no effect in any input of the tests, of the corpus or generated
// from the rules: it did not hold, it allowed what was denied, or others denied the same. It
// proves nothing: other inputs may exist.
type Shadow struct {
	RuleReport
	Seen string `json:"seen"`
}

// A Status is the result of a test.
type Status string

// The statuses.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Erred   Status = "error"   // it could not be run, or a built-in erred
	Endless Status = "endless" // it did not end within its deadline, or took too much memory
	Skipped Status = "skipped"
)

// The kinds of tests.
const (
	KindRego    = "rego"
	KindExample = "example"
	KindCase    = "case"
	// KindGenerated is an input that was made from the rules. Only those that show a mistake
	// are tests.
	KindGenerated = "generated"
)

// A Result is the result of one test. Its texts come from the policy's author, and quote
// what was decided.
type Result struct {
	Name    string            `json:"name"`
	Kind    string            `json:"kind"`
	Layer   string            `json:"layer"`
	File    string            `json:"file"`
	Line    int               `json:"line"`
	Status  Status            `json:"status"`
	WallUS  int64             `json:"wall_us"`
	Message string            `json:"message,omitempty"` // why it did not pass
	Hint    string            `json:"hint,omitempty"`
	Subject string            `json:"subject,omitempty"` // what was decided: a command, or fields of an input as JSON
	Want    string            `json:"want,omitempty"`
	Got     string            `json:"got,omitempty"`
	Rules   []string          `json:"rules,omitempty"` // that held
	Reasons []proposal.Reason `json:"reasons,omitempty"`
	Failure *Expression       `json:"failure,omitempty"` // of a test in Rego
	Parts   []Part            `json:"parts,omitempty"`   // of a test in Rego with its own cases
	Print   string            `json:"print,omitempty"`   // what it printed

	broken bool // it could not be read
}

// An Expression is one that did not hold, with the values of its variables.
type Expression struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// A Part is one case of a Rego test with several.
type Part struct {
	Name    string      `json:"name"`
	Status  Status      `json:"status"`
	Failure *Expression `json:"failure,omitempty"`
}

func (r *Report) addResult(one Result) {
	switch one.Status {
	case Passed:
		r.Passed++
	case Skipped:
		r.Skipped++
	default:
		r.Failed++
	}
	r.Tests = append(r.Tests, one)
}

// CountRan is the number of tests that ran.
func (r Report) CountRan() int { return r.Passed + r.Failed }

// Coverage is the percentage of the rules that held in a test: 100 if there are no rules.
func (r Report) Coverage() float64 {
	if len(r.Rules) == 0 {
		return 100
	}
	held := 0
	for _, rule := range r.Rules {
		if rule.Tests > 0 {
			held++
		}
	}
	return 100 * float64(held) / float64(len(r.Rules))
}

// IsUntouched reports whether layer has rules but none of them held in a test.
func (r Report) IsUntouched(layer string) bool {
	rules := 0
	for _, rule := range r.Rules {
		if rule.Layer != layer {
			continue
		}
		if rules++; rule.Tests > 0 {
			return false
		}
	}
	return rules > 0
}

// MarshalJSON adds the coverage, and never writes a list as null.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	if r.Tests == nil {
		r.Tests = []Result{}
	}
	if r.Rules == nil {
		r.Rules = []RuleReport{}
	}
	if r.Layers == nil {
		r.Layers = []LayerReport{}
	}
	if r.Warnings == nil {
		r.Warnings = []string{}
	}
	return json.Marshal(struct {
		plain
		Coverage float64 `json:"coverage"`
	}{plain(r), r.Coverage()})
}

func layerReport(layer string, tests []Result) LayerReport {
	n := 0
	for _, t := range tests {
		if t.Layer == layer && t.Status != Skipped && !t.broken {
			n++
		}
	}
	return LayerReport{layer, n}
}
