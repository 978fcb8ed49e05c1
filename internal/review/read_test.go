// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// sampleDocument has a finding of every verdict, the first with an offered suggestion.
func sampleDocument() Document {
	with := "b\n"
	runs := func(head, base Outcome, n int) (list []Evidence) {
		for _, side := range []string{SideHead, SideBase} {
			for range n {
				list = append(list, Evidence{Side: side, Run: "r", Entry: 1, ID: "reproducer-1", Outcome: map[string]Outcome{"head": head, "base": base}[side], Ended: "exit code 1"})
			}
		}
		return list
	}
	d := Document{Schema: Schema, Base: strings.Repeat("a", 40), Head: strings.Repeat("b", 40), Findings: "sha256:" + strings.Repeat("c", 64), Runs: []Run{}}
	for i, e := range [][]Evidence{runs(Failed, Passed, 3), runs(Failed, Failed, 1), runs(Passed, Passed, 1), runs(Unknown, Passed, 1), append(runs(Failed, Passed, 2), runs(Passed, Passed, 1)...)} {
		f := proposal.ReviewFinding{ID: string(rune('a' + i)), File: "d/f.go", Line: 7, Start: 5, Severity: "low", Claim: "wrong", Reproducer: &proposal.Proposal{Run: "go test ./..."}, Suggestion: &with}
		d.Results = append(d.Results, Result{Finding: f, Evidence: e, Position: &Position{Path: f.File, Line: 7, StartLine: 5, Side: "RIGHT"}, Suggestion: &Suggestion{}})
	}
	d.Results[0].Suggestion = &Suggestion{Offered: true, Evidence: []Evidence{{Side: SideSuggested, Outcome: Passed}}}
	d.setVerdicts(nil)
	return d
}

// What is written is read again, and nothing that is spelled differently or that the evidence
// does not show.
func TestRead(t *testing.T) {
	good := sampleDocument()
	data, err := good.EncodeJSON()
	if err != nil {
		t.Fatal(err)
	}
	if d, err := Read(append(data, '\n')); err != nil || !reflect.DeepEqual(d, good) {
		t.Fatalf("%v\n%+v\n%+v", err, d, good)
	}
	for name, change := range map[string]func(*Document){
		"schema":              func(d *Document) { d.Schema = "x" },
		"short commit":        func(d *Document) { d.Head = d.Head[:12] },
		"no digest":           func(d *Document) { d.Findings = "x" },
		"a verdict":           func(d *Document) { d.Results[1].Verdict = Verified },
		"a verdict's reason":  func(d *Document) { d.Results[0].Why = "trust me" },
		"too little evidence": func(d *Document) { d.Results[0].Evidence = d.Results[0].Evidence[1:] },
		"a side":              func(d *Document) { d.Results[0].Evidence[0].Side = "up" },
		"an outcome":          func(d *Document) { d.Results[0].Evidence[0].Outcome = "fine" },
		"another file":        func(d *Document) { d.Results[0].Position.Path = "other" },
		"another line":        func(d *Document) { d.Results[0].Position.Line = 8 },
		"other lines":         func(d *Document) { d.Results[0].Position.StartLine = 1 },
		"the other side":      func(d *Document) { d.Results[0].Position.Side = "LEFT" },
		"a path":              func(d *Document) { d.Results[0].Finding.File = "../x"; d.Results[0].Position.Path = "../x" },
		"a line":              func(d *Document) { d.Results[0].Finding.Line = 0; d.Results[0].Position.Line = 0 },
		"a severity":          func(d *Document) { d.Results[0].Finding.Severity = "@everyone" },
		"a claim":             func(d *Document) { d.Results[0].Finding.Claim = strings.Repeat("x", 5000) },
		"an untried offer":    func(d *Document) { d.Results[0].Suggestion.Evidence = nil },
		"a failed offer":      func(d *Document) { d.Results[0].Suggestion.Evidence[0].Outcome = Failed },
		"an unverified offer": func(d *Document) { d.Results[1].Suggestion = d.Results[0].Suggestion },
		"no reason":           func(d *Document) { d.Reviewed = false },
		"nothing ran":         func(d *Document) { d.Results = d.Results[3:4] },
		"a model":             func(d *Document) { d.Model = &ModelUse{} },
		"a part":              func(d *Document) { d.Partial = true },
		"too many":            func(d *Document) { d.Results = slicesRepeat(d.Results, 21) },
	} {
		d := sampleDocument()
		change(&d)
		if data, err := d.EncodeJSON(); err != nil {
			t.Fatal(err)
		} else if _, err := Read(data); err == nil || proposal.FailureOf(err).Code != "review.malformed" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string][2]string{
		"an unknown field": {`"base":`, `"x":1,"base":`}, "a field twice": {`"reviewed":true`, `"reviewed":false,"reviewed":true`}, "another case": {`"head"`, `"HEAD"`},
		"a blank": {`,"head"`, `, "head"`}, "cut": {`"runs":[]}`, ""}, "two": {`"runs":[]}`, `"runs":[]}{}`},
	} {
		if _, err := Read(bytes.Replace(data, []byte(change[0]), []byte(change[1]), 1)); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	if _, err := Read(bytes.Repeat([]byte(" "), MaxDocument+1)); err == nil {
		t.Error("too large")
	}
}

func slicesRepeat(list []Result, n int) (all []Result) {
	for range n {
		all = append(all, list...)
	}
	return all
}

// Redaction reaches every text, and a suggestion that it changes is not offered. What is left can
// be read again.
func TestRedacted(t *testing.T) {
	const secret = "hunter2hunter2"
	d := sampleDocument()
	for i := range d.Results {
		f := &d.Results[i].Finding
		with := "x " + secret
		f.Claim, f.Suggestion = secret, &with
		f.Reproducer = &proposal.Proposal{Run: secret, Argv: []string{secret}, Env: map[string]string{"A": secret}, Why: secret, Stdin: secret}
		d.Results[i].Evidence[0].Ended = secret
	}
	d.Results[3].Why = "on head: " + secret
	d.Reviewer = secret
	clean := d.WithRedactedTexts(func(s string) string { return strings.ReplaceAll(s, secret, "[redacted]") })
	data, err := clean.EncodeJSON()
	if err != nil || bytes.Contains(data, []byte(secret)) || clean.Results[0].Suggestion.Offered || !d.Results[0].Suggestion.Offered || d.Results[0].Finding.Reproducer.Argv[0] != secret {
		t.Errorf("%v\n%s", err, data)
	}
	if _, err := Read(data); err != nil {
		t.Error(err)
	}
}

// What reads hostile bytes does not panic, and what it accepts can be shown.
func FuzzRead(f *testing.F) {
	data, _ := sampleDocument().EncodeJSON()
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Read(data)
		if err != nil {
			return
		}
		for _, r := range d.PlacedFindings() {
			if !strings.Contains(d.RenderRemark(r), "Verified finding") || len(r.ClaimKey()) != 32 {
				t.Fatalf("%+v", r)
			}
		}
		if s := d.RenderSummary(SummaryOptions{Units: 1000}); len(s) > 3000 {
			t.Fatalf("%d bytes", len(s))
		}
	})
}
