// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The links of rules: what fumehood's own rules are for, and how output is read.
const (
	docsRules  = "https://github.com/fumehood/fumehood/blob/main/docs/POLICY.md"
	docsOutput = "https://github.com/fumehood/fumehood/blob/main/docs/LIMITS.md"
)

// describeRule returns a rule with its title, help and link.
func describeRule(id string) sarifRule {
	if id == ruleFailed {
		return sarifRule{ID: id, Short: sarifText{"A command failed, and its output names this line"}, Link: docsOutput,
			Help: sarifText{"The message is what the tool printed: a test's name and message, or a compiler's or linter's report. The command and its full output are in the report of the run."}}
	}
	return sarifRule{ID: id, Short: sarifText{"Policy: " + id}, Link: docsRules,
		Help: sarifText{"The rule " + id +
			" of the policy refused a command, or reports what it did. The message says why, and what is allowed instead where something is."}}
}

// ruleFailed is the rule of the lines that a failed command names.
const ruleFailed = "command.failed"

// maxSARIF is the maximum number of results: GitHub reads 5,000 of one file.
const maxSARIF = 5000

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver sarifDriver `json:"driver"`
	} `json:"tool"`
	Columns string        `json:"columnKind"`
	Results []sarifResult `json:"results"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"semanticVersion,omitempty"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID         string           `json:"id"`
	Short      sarifText        `json:"shortDescription"`
	Help       sarifText        `json:"help"`
	Link       string           `json:"helpUri"`
	Properties *sarifProperties `json:"properties,omitempty"`
}

// sarifProperties are those that GitHub reads.
type sarifProperties struct {
	Severity string   `json:"security-severity,omitempty"`
	Tags     []string `json:"tags"`
}

// sarifSeverities are the level of a result and the score of its rule: GitHub calls a score
// above 9.0 critical, from 7.0 high and from 4.0 medium.
var sarifSeverities = map[string]struct{ level, score string }{
	"critical": {"error", "9.5"}, "high": {"error", "8.0"}, "medium": {"warning", "5.5"}, "low": {"note", "2.0"},
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	Rule      string            `json:"ruleId"`
	Level     string            `json:"level"`
	Message   sarifText         `json:"message"`
	Locations []sarifLocation   `json:"locations"`
	Prints    map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	Physical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region sarifRegion `json:"region"`
	} `json:"physicalLocation"`
}

type sarifRegion struct {
	Line int `json:"startLine"`
	Col  int `json:"startColumn,omitempty"`
}

// SARIF writes what r says about code, as SARIF 2.1.0 for code scanning: the commands that
// policy denied, its findings, and what failed commands report about lines of sources, which
// are paths in the repository. No other file is named, whatever a command prints. A denial
// and a finding are about no file; GitHub requires one, which is the configuration file.
func SARIF(w io.Writer, r proposal.Report, sources []string) error {
	var run sarifRun
	run.Tool.Driver = sarifDriver{Name: "fumehood", Rules: []sarifRule{}}
	run.Columns, run.Results = "utf16CodeUnits", []sarifResult{}
	for _, rec := range r.Records {
		for _, reason := range rec.Decision.Reasons {
			if rec.Decision.Effect == proposal.Deny && !reason.Observed {
				level := cmp.Or(sarifSeverities[reason.Severity].level, "error")
				run.addResult(reason.Rule, level, fmt.Sprintf("%s was denied: %s", rec.Proposal.ID, reason.Message),
					config.Path, sarifRegion{Line: 1})
				run.classifyRule(reason)
			}
		}
		if o := observationsOf(rec); o != nil {
			for _, f := range o.Findings {
				run.addResult(f.Rule, "warning", fmt.Sprintf("%s: %s", rec.Proposal.ID, f.Message), config.Path,
					sarifRegion{Line: 1})
			}
		}
	}
	list, _ := Annotations(r, sources)
	for _, a := range list {
		run.addResult(ruleFailed, sarifLevels[a.Level], a.Title+": "+a.Message, a.Path,
			sarifRegion{Line: a.Line, Col: a.Col})
	}
	data, err := json.MarshalIndent(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{run}}, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write SARIF: %w", err)
	}
	_, err = w.Write(append(text.EscapeJSON(data), '\n'))
	return err
}

var sarifLevels = map[string]string{"failure": "error", "warning": "warning", "notice": "note"}

// classifyRule gives the reason's rule its category and severity. Of several severities, as of
// two policies, the worst counts.
func (run *sarifRun) classifyRule(r proposal.Reason) {
	rules := run.Tool.Driver.Rules
	i := slices.IndexFunc(rules, func(known sarifRule) bool { return known.ID == text.Inline(r.Rule, 100) })
	if i < 0 || r.Severity+r.Category == "" {
		return
	}
	p := rules[i].Properties
	if p == nil {
		p = &sarifProperties{Tags: []string{"security"}}
		rules[i].Properties = p
	}
	p.Severity = max(p.Severity, sarifSeverities[r.Severity].score)
	if r.Category != "" && !slices.Contains(p.Tags, r.Category) {
		p.Tags = append(p.Tags, r.Category)
	}
}

// addResult adds a result and its rule. Results are recognized by rule, file and message.
func (run *sarifRun) addResult(rule, level, message, file string, at sarifRegion) {
	if len(run.Results) == maxSARIF {
		return
	}
	rule, message = text.Inline(rule, 100), text.Inline(message, 1000)
	if rules := &run.Tool.Driver.Rules; !slices.ContainsFunc(*rules, func(r sarifRule) bool { return r.ID == rule }) {
		*rules = append(*rules, describeRule(rule))
	}
	result := sarifResult{Rule: rule, Level: level, Message: sarifText{message},
		Prints: map[string]string{"fumehood/v1": fmt.Sprintf("%x",
			sha256.Sum256([]byte(rule+"\x00"+file+"\x00"+message)))}}
	var where sarifLocation
	where.Physical.Artifact.URI, where.Physical.Region = (&url.URL{Path: file}).EscapedPath(), at
	result.Locations = []sarifLocation{where}
	run.Results = append(run.Results, result)
}
