// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxFindings is how many findings one document may hold.
const maxFindings = 100

// maxTests is how many tests a document of findings may name.
const maxTests = 10

// DecodeFindings reads what a reviewer claims about a pull request, as strictly as Decode
// reads plans: a document of the format fumehood.findings/v1.
//
//	schema: fumehood.findings/v1
//	findings:
//	  - id: off-by-one
//	    file: page.go
//	    line: 12
//	    severity: high
//	    claim: the last item of a page is lost
//	    reproducer:
//	      run: go test -run TestLastItem ./...
//	    suggestion: "\tend := start + size\n"
//
// A reproducer is written as a proposal of a plan, except for what orders, names or exports
// it. A finding with a mistake is Invalid, and keeps its ID if no earlier finding has that;
// the others are returned. Findings are returned only if there is no Problem.
func DecodeFindings(data []byte, name string) (proposal.ReviewFindings, []proposal.Problem) {
	rejected := proposal.ReviewFindings{Digest: document.Digest(data)}
	ps := problems{About: "file of findings"}
	root := document.Read(data, name, MaxDocument, &ps)
	if root != nil {
		document.Check(root, &findingsEnvelope, "", &ps)
		for i, t := range itemsOf(root, "tests") {
			checkForm(t, document.JoinIndex("tests", i), &ps)
		}
	}
	if len(ps.List) > 0 {
		return rejected, ps.SortedProblems()
	}
	return findingsOf(root, rejected.Digest), nil
}

var reproducerShape = shape{Kind: object, Want: "a command: an object with one of run, argv and code", Extra: oneForm,
	Fields: reproducerFields(),
	Doc:    "A command that fails where the claim is true, and succeeds where it is not."}

// reproducerFields are those of a proposal that say what runs.
func reproducerFields() (fields []field) {
	for _, f := range proposedFields() {
		switch f.Name {
		case "phase", "outputs", "cache", fieldSandbox:
		default:
			fields = append(fields, f)
		}
	}
	return fields
}

var findingShape = shape{Kind: object, Want: "a finding: an object with id, file, line and claim", Fields: []field{
	document.Required("id", document.ID("A name for this finding, unique in the document.")),
	document.Required("file", document.WorkspacePathShape("The file, relative to the repository's root.")),
	document.Required("line", lineShape("The line that the claim is about, or the last of several.")),
	blankField("start_line", lineShape("The first of several lines.")),
	blankField("side", &shape{Kind: text, Max: 64, Choice: []string{"head", "base"}, Want: `"head" or "base"`,
		Doc: "Whose lines are counted: the pull request's, which is the default, or those before it."}),
	blankField("severity", &shape{Kind: text, Max: 64, Choice: valid.Severities,
		Want: "one of " + strings.Join(valid.Severities, ", "), Doc: "How bad it is."}),
	document.Required("claim", &shape{Kind: text, Max: maxProse, Lines: true, Doc: "What is wrong, for people."}),
	blankField("reproducer", &reproducerShape),
	document.Optional("suggestion", &shape{Kind: text, Max: maxSuggestion, Lines: true, Empty: true,
		Doc: "What should replace the lines, each line ended by a newline; empty to remove them."}),
}}

const (
	maxSuggestion = 16 << 10
	maxLine       = 10_000_000
)

func lineShape(doc string) *shape {
	return &shape{Kind: number, Low: 1, High: maxLine, Integer: true, Want: "a line number from 1", Doc: doc}
}

func blankField(name string, s *shape) field {
	c := *s
	c.Blank = true
	return document.Optional(name, &c)
}

var findingsShape = shape{Kind: object, Want: "findings: an object with the fields schema and findings",
	Fields: []field{
		document.Required("schema", &shape{Kind: text, Max: 64, Choice: []string{proposal.FindingsSchema},
			Want: strconv.Quote(proposal.FindingsSchema),
			Doc:  "The version of this format."}),
		document.Optional("reviewer", &shape{Kind: text, Max: 128,
			Doc: "Who made the findings, for people. It has no effect."}),
		document.Required("findings", &shape{Kind: list, Max: maxFindings, Items: &findingShape, Blank: true,
			Doc: "The findings; an empty list if there are none."}),
		document.Optional("tests", &shape{Kind: list, Max: maxTests, Items: &reproducerShape,
			Doc: "Commands that must succeed after a suggestion, if they succeed before it."}),
	}}

// findingsEnvelope is findingsShape without its findings, each of which is checked on its own.
var findingsEnvelope = withLooseList(findingsShape, "findings")

// findingsOf converts a tree whose envelope has no problem.
func findingsOf(root *node, digest string) proposal.ReviewFindings {
	f := proposal.ReviewFindings{Schema: root.TextOf("schema"), Reviewer: root.TextOf("reviewer"), Digest: digest}
	c := newChecker(root.Get("findings").Items)
	for i, n := range c.items {
		f.Findings = append(f.Findings, c.convertFinding(i, n))
	}
	for i, t := range itemsOf(root, "tests") {
		p := proposalOf(t)
		p.ID = "test-" + strconv.Itoa(i+1)
		f.Tests = append(f.Tests, p)
	}
	return f
}

// convertFinding converts finding i, which has not been checked.
func (c *checker) convertFinding(i int, n *node) proposal.ReviewFinding {
	ps, path := &problems{About: "file of findings"}, document.JoinIndex("findings", i)
	document.Check(n, &findingShape, path, ps)
	if n.Kind == object {
		c.checkID(i, path, "findings", ps)
		checkRange(n, path, ps)
		if r := n.Get("reproducer"); r != nil && r.Kind == object && len(r.Members) > 0 {
			checkForm(r, document.JoinName(path, "reproducer"), ps)
		}
	}
	if list := ps.SortedProblems(); len(list) > 0 {
		return proposal.ReviewFinding{ID: c.ids[i],
			Invalid: &proposal.Invalid{Problems: list[:min(len(list), valid.MaxInvalid)], Text: n.String()}}
	}
	return findingOf(document.PruneBlank(n, &findingShape))
}

// checkRange requires that the first line is not after the last.
func checkRange(n *node, path string, ps *problems) {
	start, line := n.Get("start_line"), n.Get("line")
	if start != nil && line != nil && start.Kind == number && line.Kind == number &&
		document.IntOf(start) > document.IntOf(line) {
		ps.Add(start.At, document.JoinName(path, "start_line"), "is after line %d", document.IntOf(line))
	}
}

func findingOf(n *node) proposal.ReviewFinding {
	f := proposal.ReviewFinding{ID: n.TextOf("id"), File: n.TextOf("file"), Line: document.IntOf(n.Get("line")),
		Side:     n.TextOf("side"),
		Severity: n.TextOf("severity"), Claim: n.TextOf("claim")}
	if start := n.Get("start_line"); start != nil {
		f.Start = document.IntOf(start)
	}
	if r := n.Get("reproducer"); r != nil {
		p := proposalOf(r)
		p.ID = f.ID
		f.Reproducer = &p
	}
	if s := n.Get("suggestion"); s != nil {
		f.Suggestion = &s.Value
	}
	return f
}

// itemsOf returns the items of a list that may be missing.
func itemsOf(n *node, name string) []*node {
	if list := n.Get(name); list != nil {
		return list.Items
	}
	return nil
}
