// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Override is a value from outside the file: an input of the action or a flag. It takes
// precedence over the file. Overrides come from the operator; like the file, they are
// requests (see the package comment).
type Override struct {
	Field string // a field of the file: "timeout"
	Value string // as the operator wrote it; "" means not given
	From  string // for people: "input timeout", "--timeout"
}

// A Source is where a value in force comes from. The zero Source is the default.
type Source struct {
	Name string // the file, or an Override's From; "" for a default
	Line int    // in the file, from 1; 0 for others
}

// String returns "default", "FILE:LINE" or an Override's From.
func (s Source) String() string {
	switch {
	case s.Name == "":
		return "default"
	case s.Line > 0:
		return fmt.Sprintf("%s:%d", s.Name, s.Line)
	}
	return s.Name
}

// A Value is one value in force.
type Value struct {
	Field  string // "setup", "limits.memory"
	Text   string // JSON in one line, or a text in parentheses if nothing is set; untrusted
	Source Source
}

// Effective is the configuration in force.
type Effective struct {
	Config Config
	Values []Value // every field in the order of the schema, limits one by one
}

// unset describes a field that has no value.
var unset = map[string]string{
	"setup": `"auto"`, "registries": `"auto"`, "rootfs": `"host"`, "cache": "true", "compare-base": "true", "results": `"off"`, "layers": "(true, false in CI)",
	"checkout": "(the commit)", "comment": "(normal detail)", "review": "(no guidance)", "tools": "(none)", "allow-tools": "(none)", "hide": "(none)", "projects": "(none)", "services": "(none)", "policy": "(none)", "timeout": "(not set)",
}

const unsetLimit = "(set by policy)"

// MergeOverrides applies overrides to file, in order, and explains each value in force.
//
// An override replaces the field, except for limits, comment and review, whose parts are replaced one by one. Its
// value is written as follows:
//
//	setup                             auto, none, or one shell text
//	registries, services, tools       items separated by commas or newlines;
//	projects, hide                    also auto and none for registries
//	checkout                          submodules=true, lfs=true
//	comment                           detail=quiet, length=20000
//	review                            severity=high, language=German, transcript=true
//	limits                            memory=4GiB, pids=512, wall=5m
//	cache, compare-base, layers       true or false
//	rootfs, timeout, policy, results  the value itself
//
// Every value is checked as in a file. If one is invalid, or its field unknown, Merge
// returns an error that names the override, and no configuration.
func MergeOverrides(file Config, overrides ...Override) (Effective, error) {
	merged, sources := file, map[string]Source{}
	for field, line := range file.lines {
		sources[field] = Source{Name: file.name, Line: line}
	}
	var failures []error
	for _, o := range overrides {
		if strings.TrimSpace(o.Value) == "" {
			continue
		}
		given, err := readOverride(o)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		applyField(&merged, o.Field, given)
		for field := range given.lines {
			sources[field] = Source{Name: o.From}
		}
	}
	if len(failures) > 0 {
		return Effective{}, errors.Join(failures...)
	}
	values, err := explainValues(merged, sources)
	return Effective{Config: merged, Values: values}, err
}

// readOverride converts an override to a Config with that field alone.
func readOverride(o Override) (Config, error) {
	i := slices.IndexFunc(configShape.Fields,
		func(f document.Field) bool { return f.Name == o.Field && f.Name != "schema" })
	if i < 0 {
		return Config{}, fmt.Errorf("%s: unknown setting %s", o.From, document.Quote(o.Field))
	}
	if !utf8.ValidString(o.Value) || len(o.Value) > MaxDocument {
		return Config{}, fmt.Errorf("%s: invalid value: want at most %d bytes of UTF-8", o.From, MaxDocument)
	}
	ps := document.Problems{About: "value"}
	n := nodeOf(o.Field, strings.TrimSpace(o.Value))
	document.Check(n, configShape.Fields[i].Shape, "", &ps)
	if len(ps.List) > 0 {
		p := ps.SortedProblems()[0]
		if p.Path != "" {
			return Config{}, fmt.Errorf("%s: %s: %s", o.From, p.Path, p.Message)
		}
		return Config{}, fmt.Errorf("%s: %s", o.From, p.Message)
	}
	root := &document.Node{Kind: document.Object, Members: []document.Member{{Name: o.Field, At: n.At, Value: n}}}
	return configOf(root), nil
}

