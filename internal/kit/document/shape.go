// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A Shape defines the valid values at one place of a document. Check checks documents
// against it, and Schema converts it to JSON Schema.
type Shape struct {
	Kind Kind   // Object, List, Text, Number or Boolean
	Doc  string // for the reader of the schema
	Want string // the expected value, for messages: `a duration such as "90s"`
	Max  int    // bytes of a text, items of a list, members of an object

	// For texts.
	Lines   bool // newlines and tabs are allowed
	Empty   bool // "" is allowed
	Pattern *pattern.Pattern
	Never   *pattern.Pattern // and this must not match: for what the pattern cannot express
	Choice  []string
	// Verbatim demands the text that the author wrote: a command must not be Altered.
	Verbatim bool
	// Scalar allows a number or boolean as it is written, if all readers write it so.
	Scalar bool
	// Unknown returns the message for a text that Choice does not have; nil for a general one.
	Unknown func(value string) string

	// For numbers.
	Low, High float64
	Integer   bool

	// Valid checks what pattern and bounds do not; "" means valid.
	Valid func(n *Node) string
	// Or allows a value of another kind, in a shape of its own: a size is a number or a text.
	Or *Shape

	// Instead says what to write if the value is of another kind.
	Instead map[Kind]string

	// Blank allows null and the empty value in place of a value: the field is left out. See
	// Prune.
	Blank bool

	// For lists.
	Items *Shape
	First *Shape // of the first item, if different
	Once  bool   // no item twice

	// For objects: known fields, or arbitrary names whose values all have one shape.
	Fields []Field
	Names  *Shape
	Values *Shape
	// Synonyms are names that people write for Fields, in addition to those that all
	// formats share.
	Synonyms map[string]string
	// Extra adds to the schema of an object what the fields do not express.
	Extra func(schema map[string]any)
}

// A Field is one known name of an object.
type Field struct {
	Name     string
	Required bool
	*Shape
}

// Required returns a field that must be given.
func Required(name string, s *Shape) Field { return Field{Name: name, Required: true, Shape: s} }

// Optional returns a field that may be left out.
func Optional(name string, s *Shape) Field { return Field{Name: name, Shape: s} }

// Check reports everything in n that s does not allow.
func Check(n *Node, s *Shape, path string, ps *Problems) {
	if s.Kind == Any || ps.IsFull() {
		return
	}
	for _, f := range n.problems {
		ps.Add(f.at, path, "%s", f.message)
	}
	blank := s.Blank
	if s.Or != nil && (n.Kind == s.Or.Kind || s.Or.Scalar && n.isPlainValue()) {
		s = s.Or
	}
	switch {
	case n.Kind == Unreadable:
		return
	case s.Verbatim && n.Altered != "" && (n.Kind == Text || n.Kind == Null || s.Scalar && n.isPlainValue()):
		ps.Add(n.At, path, "%s", n.Altered)
		return
	case blank && n.isBlank(s.Kind):
		return
	case s.Scalar && n.isPlainValue():
		checkText(n, s, path, ps)
		return
	case n.Kind == Null:
		ps.Add(n.At, path, "is null: give it a value or leave it out")
		return
	case n.Kind != s.Kind:
		ps.Add(n.At, path, "%s", wrongKind(n, s))
		return
	}
	switch s.Kind {
	case Object:
		checkObject(n, s, path, ps)
	case List:
		checkList(n, s, path, ps)
	case Text:
		checkText(n, s, path, ps)
	case Number:
		checkNumber(n, s, path, ps)
	}
}

// isBlank reports whether n is null, or the empty value of a kind.
func (n *Node) isBlank(kind Kind) bool {
	return n.Kind == Null || n.Kind == kind && n.Kind != Number && n.Kind != Boolean && n.Value == "" && len(n.Items)+
		len(n.Members) == 0
}

// PruneBlank returns a checked n without the fields that are Blank, and without objects of
// which nothing is left then.
func PruneBlank(n *Node, s *Shape) *Node {
	if n.Kind != Object || s.Fields == nil {
		return n
	}
	pruned := *n
	pruned.Members = nil
	for _, m := range n.Members {
		i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == m.Name })
		if i >= 0 && s.Fields[i].Blank {
			field := s.Fields[i].Shape
			m.Value = PruneBlank(m.Value, field)
			if m.Value.isBlank(field.Kind) || field.Or != nil && m.Value.isBlank(field.Or.Kind) {
				continue
			}
		}
		pruned.Members = append(pruned.Members, m)
	}
	return &pruned
}

var plainNumber = pattern.New(`^-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{0,14}[1-9])?$`)

