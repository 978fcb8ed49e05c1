// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxCases is how many cases one document may hold.
const MaxCases = 2000

// CasesSchemaID names the published schema of cases.
const CasesSchemaID = "https://github.com/fumehood/fumehood/raw/main/testdata/schema/fumehood.cases.v1.json"

// DecodeCases reads the policy test cases that a policy author writes, as strictly as
// Decode reads plans: a document of the format fumehood.cases/v1.
//
//	schema: fumehood.cases/v1
//	cases:
//	  - name: tests run
//	    run: go test ./...
//	    want: allow
//	    rule: code.run
//	  - name: a user without write access starts nothing on a fork
//	    pr: fork
//	    actor: read
//	    want: deny
//
// The proposal is written as in a plan, except for id, needs, why and expect, which
// decide nothing. Cases are returned only if there is no Problem.
func DecodeCases(data []byte, name string) ([]proposal.Case, []proposal.Problem) {
	ps := problems{about: "file of cases"}
	root := read(data, name, &ps)
	if root != nil {
		check(root, &casesShape, "", &ps)
		checkCases(root, &ps)
	}
	if len(ps.list) > 0 {
		return nil, ps.sorted()
	}
	var cases []proposal.Case
	for i, n := range root.get("cases").items {
		cases = append(cases, caseOf(n, i))
	}
	return cases, nil
}

// The fields of a case in addition to those of a proposal.
const (
	fieldActor = "actor"
	fieldPR    = "pr"
)

var casesShape = shape{kind: object, want: "an object with the fields schema and cases", fields: []field{
	{"schema", true, &shape{kind: text, max: 64, choice: []string{proposal.CasesSchema}, want: strconv.Quote(proposal.CasesSchema),
		doc: "The version of this format."}},
	{"cases", true, &shape{kind: list, max: MaxCases, items: &caseShape, doc: "The cases. Each is decided separately."}},
}}

var caseShape = shape{kind: object, want: "a case: an object with a name, something to decide, and what is expected", fields: slices.Concat(
	[]field{
		{"name", true, &shape{kind: text, max: 200, doc: "What the case shows, unique in the file."}},
		{"why", false, &shape{kind: text, max: maxProse, lines: true, doc: "The reason, for people."}},
	},
	proposedFields(),
	[]field{
		{fieldPR, false, &shape{kind: text, max: 64, choice: []string{"fork", "same-repository"}, want: `"fork" or "same-repository"`,
			doc: "Where the pull request's code comes from. fumehood.trigger judges the request to run it, before run, argv or code are judged."}},
		{fieldActor, false, &shape{kind: text, max: 64, choice: []string{"admin", "maintain", "write", "triage", "read", "none"},
			want: `a role: "admin", "maintain", "write", "triage", "read" or "none"`, doc: "The role of the person who requests the run; write if omitted."}},
		{"trigger", false, inputShape(reflect.TypeFor[proposal.Trigger](), "The request, judged by fumehood.trigger. Omitted fields are those of a user with the role write who comments /fumehood run on another user's pull request.")},
		{"exec", false, inputShape(reflect.TypeFor[proposal.Exec](), "A program that starts, judged by fumehood.exec. Omitted fields are those of git in the root file system.")},
		{"egress", false, inputShape(reflect.TypeFor[proposal.Egress](), "A step of a connection, judged by fumehood.egress. Omitted fields are those of a granted connection to api.example.com:443.")},
		{"event", false, inputShape(reflect.TypeFor[proposal.Event](), "What was observed, judged by fumehood.event. Expect its notes with rule and not_rule.")},
		{"output", false, inputShape(reflect.TypeFor[proposal.Outgoing](), "Data about to leave, judged by fumehood.output. Omitted fields are those of a standard output without secrets.")},
		{"want", false, &shape{kind: text, max: 64, choice: []string{"allow", "deny", "ask"}, want: `"allow", "deny" or "ask"`, doc: "The expected effect. Events have none."}},
		{"rule", false, rulesShape("Rules that must apply. An entry that ends in a dot means any rule with that prefix.")},
		{"not_rule", false, rulesShape("Rules that must not apply.")},
		{"granted", false, grantedShape()},
	})}

