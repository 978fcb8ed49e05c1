// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxCases is how many cases one document may hold.
const maxCases = 2000

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
	ps := problems{About: "file of cases"}
	root := document.Read(data, name, MaxDocument, &ps)
	if root != nil {
		document.Check(root, &casesShape, "", &ps)
		checkCases(root, &ps)
	}
	if len(ps.List) > 0 {
		return nil, ps.SortedProblems()
	}
	var cases []proposal.Case
	for i, n := range root.Get("cases").Items {
		cases = append(cases, caseOf(n, i))
	}
	return cases, nil
}

// The fields of a case in addition to those of a proposal.
const (
	fieldActor = "actor"
	fieldPR    = "pr"
)

var casesShape = shape{Kind: object, Want: "an object with the fields schema and cases", Fields: []field{
	document.Required("schema", &shape{Kind: text, Max: 64, Choice: []string{proposal.CasesSchema},
		Want: strconv.Quote(proposal.CasesSchema),
		Doc:  "The version of this format."}),
	document.Required("cases", &shape{Kind: list, Max: maxCases, Items: &caseShape,
		Doc: "The cases. Each is decided separately."}),
}}

var caseShape = shape{Kind: object, Want: "a case: an object with a name, something to decide, and what is expected",
	Fields: slices.Concat(
		[]field{
			document.Required("name", &shape{Kind: text, Max: 200, Doc: "What the case shows, unique in the file."}),
			document.Optional("why", &shape{Kind: text, Max: maxProse, Lines: true, Doc: "The reason, for people."}),
		},
		proposedFields(),
		[]field{
			document.Optional(fieldPR, &shape{Kind: text, Max: 64, Choice: []string{"fork", "same-repository"},
				Want: `"fork" or "same-repository"`,
				Doc:  "Where the pull request's code comes from. fumehood.trigger judges the request to run it, before run, argv or code are judged."}),
			document.Optional(fieldActor, &shape{Kind: text, Max: 64,
				Choice: []string{"admin", "maintain", "write", "triage", "read", "none"},
				Want:   `a role: "admin", "maintain", "write", "triage", "read" or "none"`,
				Doc:    "The role of the person who requests the run; write if omitted."}),
			document.Optional("trigger", inputShape(reflect.TypeFor[points.Trigger](),
				"The request, judged by fumehood.trigger. Omitted fields are those of a user with the role write who comments /fumehood run on another user's pull request.")),
			document.Optional("exec", inputShape(reflect.TypeFor[proposal.Exec](),
				"A program that starts, judged by fumehood.exec. Omitted fields are those of git in the root file system.")),
			document.Optional("egress", inputShape(reflect.TypeFor[proposal.Egress](),
				"A step of a connection, judged by fumehood.egress. Omitted fields are those of a granted connection to api.example.com:443.")),
			document.Optional("event", inputShape(reflect.TypeFor[proposal.Event](),
				"What was observed, judged by fumehood.event. Expect its notes with rule and not_rule.")),
			document.Optional("output", inputShape(reflect.TypeFor[points.Outgoing](),
				"Data about to leave, judged by fumehood.output. Omitted fields are those of a standard output without secrets.")),
			document.Optional("want", &shape{Kind: text, Max: 64, Choice: []string{"allow", "deny", "ask"},
				Want: `"allow", "deny" or "ask"`, Doc: "The expected effect. Events have none."}),
			document.Optional("rule", rulesShape("Rules that must apply. An entry that ends in a dot means any rule with that prefix.")),
			document.Optional("not_rule", rulesShape("Rules that must not apply.")),
			document.Optional("granted", grantedShape()),
		})}

// proposedFields are a plan's, except for those that decide nothing.
// Unlike there, a value must be given: models do not write cases.
func proposedFields() []field {
	return slices.DeleteFunc(withoutBlank(proposalShape.Fields), func(f field) bool {
		return slices.Contains([]string{"id", "why", "needs", "expect"}, f.Name)
	})
}

