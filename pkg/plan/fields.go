// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/pkg/proposal"
)

type (
	node     = document.Node
	member   = document.Member
	problems = document.Problems
	shape    = document.Shape
	field    = document.Field
)

const (
	object  = document.Object
	list    = document.List
	text    = document.Text
	number  = document.Number
	boolean = document.Boolean
)

const (
	maxStdin = 256 << 10
	maxProse = 4 << 10
)

// planShape is the whole document.
var planShape = shape{Kind: object, Want: "a plan: an object with the fields schema and proposals", Fields: []field{
	document.Required("schema", &shape{Kind: text, Max: 64, Choice: []string{proposal.PlanSchema},
		Want: strconv.Quote(proposal.PlanSchema),
		Doc:  "The version of this format."}),
	document.Optional("proposer", &shape{Kind: text, Max: 128, Scalar: true,
		Doc: "Who made the plan, for the report. It has no effect on decisions."}),
	document.Required("proposals", &shape{Kind: list, Max: maxProposals, Items: &proposalShape,
		Doc: "What to run, in this order."}),
}}

var proposalShape = shape{Kind: object, Want: "a proposal: an object with an id and one of run, argv and code",
	Extra: oneForm, Fields: []field{
		document.Required("id", document.ID("A name for this proposal, unique in the plan.")),
		document.Optional("run", document.ShellText("Shell text.")),
		document.Optional("argv", document.ArgvShape("A program and its arguments, started without a shell. At most 131072 bytes together.")),
		document.Optional("code", &shape{Kind: text, Max: document.MaxCode, Lines: true, Verbatim: true,
			Doc: "A snippet in the given language."}),
		document.Optional("language", &shape{Kind: text, Max: 64,
			Choice: []string{"python", "javascript", "bash", "sh"},
			Want:   `one of "python", "javascript", "bash" and "sh"`, Doc: "The language of code."}),
		optionalBlank("why", &shape{Kind: text, Max: maxProse, Lines: true, Doc: "Why it should run, for people."}),
		optionalBlank("cwd", document.WorkspacePathShape("The working directory, relative to the workspace.")),
		optionalBlank("env", document.EnvShape("Requested environment variables.")),
		optionalBlank("stdin", &shape{Kind: text, Max: maxStdin, Lines: true, Verbatim: true,
			Doc: "The command's standard input."}),
		optionalBlank("timeout", document.DurationShape("The requested time limit.")),
		optionalBlank("limits", blankLimits()),
		optionalBlank("network", document.OneOrMore(document.NetworkShape("Requested hosts: a name, \"*.\" and a name for all names below it, either with \":\" and a port; an address, or an address and port; or \"registry:\" and one of "+strings.Join(document.Registries, ", ")+"."))),
		optionalBlank("phase", &shape{Kind: text, Max: 64, Choice: []string{proposal.PhaseSetup, proposal.PhaseRun},
			Want: `"setup" or "run"`,
			Doc:  "The phase; run if omitted. All proposals of setup run before the first of run."}),
		optionalBlank("outputs", document.OneOrMore(document.ListOf(document.WorkspacePathShape(""),
			"Files to export: paths or globs, relative to the workspace."))),
		optionalBlank("needs", document.OneOrMore(document.ListOf(neededID(),
			"Ids of proposals that run earlier and must succeed first."))),
		optionalBlank("expect", &shape{Kind: text, Max: maxProse, Lines: true,
			Doc: "The expected outcome, shown next to the actual one."}),
		optionalBlank(fieldSandbox, &shape{Kind: boolean, Doc: "Request a new sandbox."}),
		optionalBlank("cache", &shape{Kind: boolean,
			Doc: "Request the result of an earlier run with the same inputs, if policy calls the command deterministic and results are kept."}),
	}}

func neededID() *shape {
	s := document.ID("")
	s.Want = `an id, or a list of ids such as ["build", "unit"]`
	return s
}

// envelope is planShape without its proposals, each of which is checked on its own.
var envelope = withLooseList(planShape, "proposals")

// withLooseList returns s with a list called name whose items can be anything.
func withLooseList(s shape, name string) shape {
	s.Fields = slices.Clone(s.Fields)
	for i, f := range s.Fields {
		if f.Name == name {
			list := *f.Shape
			list.Items = &shape{Kind: document.Any}
			s.Fields[i].Shape = &list
		}
	}
	return s
}

// optionalBlank returns an optional field whose value may be null or empty, which means that it is
// left out: models whose output must fit a schema give every field.
func optionalBlank(name string, s *shape) field {
	s.Blank = true
	return document.Optional(name, s)
}

func blankLimits() *shape {
	s := document.LimitsShape()
	for _, f := range s.Fields {
		f.Blank = true
	}
	return s
}

// fieldSandbox requests a new sandbox. Reports, logs and policy input call it fresh.
const fieldSandbox = "new-sandbox"

// oneForm adds to the schema that exactly one of run, argv and code is given.
func oneForm(schema map[string]any) {
	schema["oneOf"] = []map[string]any{{"required": []string{"run"}}, {"required": []string{"argv"}},
		{"required": []string{"code"}}}
	schema["dependentRequired"] = map[string][]string{"code": {"language"}, "language": {"code"}}
}