// IsWord reports whether n is a text, or a number or boolean that a Scalar shape takes for one.
func (n *Node) IsWord() bool { return n.Kind == Text || n.isPlainValue() }

// isPlainValue reports whether n is a boolean or a number that programs write as it is here.
func (n *Node) isPlainValue() bool {
	return n.Kind == Boolean || n.Kind == Number && plainNumber.MatchString(n.Value)
}

func wrongKind(n *Node, s *Shape) string {
	got := n.describeNode()
	switch {
	case s.Kind == Text && n.Kind == Ambiguous:
		return fmt.Sprintf("YAML readers disagree about %s: quote it if it is meant as text", got)
	case s.Kind == Text && (n.Kind == Number || n.Kind == Boolean) && s.textProblem(n) == "":
		return fmt.Sprintf("want %s, got %s: quote it if it is meant as text", s.describeWanted(), got)
	case n.Kind == Ambiguous:
		return fmt.Sprintf("want %s, but YAML readers disagree about %s", s.describeWanted(), got)
	}
	if s.Instead[n.Kind] != "" {
		got += "; " + s.Instead[n.Kind]
	}
	if s.Verbatim && n.Altered != "" {
		got += "; " + n.Altered
	}
	return fmt.Sprintf("want %s, got %s", s.describeWanted(), got)
}

func (s *Shape) describeWanted() string {
	switch {
	case s.Want != "":
		return s.Want
	case s.Kind == Object:
		return "an object"
	case s.Kind == List:
		return "a list"
	case s.Kind == Boolean:
		return "true or false"
	case s.Kind == Number:
		return "a number"
	}
	return "a text"
}

func checkText(n *Node, s *Shape, path string, ps *Problems) {
	if complaint := s.textProblem(n); complaint != "" {
		ps.Add(n.At, path, "%s", complaint)
	}
}

// textProblem returns the first problem with a text, or "".
func (s *Shape) textProblem(n *Node) string {
	v := n.Value
	if len(v) > s.Max {
		return fmt.Sprintf("is %d bytes long; at most %d are allowed", len(v), s.Max)
	}
	if r, count, found := FirstHidden(v); found {
		return fmt.Sprintf("contains %s as character %d, which is not allowed", nameRune(r), count)
	}
	switch {
	case strings.TrimSpace(v) == "" && !s.Empty:
		return "is empty: give it a value or leave it out"
	case !s.Lines && strings.ContainsAny(v, "\n\t"):
		return "contains a line break or tab; it must be one line"
	case s.Unknown != nil && !slices.Contains(s.Choice, v):
		return s.Unknown(v)
	case s.Choice != nil && !slices.Contains(s.Choice, v),
		s.Pattern != nil && !s.Pattern.MatchString(v),
		s.Never != nil && s.Never.MatchString(v):
		return fmt.Sprintf("invalid value %s: want %s", Quote(v), s.describeWanted())
	case s.Valid != nil:
		return s.Valid(n)
	}
	return ""
}

func checkNumber(n *Node, s *Shape, path string, ps *Problems) {
	v, err := numberOf(n)
	whole := v == float64(int64(v)) && !strings.ContainsAny(n.Value, ".eE")
	switch {
	case err != nil || v < s.Low || v > s.High || s.Integer && !whole:
		ps.Add(n.At, path, "invalid value %s: want %s", clipDigits(n.Value), s.describeWanted())
	case s.Valid != nil:
		if complaint := s.Valid(n); complaint != "" {
			ps.Add(n.At, path, "%s", complaint)
		}
	}
}

func checkList(n *Node, s *Shape, path string, ps *Problems) {
	if len(n.Items) == 0 {
		ps.Add(n.At, path, "is empty: give it at least one item")
	}
	if len(n.Items) > s.Max {
		ps.Add(n.At, path, "has %d items; at most %d are allowed", len(n.Items), s.Max)
		return
	}
	seen := map[string]bool{}
	for i, item := range n.Items {
		if ps.IsFull() {
			return
		}
		shape := s.Items
		if i == 0 && s.First != nil {
			shape = s.First
		}
		Check(item, shape, JoinIndex(path, i), ps)
		if s.Once && item.IsWord() {
			if seen[item.Value] {
				ps.Add(item.At, JoinIndex(path, i), "%s is listed twice", Quote(item.Value))
			}
			seen[item.Value] = true
		}
	}
	if s.Valid != nil {
		if complaint := s.Valid(n); complaint != "" {
			ps.Add(n.At, path, "%s", complaint)
		}
	}
}

