// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// readYAML parses one YAML document into a tree. Nothing is resolved, expanded or
// merged: constructs that need it are rejected.
func readYAML(data []byte, ps *problems) *node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := decodeYAML(dec, &doc); err != nil {
		reportYAML(data, err, ps)
		return nil
	}
	if err := decodeYAML(dec, &second); err == nil {
		ps.add(position{second.Line, second.Column}, "", "a second document begins here; a %s is one document", ps.document())
	} else if !errors.Is(err, io.EOF) {
		reportYAML(data, err, ps)
		return nil
	}
	return yamlNode(doc.Content[0], "", 1, ps)
}

// decodeYAML turns a panic of the parser, which reports an internal error for some
// hostile documents, into an error: the plan is rejected and the process continues.
func decodeYAML(dec *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot parse: %v", r)
		}
	}()
	return dec.Decode(into)
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// reportYAML reports where the parser stopped. The parser reports only the line,
// so the column is that of the line's first character that is not blank.
func reportYAML(data []byte, err error, ps *problems) {
	if errors.Is(err, io.EOF) {
		ps.add(position{1, 1}, "", "the %s is empty", ps.document())
		return
	}
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		ps.add(position{1, 1}, "", "invalid YAML: %v", err)
		return
	}
	lines := bytes.Split(data, []byte("\n"))
	line, _ := strconv.Atoi(m[1])
	line = min(max(line, 1), len(lines))
	rest := bytes.TrimLeft(lines[line-1], " \t")
	col := utf8.RuneCount(lines[line-1]) - utf8.RuneCount(rest) + 1
	ps.add(position{line, col}, "", "invalid YAML: %s", m[2])
}

func yamlNode(y *yaml.Node, path string, depth int, ps *problems) *node {
	n := &node{at: position{y.Line, y.Column}, value: y.Value}
	if !yamlPlainNode(y, n.at, path, ps) {
		return n
	}
	if y.Kind == yaml.ScalarNode {
		n.kind = yamlScalar(y)
		return n
	}
	if depth > MaxDepth {
		ps.add(n.at, path, "is nested more than %d levels deep", MaxDepth)
		return n
	}
	if y.Kind == yaml.SequenceNode {
		n.kind = list
		for i, item := range y.Content {
			n.items = append(n.items, yamlNode(item, joinIndex(path, i), depth+1, ps))
		}
		return n
	}
	n.kind = object
	for i := 0; i+1 < len(y.Content); i += 2 {
		yamlMember(n, y.Content[i], y.Content[i+1], path, depth, ps)
	}
	return n
}

func yamlMember(n *node, key, value *yaml.Node, path string, depth int, ps *problems) {
	at := position{key.Line, key.Column}
	if !yamlPlainNode(key, at, path, ps) {
		return
	}
	if key.Kind != yaml.ScalarNode {
		ps.add(at, path, "a name must be a text")
		return
	}
	path = joinName(path, key.Value)
	if key.Value == "<<" && key.Style == 0 {
		ps.add(at, path, "merge keys are not allowed: write the fields out")
		return
	}
	if yamlScalar(key) != text {
		ps.add(at, path, "YAML readers disagree about the name %s: quote it", quote(key.Value))
	}
	n.members = append(n.members, member{key.Value, at, yamlNode(value, path, depth+1, ps)})
}

// yamlPlainNode rejects constructs that make a value depend on another place or on
// a type named in the document.
func yamlPlainNode(y *yaml.Node, at position, path string, ps *problems) bool {
	switch {
	case y.Kind == yaml.AliasNode:
		ps.add(at, path, "aliases are not allowed: write the value out")
		return false
	case y.Anchor != "":
		ps.add(at, path, "anchors are not allowed")
		return false
	case y.Style&yaml.TaggedStyle != 0:
		ps.add(at, path, "tags are not allowed: quote the value if it is a text")
		return false
	}
	return true
}

var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	// The words that YAML 1.1 takes for booleans and for base-60 numbers.
	yaml11 = regexp.MustCompile(`^(?i:y|yes|n|no|on|off)$|^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$|^=$`)
)

// yamlScalar returns the kind of a scalar if all YAML parsers agree on it, and
// ambiguous otherwise.
func yamlScalar(y *yaml.Node) kind {
	plain := y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch v := y.Value; {
	case !plain:
		return text
	case v == "" || v == "~" || strings.EqualFold(v, "null"):
		return null
	case v == "true" || v == "false":
		return boolean
	case jsonNumber.MatchString(v):
		return number
	case yaml11.MatchString(v) || (&yaml.Node{Kind: yaml.ScalarNode, Value: v}).ShortTag() != "!!str":
		return ambiguous
	}
	return text
}