// nodeOf reads value as the field's syntax for overrides.
func nodeOf(field, value string) *document.Node {
	at := document.Position{Line: 1, Col: 1}
	leaf := func(value string) *document.Node { return &document.Node{Kind: document.Text, At: at, Value: value} }
	switch {
	case (field == "cache" || field == "compare-base" || field == "layers") && (value == "true" || value == "false"):
		return &document.Node{Kind: document.Boolean, At: at, Value: value}
	case field == "limits", field == "checkout", field == "comment", field == "review":
		n := &document.Node{Kind: document.Object, At: at}
		for _, part := range splitList(value) {
			name, amount, _ := strings.Cut(part, "=")
			v := leaf(strings.TrimSpace(amount))
			switch {
			case document.IsNumber(v.Value):
				v.Kind = document.Number
			case (field == "checkout" || field == "review") && (v.Value == "true" || v.Value == "false"):
				v.Kind = document.Boolean
			}
			n.Members = append(n.Members, document.Member{Name: strings.TrimSpace(name), At: at, Value: v})
		}
		return n
	case field == "setup" && value != auto && value != none:
		return &document.Node{Kind: document.List, At: at, Items: []*document.Node{leaf(value)}}
	case field == "registries" && value != auto && value != none,
		field == "services", field == "tools", field == "allow-tools", field == "hide", field == "projects":
		n := &document.Node{Kind: document.List, At: at}
		for _, part := range splitList(value) {
			n.Items = append(n.Items, leaf(part))
		}
		return n
	}
	return leaf(value)
}

// splitList returns the parts of value between commas and newlines, without empty ones.
func splitList(value string) []string {
	var parts []string
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// applyField replaces the field of c by given's.
func applyField(c *Config, field string, given Config) {
	switch field {
	case "setup":
		c.Setup = given.Setup
	case "registries":
		c.Registries = given.Registries
	case "projects":
		c.Projects = given.Projects
	case "rootfs":
		c.Rootfs = given.Rootfs
	case "tools":
		c.Tools = given.Tools
	case "allow-tools":
		c.AllowTools = given.AllowTools
	case "hide":
		c.Hide = given.Hide
	case "services":
		c.Services = given.Services
	case "limits":
		limits := *given.Limits
		if c.Limits != nil {
			limits = limits.Or(*c.Limits)
		}
		c.Limits = &limits
	case "timeout":
		c.Timeout = given.Timeout
	case "policy":
		c.Policy = given.Policy
	case "cache":
		c.Cache = given.Cache
	case "compare-base":
		c.CompareBase = given.CompareBase
	case "results":
		c.Results = given.Results
	case "layers":
		c.Layers = given.Layers
	case "checkout":
		c.Checkout = given.Checkout
	case "comment":
		c.Comment = Comment{Detail: cmp.Or(given.Comment.Detail, c.Comment.Detail),
			Length:  cmp.Or(given.Comment.Length, c.Comment.Length),
			Mention: cmp.Or(given.Comment.Mention, c.Comment.Mention),
			Lines:   cmp.Or(given.Comment.Lines, c.Comment.Lines)}
	case "review":
		c.Review = Review{Paths: c.Review.Paths, Ignore: c.Review.Ignore, Focus: c.Review.Focus,
			Severity: cmp.Or(given.Review.Severity, c.Review.Severity),
			Language: cmp.Or(given.Review.Language, c.Review.Language), Transcript: given.Review.Transcript ||
				c.Review.Transcript}
	default:
		panic("config: internal error: no field " + field)
	}
}

// explainValues lists every value of c.
func explainValues(c Config, sources map[string]Source) ([]Value, error) {
	data, err := marshalLine(c)
	if err != nil {
		return nil, err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(data, &given); err != nil {
		return nil, fmt.Errorf("cannot explain configuration: %w", err)
	}
	limits, err := marshalLine(c.mergedLimits())
	if err != nil {
		return nil, err
	}
	var bounds map[string]json.RawMessage
	if err := json.Unmarshal(limits, &bounds); err != nil {
		return nil, fmt.Errorf("cannot explain limits: %w", err)
	}
	var values []Value
	value := func(field string, raw json.RawMessage, unset string) {
		v := Value{Field: field, Text: string(raw), Source: sources[field]}
		if raw == nil {
			v.Text = unset
		}
		values = append(values, v)
	}
	for _, f := range configShape.Fields {
		switch f.Name {
		case "schema":
		case "limits":
			for _, limit := range f.Shape.Fields {
				value(document.JoinName(f.Name, limit.Name), bounds[limit.Name], unsetLimit)
			}
		default:
			value(f.Name, given[f.Name], unset[f.Name])
		}
	}
	return values, nil
}

func (c Config) mergedLimits() proposal.Limits {
	if c.Limits == nil {
		return proposal.Limits{}
	}
	return *c.Limits
}
