// SPDX-License-Identifier: Apache-2.0

// Package manual documents policies: one page of Markdown with every rule that METADATA
// describes, by layer, decision point and file.
//
// The page is plain text: a title or an example never becomes a link, image, heading or
// HTML, even if it is hostile. The page shows only METADATA: `fumehood policy explain`
// shows what a rule does.
package manual

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Rule is one rule as its METADATA describes it.
type Rule struct {
	Layer       string   `json:"layer"`
	Point       string   `json:"point"` // "fumehood.command"
	File        string   `json:"file"`
	Line        int      `json:"line"`
	Set         string   `json:"set"` // "deny", "ask", "allow" …
	ID          string   `json:"id"`  // one that ends in a dot means all ids with this prefix
	Title       string   `json:"title"`
	Description string   `json:"description,omitempty"`
	Retry       string   `json:"retry,omitempty"`
	Severity    string   `json:"severity,omitempty"`
	Category    string   `json:"category,omitempty"`
	Floor       bool     `json:"floor,omitempty"` // no override may name it
	Match       []string `json:"match"`           // to what it applies: commands, or fields of the input as JSON
	NotMatch    []string `json:"not_match"`       // to what it does not apply
}

// ListRules lists the described rules of the layers, or of the shipped policy if there are no
// layers. The rules of a layer are sorted by decision point, file and line. Rules without
// an id in their METADATA are not listed. Its error is a *proposal.StopError.
func ListRules(layers ...policy.Layer) (rules []Rule, err error) {
	if len(layers) == 0 {
		shipped, err := policy.ShippedLayer()
		if err != nil {
			return nil, err
		}
		layers = append(layers, shipped)
	}
	for _, l := range layers {
		of, err := layerRules(l)
		if err != nil {
			return nil, err
		}
		rules = append(rules, of...)
	}
	return rules, nil
}

// SelectRules returns the rules with the ids; without ids, all of them. An id that ends in a
// dot in METADATA includes all ids with this prefix. An unknown id is a
// *proposal.StopError, whose hint has the nearest known one.
func SelectRules(rules []Rule, ids ...string) ([]Rule, error) {
	if len(ids) == 0 {
		return rules, nil
	}
	for _, id := range ids {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return r.hasID(id) }) {
			return nil, unknownRule(id, rules)
		}
	}
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return !slices.ContainsFunc(ids, r.hasID) }), nil
}

// hasID reports whether the rule has the id.
func (r Rule) hasID(id string) bool {
	return module.CoversID(r.ID, id)
}

func unknownRule(id string, rules []Rule) error {
	known := make([]string, len(rules))
	for i, r := range rules {
		known[i] = r.ID
	}
	hint := cmp.Or(module.SuggestName(id, known), "list all rules: fumehood policy docs")
	return &proposal.StopError{Code: module.CodeUnknownKey, Message: fmt.Sprintf("unknown rule %q", id), Hint: hint}
}