func checkObject(n *Node, s *Shape, path string, ps *Problems) {
	if len(n.Members) == 0 && !s.hasRequiredField() {
		ps.Add(n.At, path, "is empty: give it a field or leave it out")
	}
	if s.Fields == nil && len(n.Members) > s.Max {
		ps.Add(n.At, path, "has %d entries; at most %d are allowed", len(n.Members), s.Max)
		return
	}
	first := map[string]Position{}
	for _, m := range n.Members {
		if ps.IsFull() {
			return
		}
		if at, twice := first[m.Name]; twice {
			ps.Add(m.At, JoinName(path, m.Name), "is given twice, first in line %d", at.Line)
		} else {
			first[m.Name] = m.At
		}
		s.checkMember(m, path, ps)
	}
	for _, f := range s.Fields {
		if _, given := first[f.Name]; f.Required && !given && !s.hasMisspelling(n, f.Name) {
			ps.Add(n.At, path, "the field %q is missing%s", f.Name, f.missingFieldHint())
		}
	}
}

// hasMisspelling reports whether n has an unknown field that was meant to be the field name, which
// is reported with this suggestion.
func (s *Shape) hasMisspelling(n *Node, name string) bool {
	return slices.ContainsFunc(n.Members, func(m Member) bool {
		known := slices.ContainsFunc(s.Fields, func(f Field) bool { return f.Name == m.Name })
		return !known && NearestName(m.Name, []string{name}) != ""
	})
}

// hasRequiredField reports whether s has a required field, whose absence is reported anyway.
func (s *Shape) hasRequiredField() bool {
	return slices.ContainsFunc(s.Fields, func(f Field) bool { return f.Required })
}

func (s *Shape) checkMember(m Member, path string, ps *Problems) {
	path = JoinName(path, m.Name)
	if s.Fields == nil {
		value := *m.Value
		// quotes do not help a name that is invalid
		if s.Names.textProblem(&Node{Kind: Text, At: m.At, Value: m.Name}) != "" {
			value.problems = slices.DeleteFunc(slices.Clone(value.problems), func(f nodeFlaw) bool {
				return f.at == m.At && strings.HasPrefix(f.message, "YAML readers disagree")
			})
		}
		checkText(&Node{Kind: Text, At: m.At, Value: m.Name}, s.Names, path, ps)
		Check(&value, s.Values, path, ps)
		return
	}
	for _, f := range s.Fields {
		if f.Name == m.Name {
			Check(m.Value, f.Shape, path, ps)
			return
		}
	}
	if len(m.Value.problems) > 0 {
		Check(m.Value, &Shape{}, path, ps) // such as a merge key
		return
	}
	ps.Add(m.At, path, "unknown field %s%s", Quote(m.Name), s.suggestField(m.Name))
}

// suggestField suggests the field that the writer of name may have meant.
func (s *Shape) suggestField(name string) string {
	var known []string
	for _, f := range s.Fields {
		known = append(known, f.Name)
	}
	meant, listed := s.Synonyms[strings.ToLower(name)]
	if !listed {
		meant = synonyms[strings.ToLower(name)]
	}
	if !slices.Contains(known, meant) {
		meant = NearestName(name, known)
	}
	if meant == "" {
		return ": known are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf(": did you mean %q?", meant)
}

// missingFieldHint says what to write for a missing field.
func (s *Shape) missingFieldHint() string {
	if len(s.Choice) == 1 {
		return fmt.Sprintf(": add it with the value %q", s.Choice[0])
	}
	return ""
}

// synonyms are names that proposers of other tools use. A synonym is suggested
// only if it is a known field of the object.
var synonyms = map[string]string{
	"version": "schema", "author": "proposer", "agent": "proposer",
	"commands": "proposals", "steps": "proposals", "jobs": "proposals",
	"name": "id", "key": "id", "cmd": "run", "command": "run", "script": "run", "shell": "run", "bash": "run",
	"args": "argv", "snippet": "code", "source": "code", "lang": "language", "interpreter": "language",
	"reason": "why", "rationale": "why", "description": "why", "dir": "cwd", "workdir": "cwd",
	"working_directory": "cwd", "working-directory": "cwd", "environment": "env", "input": "stdin",
	"timeout_seconds": "timeout", "timeout-minutes": "timeout", "resources": "limits", "hosts": "network",
	"domains": "network", "egress": "network", "registries": "network", "stage": "phase", "step": "phase", "artifacts": "outputs", "files": "outputs", "depends_on": "needs", "depends-on": "needs",
	"after": "needs", "expected": "expect", "expects": "expect", "isolated": "new-sandbox", "new_sandbox": "new-sandbox", "fresh": "new-sandbox",
	"cpu": "cpus", "mem": "memory", "ram": "memory", "processes": "pids", "nofile": "files", "time": "wall",
}