// proposedFields are a plan's, except for those that decide nothing.
func proposedFields() []field {
	return slices.DeleteFunc(slices.Clone(proposalShape.fields), func(f field) bool {
		return slices.Contains([]string{"id", "why", "needs", "expect"}, f.name)
	})
}

func grantedShape() *shape {
	s := limitsShape
	s.want, s.doc = "an object of limits", "Limits that must be granted."
	return &s
}

func rulesShape(doc string) *shape {
	one := &shape{kind: text, max: 200, doc: "A rule's id."}
	return &shape{kind: list, max: maxListed, items: one, once: true, orText: one, want: "a rule's id, or a list of them", doc: doc}
}

// inputShape returns the shape of a Go type as encoding/json writes it.
func inputShape(t reflect.Type, doc string) *shape {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return &shape{kind: text, max: 64, doc: doc}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &shape{kind: boolean, doc: doc}
	case reflect.Int, reflect.Int64:
		return &shape{kind: number, low: -maxBytes, high: maxBytes, integer: true, want: "a whole number", doc: doc}
	case reflect.Slice:
		return &shape{kind: list, max: maxWords, items: inputShape(t.Elem(), ""), doc: doc}
	case reflect.Struct:
		return &shape{kind: object, fields: inputFields(t), doc: doc}
	case reflect.String:
		return &shape{kind: text, max: maxCode, lines: true, empty: true, doc: doc}
	}
	panic("plan: internal error: no shape for " + t.String())
}

func inputFields(t reflect.Type) []field {
	var fields []field
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" && f.Type != reflect.TypeFor[time.Time]() {
			fields = append(fields, field{name, false, inputShape(f.Type, "")})
		}
	}
	return fields
}

// checkCases checks cases against each other, and the fields of each case against each other.
func checkCases(root *node, ps *problems) {
	cases := root.get("cases")
	if cases == nil || len(cases.items) > MaxCases {
		return
	}
	first := map[string]int{}
	for i, c := range cases.items {
		if c.kind != object || ps.full() {
			continue
		}
		path := joinIndex("cases", i)
		if knows(c) { // a missing field may be one of the misspelled ones
			checkSubject(c, path, ps)
			checkWanted(c, path, ps)
		}
		name := c.get("name")
		if name == nil || name.kind != text {
			continue
		}
		if before, taken := first[name.value]; taken {
			ps.add(name.at, joinName(path, "name"), "the name %s is already used by cases[%d] in line %d", quote(name.value), before, cases.items[before].at.line)
		} else {
			first[name.value] = i
		}
	}
}

// knows reports whether c has only known fields.
func knows(c *node) bool {
	return !slices.ContainsFunc(c.members, func(m member) bool {
		return !slices.ContainsFunc(caseShape.fields, func(f field) bool { return f.name == m.name })
	})
}

var (
	formFields  = []string{"run", "argv", "code"}
	otherFields = []string{"exec", "egress", "event", "output"}
	triggering  = []string{"trigger", fieldPR, fieldActor}
)

// given returns those of names that c has.
func given(c *node, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return c.get(name) == nil })
}

// checkSubject requires exactly one thing to decide, and no fields that belong to another.
func checkSubject(c *node, path string, ps *problems) {
	forms, others, triggers := given(c, formFields...), given(c, otherFields...), given(c, triggering...)
	switch about := len(forms) + len(others); {
	case about == 0 && len(triggers) == 0:
		ps.add(c.at, path, "has nothing to decide: give run (shell text), argv (a list of words), code (with language), pr, actor or trigger (the request), exec, egress, event or output")
		return
	case about > 1:
		ps.add(c.at, path, "has %s; only one of them is allowed in a case", strings.Join(append(forms, others...), " and "))
		return
	case len(others) > 0 && len(triggers) > 0:
		ps.add(c.get(triggers[0]).at, joinName(path, triggers[0]), "does not apply to %s: leave it out", others[0])
	}
	if len(forms) > 0 {
		checkForm(c, path, ps)
		checkSandbox(c, path, ps)
		return
	}
	for _, f := range proposedFields() {
		if n := c.get(f.name); n != nil {
			ps.add(n.at, joinName(path, f.name), "is allowed only with run, argv or code: leave it out")
		}
	}
}