// withoutBlank returns fields whose values may not be blank.
func withoutBlank(fields []field) []field {
	fields = slices.Clone(fields)
	for i, f := range fields {
		s := *f.Shape
		s.Blank, s.Fields = false, withoutBlank(s.Fields)
		fields[i].Shape = &s
	}
	return fields
}

func grantedShape() *shape {
	s := document.LimitsShape()
	s.Want, s.Doc = "an object of limits", "Limits that must be granted."
	return s
}

func rulesShape(doc string) *shape {
	one := &shape{Kind: text, Max: 200, Doc: "A rule's id."}
	return &shape{Kind: list, Max: document.MaxListed, Items: one, Once: true, Or: one,
		Want: "a rule's id, or a list of them", Doc: doc}
}

// inputShape returns the shape of a Go type as encoding/json writes it.
func inputShape(t reflect.Type, doc string) *shape {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return &shape{Kind: text, Max: 64, Doc: doc}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &shape{Kind: boolean, Doc: doc}
	case reflect.Int, reflect.Int64:
		return &shape{Kind: number, Low: -document.MaxBytes, High: document.MaxBytes, Integer: true,
			Want: "a whole number", Doc: doc}
	case reflect.Slice:
		return &shape{Kind: list, Max: document.MaxWords, Items: inputShape(t.Elem(), ""), Doc: doc}
	case reflect.Struct:
		return &shape{Kind: object, Fields: inputFields(t), Doc: doc}
	case reflect.String:
		return &shape{Kind: text, Max: document.MaxCode, Lines: true, Empty: true, Doc: doc}
	}
	panic("plan: internal error: no shape for " + t.String())
}

func inputFields(t reflect.Type) []field {
	var fields []field
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" && f.Type != reflect.TypeFor[time.Time]() {
			fields = append(fields, document.Optional(name, inputShape(f.Type, "")))
		}
	}
	return fields
}

// checkCases checks cases against each other, and the fields of each case against each other.
func checkCases(root *node, ps *problems) {
	cases := root.Get("cases")
	if cases == nil || len(cases.Items) > maxCases {
		return
	}
	first := map[string]int{}
	for i, c := range cases.Items {
		if c.Kind != object || ps.IsFull() {
			continue
		}
		path := document.JoinIndex("cases", i)
		if hasOnlyKnownFields(c) { // a missing field may be one of the misspelled ones
			checkSubject(c, path, ps)
			checkWanted(c, path, ps)
		}
		name := c.Get("name")
		if name == nil || name.Kind != text {
			continue
		}
		if before, taken := first[name.Value]; taken {
			ps.Add(name.At, document.JoinName(path, "name"), "the name %s is already used by cases[%d] in line %d",
				document.Quote(name.Value), before, cases.Items[before].At.Line)
		} else {
			first[name.Value] = i
		}
	}
}

// hasOnlyKnownFields reports whether c has only known fields.
func hasOnlyKnownFields(c *node) bool {
	return !slices.ContainsFunc(c.Members, func(m member) bool {
		return !slices.ContainsFunc(caseShape.Fields, func(f field) bool { return f.Name == m.Name })
	})
}

var (
	formFields  = []string{"run", "argv", "code"}
	otherFields = []string{"exec", "egress", "event", "output"}
	triggering  = []string{"trigger", fieldPR, fieldActor}
)

// presentNames returns those of names that c has.
func presentNames(c *node, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return c.Get(name) == nil })
}

