// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
)

// readYAML parses one YAML document into a tree. Nothing is resolved, expanded or
// merged: constructs that need it are rejected.
func readYAML(data []byte, ps *Problems) *Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := decodeYAML(dec, &doc); err != nil {
		reportYAML(data, err, ps)
		return nil
	}
	if err := decodeYAML(dec, &second); err == nil {
		ps.Add(Position{second.Line, second.Column}, "", "a second document begins here; a %s is one document", ps.document())
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

var yamlError = pattern.New(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// reportYAML reports where the parser stopped. The parser reports only the line,
// so the column is that of the line's first character that is not blank.
func reportYAML(data []byte, err error, ps *Problems) {
	if errors.Is(err, io.EOF) {
		ps.Add(Position{1, 1}, "", "the %s is empty", ps.document())
		return
	}
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		ps.Add(Position{1, 1}, "", "invalid YAML: %v", err)
		return
	}
	lines := bytes.Split(data, []byte("\n"))
	line, _ := strconv.Atoi(m[1])
	line = min(max(line, 1), len(lines))
	rest := bytes.TrimLeft(lines[line-1], " \t")
	col := utf8.RuneCount(lines[line-1]) - utf8.RuneCount(rest) + 1
	ps.Add(Position{line, col}, "", "invalid YAML: %s", m[2])
}

func yamlNode(y *yaml.Node, path string, depth int, ps *Problems) *Node {
	n := &Node{At: Position{y.Line, y.Column}, Value: y.Value}
	if !yamlPlainNode(y, n.At, path, ps) {
		return n
	}
	if y.Kind == yaml.ScalarNode {
		n.Kind = yamlScalar(y)
		return n
	}
	if depth > MaxDepth {
		ps.Add(n.At, path, "is nested more than %d levels deep", MaxDepth)
		return n
	}
	if y.Kind == yaml.SequenceNode {
		n.Kind = List
		for i, item := range y.Content {
			n.Items = append(n.Items, yamlNode(item, JoinIndex(path, i), depth+1, ps))
		}
		return n
	}
	n.Kind = Object
	for i := 0; i+1 < len(y.Content); i += 2 {
		yamlMember(n, y.Content[i], y.Content[i+1], path, depth, ps)
	}
	return n
}

func yamlMember(n *Node, key, value *yaml.Node, path string, depth int, ps *Problems) {
	at := Position{key.Line, key.Column}
	if !yamlPlainNode(key, at, path, ps) {
		return
	}
	if key.Kind != yaml.ScalarNode {
		ps.Add(at, path, "a name must be a text")
		return
	}
	path = JoinName(path, key.Value)
	if key.Value == "<<" && key.Style == 0 {
		ps.Add(at, path, "merge keys are not allowed: write the fields out")
		return
	}
	if yamlScalar(key) != Text {
		ps.Add(at, path, "YAML readers disagree about the name %s: quote it", Quote(key.Value))
	}
	n.Members = append(n.Members, Member{key.Value, at, yamlNode(value, path, depth+1, ps)})
}

// yamlPlainNode rejects constructs that make a value depend on another place or on
// a type named in the document.
func yamlPlainNode(y *yaml.Node, at Position, path string, ps *Problems) bool {
	switch {
	case y.Kind == yaml.AliasNode:
		ps.Add(at, path, "aliases are not allowed: write the value out")
		return false
	case y.Anchor != "":
		ps.Add(at, path, "anchors are not allowed")
		return false
	case y.Style&yaml.TaggedStyle != 0:
		ps.Add(at, path, "tags are not allowed: quote the value if it is a text")
		return false
	}
	return true
}

var (
	jsonNumber = pattern.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	// The words that YAML 1.1 takes for booleans and for base-60 numbers.
	yaml11 = pattern.New(`^(?i:y|yes|n|no|on|off)$|^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$|^=$`)
)

// yamlScalar returns the kind of a scalar if all YAML parsers agree on it, and
// ambiguous otherwise.
func yamlScalar(y *yaml.Node) Kind {
	plain := y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch v := y.Value; {
	case !plain:
		return Text
	case v == "" || v == "~" || strings.EqualFold(v, "null"):
		return Null
	case v == "true" || v == "false":
		return Boolean
	case jsonNumber.MatchString(v):
		return Number
	case yaml11.MatchString(v) || (&yaml.Node{Kind: yaml.ScalarNode, Value: v}).ShortTag() != "!!str":
		return Ambiguous
	}
	return Text
}