func layerRules(l policy.Layer) ([]Rule, error) {
	var rules []Rule
	for _, f := range l.Files {
		if path.Ext(f.Name) != ".rego" || strings.HasSuffix(f.Name, "_test.rego") {
			continue
		}
		m, err := ast.ParseModuleWithOpts(f.Name, string(f.Content),
			ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		if err != nil {
			return nil, notRego(l.Name, err)
		}
		for _, r := range m.Rules {
			for _, a := range r.Annotations {
				if rule, ok := describedRule(a, r); ok {
					rule.Floor = l.Name == policy.DefaultLayer && module.IsFloor(m, r)
					rule.Layer, rule.Point, rule.File = l.Name, module.PackageOf(m), f.Name
					rules = append(rules, rule)
				}
			}
		}
	}
	sort.SliceStable(rules, func(i, j int) bool { return isBefore(rules[i], rules[j]) })
	return rules, nil
}

func notRego(layer string, err error) error {
	return &proposal.StopError{Code: "policy.compile", Message: fmt.Sprintf("cannot parse the policy layer %q", layer),
		Hint: "run fumehood policy check to see all problems", Err: err}
}

func isBefore(a, b Rule) bool {
	if a.Point != b.Point {
		return a.Point < b.Point
	}
	if a.File != b.File {
		return a.File < b.File
	}
	return a.Line < b.Line
}

func describedRule(a *ast.Annotations, r *ast.Rule) (Rule, bool) {
	id, _ := a.Custom["rule"].(string)
	if id == "" {
		return Rule{}, false
	}
	retry, _ := a.Custom["retry"].(string)
	severity, category := module.Label(a, module.KeySeverity), module.Label(a, module.KeyCategory)
	return Rule{Line: r.Location.Row, Set: string(r.Head.Ref()[0].Value.(ast.Var)), ID: id, Title: a.Title,
		Description: a.Description, Retry: retry,
		Severity: severity, Category: category,
		Match: exampleTexts(a.Custom["match"]), NotMatch: exampleTexts(a.Custom["not_match"])}, true
}

func exampleTexts(list any) []string {
	texts := []string{}
	items, _ := list.([]any)
	for _, item := range items {
		if s, ok := item.(string); ok {
			texts = append(texts, s)
		} else if data, err := json.Marshal(item); err == nil {
			texts = append(texts, string(data))
		}
	}
	return texts
}

// Write writes the page. It returns the error of w.
func Write(w io.Writer, rules []Rule) error {
	p := page{w: w}
	p.writeLine("# Rules")
	p.writeLine("")
	p.writeLine("Deny wins over ask, ask over allow; a command that no rule allows is denied. The examples below each rule are run as tests.")
	if slices.ContainsFunc(rules, func(r Rule) bool { return r.Floor }) {
		p.writeLine("No override of an organization relaxes a rule that is marked (floor).")
	}
	var layer, point, file string
	for _, r := range rules {
		if r.Layer != layer {
			layer, point, file = r.Layer, "", ""
			p.writeHeading(2, "Layer "+r.Layer)
		}
		if r.Point != point {
			point, file = r.Point, ""
			p.writeHeading(3, r.Point)
		}
		if r.File != file {
			file = r.File
			p.writeHeading(4, r.File)
		}
		p.writeRule(r)
	}
	return p.err
}

type page struct {
	w     io.Writer
	blank bool // the last line is blank
	err   error
}

func (p *page) writeLine(s string) {
	if s == "" && p.blank || p.err != nil {
		return
	}
	p.blank = s == ""
	_, p.err = fmt.Fprintln(p.w, s)
}

func (p *page) writeHeading(level int, words string) {
	p.writeLine("")
	p.writeLine(strings.Repeat("#", level) + " " + escapeParagraph(words))
	p.writeLine("")
}

func (p *page) writeRule(r Rule) {
	p.writeLine(fmt.Sprintf("- **%s** %s: %s", r.Set, codeSpan(r.ID), escapeParagraph(ruleSentence(r))))
	if len(r.Match) > 0 {
		says := saysWhat[r.Set]
		if says == "" {
			says = "applies to"
		}
		p.writeLine("  <br>" + says + " " + codeList(r.Match))
	}
	if len(r.NotMatch) > 0 {
		p.writeLine("  <br>not " + codeList(r.NotMatch))
	}
}

// saysWhat begins the examples of a set's rules.
var saysWhat = map[string]string{"deny": "denies", "ask": "asks about", "allow": "allows"}

func ruleSentence(r Rule) string {
	words := strings.TrimSuffix(r.Title, ".")
	if r.Description != "" {
		words += ". " + r.Description
	}
	if r.Severity != "" {
		words += " (severity " + r.Severity + ")"
	}
	if r.Floor {
		words += " (floor)"
	}
	if r.Retry == "never" {
		words += " (rewriting the command does not help)"
	}
	return words
}

func codeList(texts []string) string {
	spans := make([]string, len(texts))
	for i, s := range texts {
		spans[i] = codeSpan(s)
	}
	return strings.Join(spans, ", ")
}

const maxText = 400

// codeSpan is s as a code span. Nothing in s can close it.
func codeSpan(s string) string {
	s = text.Inline(s, maxText)
	ticks := "`"
	for strings.Contains(s, ticks) {
		ticks += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// escapeParagraph is s as the text of a paragraph: every character with a meaning in Markdown or on
// GitHub is escaped.
func escapeParagraph(s string) string {
	var b strings.Builder
	for _, r := range text.Inline(s, maxText) {
		if strings.ContainsRune("\\`*_{}[]<>#|!@&~$:", r) {
			fmt.Fprintf(&b, "&#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