// checkSubject requires exactly one thing to decide, and no fields that belong to another.
func checkSubject(c *node, path string, ps *problems) {
	forms, others, triggers := presentNames(c, formFields...), presentNames(c, otherFields...),
		presentNames(c, triggering...)
	switch about := len(forms) + len(others); {
	case about == 0 && len(triggers) == 0:
		ps.Add(c.At, path, "has nothing to decide: give run (shell text), argv (a list of words), code (with language), pr, actor or trigger (the request), exec, egress, event or output")
		return
	case about > 1:
		ps.Add(c.At, path, "has %s; only one of them is allowed in a case",
			strings.Join(append(forms, others...), " and "))
		return
	case len(others) > 0 && len(triggers) > 0:
		ps.Add(c.Get(triggers[0]).At, document.JoinName(path, triggers[0]), "does not apply to %s: leave it out",
			others[0])
	}
	if len(forms) > 0 {
		checkForm(c, path, ps)
		return
	}
	for _, f := range proposedFields() {
		if n := c.Get(f.Name); n != nil {
			ps.Add(n.At, document.JoinName(path, f.Name), "is allowed only with run, argv or code: leave it out")
		}
	}
}

// checkWanted requires an expectation that can fail.
func checkWanted(c *node, path string, ps *problems) {
	want, wants := c.Get("want"), presentNames(c, "want", "rule", "not_rule", "granted")
	switch {
	case len(wants) == 0:
		ps.Add(c.At, path, `expects nothing: give want ("allow", "deny" or "ask"), rule, or both`)
	case c.Get("event") != nil && want != nil:
		ps.Add(want.At, document.JoinName(path, "want"),
			"does not apply to an event, which is neither allowed nor denied: give rule or not_rule")
	}
	granted := c.Get("granted")
	if granted != nil && (want == nil || want.Value == "deny" || len(presentNames(c, formFields...)) == 0) {
		ps.Add(granted.At, document.JoinName(path, "granted"),
			`is allowed only with run, argv or code, and with want: allow or ask`)
	}
}

func caseOf(n *node, i int) proposal.Case {
	c := proposal.Case{
		Name: n.TextOf("name"), Why: n.TextOf("why"), Want: n.TextOf("want"), Line: n.At.Line,
		Rules: rulesOf(n.Get("rule")), NotRules: rulesOf(n.Get("not_rule")),
		Granted: document.LimitsOf(n.Get("granted")),
	}
	if len(presentNames(n, formFields...)) > 0 {
		p := proposalOf(n)
		p.ID, p.Why = fmt.Sprintf("case-%d", i+1), ""
		c.Proposal = &p
	}
	c.Inputs = map[string]json.RawMessage{}
	for _, name := range otherFields {
		if v := n.Get(name); v != nil {
			c.Inputs[name] = v.EncodeJSON()
		}
	}
	if len(presentNames(n, triggering...)) > 0 {
		c.Inputs["trigger"] = triggerOf(n)
	}
	return c
}

// triggerOf merges pr and actor into trigger; fields that trigger sets take precedence.
func triggerOf(n *node) json.RawMessage {
	out := &node{Kind: object}
	if t := n.Get("trigger"); t != nil {
		out.Members = slices.Clone(t.Members)
	}
	if v := n.Get(fieldPR); v != nil {
		putMember(out, "pr", "fork", &node{Kind: boolean, Value: strconv.FormatBool(v.Value == "fork")})
	}
	if v := n.Get(fieldActor); v != nil {
		putMember(out, "actor", "permission", v)
	}
	return out.EncodeJSON()
}

// putMember sets a member of an object in n, unless it exists.
func putMember(n *node, name, part string, v *node) {
	inner := &node{Kind: object}
	i := slices.IndexFunc(n.Members, func(m member) bool { return m.Name == name })
	if i < 0 {
		i = len(n.Members)
		n.Members = append(n.Members, member{Name: name})
	} else {
		inner.Members = slices.Clone(n.Members[i].Value.Members)
	}
	if inner.Get(part) == nil {
		inner.Members = append(inner.Members, member{Name: part, Value: v})
	}
	n.Members[i].Value = inner
}

func rulesOf(n *node) []string {
	switch {
	case n == nil:
		return nil
	case n.Kind == text:
		return []string{n.Value}
	}
	var rules []string
	for _, item := range n.Items {
		rules = append(rules, item.Value)
	}
	return rules
}