// checkWanted requires an expectation that can fail.
func checkWanted(c *node, path string, ps *problems) {
	want, wants := c.get("want"), given(c, "want", "rule", "not_rule", "granted")
	switch {
	case len(wants) == 0:
		ps.add(c.at, path, `expects nothing: give want ("allow", "deny" or "ask"), rule, or both`)
	case c.get("event") != nil && want != nil:
		ps.add(want.at, joinName(path, "want"), "does not apply to an event, which is neither allowed nor denied: give rule or not_rule")
	}
	granted := c.get("granted")
	if granted != nil && (want == nil || want.value == "deny" || len(given(c, formFields...)) == 0) {
		ps.add(granted.at, joinName(path, "granted"), `is allowed only with run, argv or code, and with want: allow or ask`)
	}
}

func caseOf(n *node, i int) proposal.Case {
	c := proposal.Case{
		Name: n.text("name"), Why: n.text("why"), Want: n.text("want"), Line: n.at.line,
		Rules: rulesOf(n.get("rule")), NotRules: rulesOf(n.get("not_rule")), Granted: limitsOf(n.get("granted")),
	}
	if len(given(n, formFields...)) > 0 {
		p := proposalOf(n)
		p.ID, p.Why = fmt.Sprintf("case-%d", i+1), ""
		c.Proposal = &p
	}
	c.Inputs = map[string]json.RawMessage{}
	for _, name := range otherFields {
		if v := n.get(name); v != nil {
			c.Inputs[name] = v.json()
		}
	}
	if len(given(n, triggering...)) > 0 {
		c.Inputs["trigger"] = triggerOf(n)
	}
	return c
}

// triggerOf merges pr and actor into trigger; fields that trigger sets take precedence.
func triggerOf(n *node) json.RawMessage {
	out := &node{kind: object}
	if t := n.get("trigger"); t != nil {
		out.members = slices.Clone(t.members)
	}
	if v := n.get(fieldPR); v != nil {
		out.put("pr", "fork", &node{kind: boolean, value: strconv.FormatBool(v.value == "fork")})
	}
	if v := n.get(fieldActor); v != nil {
		out.put("actor", "permission", v)
	}
	return out.json()
}

// put sets a member of an object in n, unless it exists.
func (n *node) put(name, part string, v *node) {
	inner := &node{kind: object}
	i := slices.IndexFunc(n.members, func(m member) bool { return m.name == name })
	if i < 0 {
		i = len(n.members)
		n.members = append(n.members, member{name: name})
	} else {
		inner.members = slices.Clone(n.members[i].value.members)
	}
	if inner.get(part) == nil {
		inner.members = append(inner.members, member{name: part, value: v})
	}
	n.members[i].value = inner
}

func rulesOf(n *node) []string {
	switch {
	case n == nil:
		return nil
	case n.kind == text:
		return []string{n.value}
	}
	var rules []string
	for _, item := range n.items {
		rules = append(rules, item.value)
	}
	return rules
}

// json encodes a checked node.
func (n *node) json() json.RawMessage {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	switch n.kind {
	case object:
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			(&node{kind: text, value: m.name}).write(b)
			b.WriteByte(':')
			m.value.write(b)
		}
		b.WriteByte('}')
	case list:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case text:
		quoted, err := json.Marshal(n.value)
		if err != nil {
			panic("plan: internal error: a text cannot be written: " + err.Error())
		}
		b.Write(quoted)
	default:
		b.WriteString(n.value)
	}
}
