// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// readYAML parses one YAML document into a tree. Nothing is resolved, expanded or
// merged: constructs that need it are invalid.
func readYAML(data []byte, ps *Problems) *Node {
	root, second, err := parseYAML(data)
	r := yamlReader{lines: splitLines(data)}
	if err != nil {
		var saved *salvagedDocument
		if saved = salvageItems(data); saved != nil {
			root, second, err = saved.root, saved.second, nil
			r.broken = saved.broken
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		ps.Add(Position{1, 1}, "", "the %s is empty", ps.documentName())
		return nil
	case err != nil && looksLikeJSON(data):
		return readJSON(data, ps)
	case err != nil:
		reportYAML(r.lines, err, ps)
		return nil
	case second != nil:
		ps.Add(Position{second.Line, second.Column}, "", "a second document begins here; a %s is one document",
			ps.documentName())
	}
	return r.convertNode(root, "", 1, false)
}

var jsonStart = pattern.New(`^\s*(?:\[\s*)?\{\s*["'/}]`)

// looksLikeJSON reports whether the writer of data meant JSON.
func looksLikeJSON(data []byte) bool { return jsonStart.MatchString(string(data)) }

// parseYAML returns the document's root and that of a second document. The error is io.EOF
// if there is no document.
func parseYAML(data []byte) (root, second *yaml.Node, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := decodeYAML(dec, &doc); err != nil {
		return nil, nil, err
	}
	switch err := decodeYAML(dec, &next); {
	case err == nil:
		second = &next
	case !errors.Is(err, io.EOF):
		return nil, nil, err
	}
	return doc.Content[0], second, nil
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

// splitLines returns the lines of data without their ends.
func splitLines(data []byte) []string {
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

var yamlError = pattern.New(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// reportYAML reports where the parser stopped. The parser reports only the line,
// so the column is that of the line's first character that is not blank.
func reportYAML(lines []string, err error, ps *Problems) {
	line, message := explainYAML(err)
	line = min(max(line, 1), len(lines))
	rest := strings.TrimLeft(lines[line-1], " \t")
	before := strings.TrimSuffix(lines[line-1], rest)
	if strings.Contains(before, "\t") {
		message = "a tab indents this line: use spaces"
	}
	ps.Add(Position{line, utf8.RuneCountInString(before) + 1}, "", "invalid YAML: %s", message)
}

// explainYAML returns the line of a parser's error, 0 if that is not known, and its message.
func explainYAML(err error) (line int, message string) {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return 0, err.Error()
	}
	line, _ = strconv.Atoi(m[1])
	return line, m[2]
}

// A yamlReader converts what the parser read.
type yamlReader struct {
	lines  []string
	broken map[Position]string // values that the parser cannot read, which were replaced
}

// restOfLine returns the source from at to the end of its line.
func (r *yamlReader) restOfLine(at Position) string {
	if at.Line < 1 || at.Line > len(r.lines) {
		return ""
	}
	line := r.lines[at.Line-1]
	for range at.Col - 1 {
		_, size := utf8.DecodeRuneInString(line)
		line = line[size:]
	}
	return line
}

// convertNode converts y, which is at path, and in a list or object in brackets if flow is set.
func (r *yamlReader) convertNode(y *yaml.Node, path string, depth int, flow bool) *Node {
	n := &Node{At: Position{y.Line, y.Column}, Value: y.Value}
	if message, ok := r.broken[n.At]; ok {
		n.markUnreadable(n.At, message)
		return n
	}
	if message := r.indirectValueProblem(y, path, flow); message != "" {
		defer n.markUnreadable(n.At, message) // its fields are still for reports
	}
	if y.Kind == yaml.AliasNode {
		return n
	}
	if y.Kind == yaml.ScalarNode {
		n.Kind, n.Altered = yamlScalar(y), r.alteredScalarProblem(y, path, flow)
		return n
	}
	if depth > MaxDepth {
		n.markUnreadable(n.At, fmt.Sprintf("is nested more than %d levels deep", MaxDepth))
		return n
	}
	if y.Style&yaml.FlowStyle != 0 {
		if !flow {
			n.Altered = fmt.Sprintf("if it is a text, %s", quoteIt(path, false))
		}
		flow = true
	}
	if y.Kind == yaml.SequenceNode {
		n.Kind = List
		for i, item := range y.Content {
			n.Items = append(n.Items, r.convertNode(item, JoinIndex(path, i), depth+1, flow))
		}
		return n
	}
	n.Kind = Object
	if !flow && strings.HasSuffix(path, "]") {
		n.Altered = "if it is a text, quote it" // a list's item with a colon
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		n.Members = append(n.Members, r.convertMember(y.Content[i], y.Content[i+1], path, depth, flow))
	}
	return n
}

func (r *yamlReader) convertMember(key, value *yaml.Node, path string, depth int, flow bool) Member {
	m := Member{Name: key.Value, At: Position{key.Line, key.Column}}
	path = JoinName(path, m.Name)
	if key.Value == "<<" && key.Style == 0 {
		m.Value = &Node{At: m.At}
		m.Value.markUnreadable(m.At, "merge keys are not allowed: write the fields out")
		return m
	}
	m.Value = r.convertNode(value, path, depth+1, flow)
	if message := r.indirectValueProblem(key, path, flow); message != "" {
		m.Value.markUnreadable(m.At, message)
		return m
	}
	switch {
	case key.Kind != yaml.ScalarNode:
		m.Value.markUnreadable(m.At, "a name must be a text")
	case yamlScalar(key) != Text:
		m.Value.markUnreadable(m.At, fmt.Sprintf("YAML readers disagree about the name %s: quote it", Quote(key.Value)))
	}
	return m
}

// indirectValueProblem says why a value is invalid that depends on another place or on a type named in
// the document, or returns "".
func (r *yamlReader) indirectValueProblem(y *yaml.Node, path string, flow bool) string {
	switch tag, _, _ := strings.Cut(r.restOfLine(Position{y.Line, y.Column}), " "); {
	case y.Kind == yaml.AliasNode:
		return "aliases are not allowed: write the value out. If it is a text, " + quoteIt(path, flow)
	case y.Anchor != "":
		return "anchors are not allowed. If it is a text, " + quoteIt(path, flow)
	case y.Style&yaml.TaggedStyle != 0 || strings.HasPrefix(tag, "!"):
		return fmt.Sprintf("YAML takes %s for a tag, and drops it: %s", Quote(tag), quoteIt(path, flow))
	}
	return ""
}

// quoteIt says how to write the text at path so that YAML does not change it.
func quoteIt(path string, flow bool) string {
	if name := path[strings.LastIndexByte(path, '.')+1:]; !flow && plainName.MatchString(name) {
		return fmt.Sprintf("quote it, or use `%s: |`", name)
	}
	return "quote it"
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

// alteredScalarProblem says how the value of a scalar differs from the text in the source, or returns "".
// A reader of the document sees that text; the escapes of a quoted one are its author's.
func (r *yamlReader) alteredScalarProblem(y *yaml.Node, path string, flow bool) string {
	at := Position{y.Line, y.Column}
	source := r.restOfLine(at)
	switch {
	case y.Style&yaml.LiteralStyle != 0:
		return ""
	case y.Style&yaml.FoldedStyle != 0:
		if r.foldsCommands(at) {
			name := path[strings.LastIndexByte(path, '.')+1:]
			return fmt.Sprintf("YAML joins the lines of a text after %q with spaces: use `%s: |`, or end each line with &&, || or |", ">", name)
		}
		return ""
	case y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		if !closesQuote(source) {
			return "YAML joins the lines of a quoted text: write it in one line" + orLiteral(path, flow)
		}
		return ""
	case !strings.HasPrefix(source, y.Value):
		return "YAML joins the lines of a text with spaces: write it in one line" + orLiteral(path, flow)
	}
	after := source[len(y.Value):]
	next := strings.TrimLeft(after, " \t")
	switch {
	case strings.HasPrefix(next, "#"), flow && strings.HasPrefix(strings.TrimLeft(after, "]}"), "#"):
		return fmt.Sprintf("YAML takes %s for a comment, and drops it: %s", Quote(next), quoteIt(path, flow))
	case flow && yamlScalar(y) == Text && strings.HasPrefix(after, ",") && len(after) > 1 && after[1] != ' ':
		return "YAML ends the text at the comma: " + quoteIt(path, flow)
	}
	return ""
}

func orLiteral(path string, flow bool) string {
	return strings.TrimPrefix(quoteIt(path, flow), "quote it")
}

// closesQuote reports whether the quoted text at the begin of source ends in its first line.
func closesQuote(source string) bool {
	quote := source[0]
	for i := 1; i < len(source); i++ {
		switch {
		case quote == '"' && source[i] == '\\':
			i++
		case source[i] == quote:
			return true // or begins a quote in single quotes, after which the text closes or goes on
		}
	}
	return false
}

// foldsCommands reports whether the text after ">" at a place has lines that are joined,
// where a shell would see a difference: not after an operator that a command follows.
func (r *yamlReader) foldsCommands(at Position) bool {
	indent, last, before := -1, "", ""
	for _, line := range r.lines[at.Line:] {
		body := strings.TrimLeft(line, " ")
		if indent < 0 && body != "" {
			indent = len(line) - len(body)
		}
		if body != "" && len(line)-len(body) < indent {
			break
		}
		joined := last != "" && body != "" && len(line)-len(body) == indent && body[0] != '\t'
		if joined && !continuesCommand(last, before) {
			return true
		}
		if last = body; len(line)-len(body) > indent {
			last = "" // lines that are indented more are not joined
		}
		before += body + "\n"
	}
	return false
}

// continuesCommand reports whether a shell reads the line after last as it reads text after a space.
// before is the text so far.
func continuesCommand(last, before string) bool {
	last = strings.TrimRight(last, " ")
	operator := strings.HasSuffix(last, "&&") || strings.HasSuffix(last, "|")
	return operator && strings.Count(before, `"`)%2 == 0 && strings.Count(before, `'`)%2 == 0 &&
		!strings.Contains(before, "<<") && !strings.Contains(before, "#")
}

// The limits of salvage, which tries again what cannot be parsed.
const (
	maxChunks  = 1000
	maxRetries = 2000
)

// salvagedDocument is a document of which invalid parts were replaced.
type salvagedDocument struct {
	root, second *yaml.Node
	broken       map[Position]string
	retries      int
}

var (
	itemStart  = pattern.New(`^( *)- `)
	fieldStart = pattern.New(`^( *(?:- +)*)((?:([A-Za-z_][A-Za-z0-9_-]{0,63}):[ \t]+)?)(\S.*?)[ \t]*$`)
	blockStart = pattern.New(`^[|>][-+0-9]*(?:[ \t]+#.*)?$`)
)

// salvageItems parses a document that is not valid YAML because of items of its first list in
// block style. An item ends where its indentation does, for every reader, so a mistake in one
// does not change what the others say. Values that YAML cannot read, or else the whole item,
// are replaced, and named in broken. It returns nil if that does not help.
func salvageItems(data []byte) *salvagedDocument {
	lines := splitLines(data)
	s := &salvagedDocument{broken: map[Position]string{}}
	starts, end := itemsOf(lines)
	if len(starts) == 0 || len(starts) > maxChunks {
		return nil
	}
	for i, start := range starts {
		stop := end
		if i+1 < len(starts) {
			stop = starts[i+1]
		}
		s.repairItem(lines, start, stop)
	}
	if len(s.broken) == 0 {
		return nil
	}
	var err error
	if s.root, s.second, err = parseYAML([]byte(strings.Join(lines, "\n"))); err != nil {
		return nil
	}
	return s
}

// itemsOf returns the indexes of the lines that begin an item of the first list, and of the
// line after the last item.
func itemsOf(lines []string) (starts []int, end int) {
	indent := -1
	for i, line := range lines {
		m := itemStart.FindStringSubmatch(line + " ")
		body := strings.TrimLeft(line, " ")
		switch {
		case m != nil && (indent < 0 || len(m[1]) == indent):
			indent = len(m[1])
			starts = append(starts, i)
		case indent >= 0 && body != "" && body[0] != '#' && body[0] != '\t' && len(line)-len(body) <= indent:
			return starts, i
		}
	}
	return starts, len(lines)
}

// parseItem reports why lines are not one item of a list, or nil.
func (s *salvagedDocument) parseItem(lines []string) error {
	if s.retries++; s.retries > maxRetries {
		return errors.New("yaml: too much of the document is invalid")
	}
	root, second, err := parseYAML([]byte(strings.Join(lines, "\n")))
	if err == nil && (second != nil || root.Kind != yaml.SequenceNode || len(root.Content) != 1) {
		err = errors.New("yaml: not one item of a list")
	}
	return err
}

// repairItem replaces what cannot be parsed of the item in lines[start:stop].
func (s *salvagedDocument) repairItem(lines []string, start, stop int) {
	why := s.parseItem(lines[start:stop])
	if why == nil {
		return
	}
	fixed, broken := s.quoteValues(lines[start:stop], start)
	if len(broken) > 0 && s.parseItem(fixed) == nil {
		copy(lines[start:stop], fixed)
		for at, message := range broken {
			s.broken[at] = message
		}
		return
	}
	at := Position{start + 1, len(itemStart.FindStringSubmatch(lines[start] + " ")[0]) + 1}
	line, message := explainYAML(why)
	if line > 0 {
		message = fmt.Sprintf("%s, in line %d", message, start+line)
	}
	for _, l := range lines[start:stop] {
		if body := strings.TrimLeft(l, " \t"); strings.Contains(strings.TrimSuffix(l, body), "\t") {
			message = "a tab indents a line: use spaces"
		}
	}
	s.broken[at] = "invalid YAML: " + message
	text := strings.TrimSpace(strings.TrimLeft(strings.Join(lines[start:stop], "\n"), " -"))
	lines[start] = lines[start][:min(at.Col-1, len(lines[start]))] + quoteText(text)
	for i := start + 1; i < stop; i++ {
		lines[i] = ""
	}
}

// quoteValues returns lines with the values quoted that are not valid alone. The first line
// is that with index start of the document.
func (s *salvagedDocument) quoteValues(lines []string, start int) ([]string, map[Position]string) {
	fixed, broken, block := slices.Clone(lines), map[Position]string{}, -1
	for i, line := range lines {
		body := strings.TrimLeft(line, " ")
		if body == "" || block >= 0 && len(line)-len(body) > block {
			continue // a blank line, or one of a text after | or >
		}
		block = -1
		m := fieldStart.FindStringSubmatch(line)
		if m == nil || m[1]+m[2] == "" || !strings.Contains(m[1], "-") && m[2] == "" {
			continue
		}
		if blockStart.MatchString(m[4]) {
			block = len(m[1]) // where the field's name is
			continue
		}
		if s.retries++; s.retries > maxRetries {
			return nil, nil
		}
		if _, _, err := parseYAML([]byte("x: " + m[4])); err != nil {
			at := Position{start + i + 1, utf8.RuneCountInString(m[1]+m[2]) + 1}
			broken[at] = explainValue(m[4], m[3])
			fixed[i] = m[1] + m[2] + quoteText(m[4])
		}
	}
	return fixed, broken
}

// explainValue says why YAML cannot read the value of a field as a text.
func explainValue(value, name string) string {
	fix := quoteIt(name, false)
	switch first := value[:1]; {
	case strings.ContainsAny(first, "{["):
		return "invalid YAML in brackets: quote each text with a colon, a comma or #; if all of it is a text, " + fix
	case strings.ContainsAny(first, "`@%*&!|>\"'"):
		return fmt.Sprintf("invalid YAML, because the value begins with %s: if it is a text, %s", first, fix)
	}
	return "invalid YAML, because the value has a colon before a space or at its end: " + fix
}

// quoteText returns s as a text in double quotes, in one line.
func quoteText(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("document: internal error: a text cannot be quoted: " + err.Error())
	}
	return string(b)
}
