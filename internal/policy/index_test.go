// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A plainPoint is a point of the shipped policy as OPA itself compiles it.
func plainPoint(t testing.TB, name string) rego.PreparedEvalQuery {
	t.Helper()
	s, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := parseModules(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	l := &layer{name: s.Name, role: s.Role}
	_, counts := l.forLint(s, modules, false).Check()
	l.countRules(counts)
	return plainQuery(t, module.ForPoint(name, modules, module.NewGraph(modules)), l.pointQuery(name))
}

func plainQuery(t testing.TB, modules map[string]*ast.Module, query string) rego.PreparedEvalQuery {
	t.Helper()
	compiler := ast.NewCompiler().WithCapabilities(module.Capabilities()).WithStrict(true).WithDefaultRegoVersion(ast.RegoV1)
	if compiler.Compile(modules); compiler.Failed() {
		t.Fatal(compiler.Errors)
	}
	prepared, err := rego.New(rego.Compiler(compiler), rego.Query(query), rego.StrictBuiltinErrors(true)).PrepareForEval(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return prepared
}

// documents calls do with the documents that a text makes at a point.
func documents(t testing.TB, e *Engine, text, point string, do func(ast.Value)) {
	t.Helper()
	p := proposal.Proposal{ID: "t", Run: text}
	a := parse.Analyze(p)
	shared := termOf(reflect.ValueOf(e.proposalInput(p, a)))
	if point == module.PointProposal {
		do(e.commandDocument(shared, commandInput{}))
		return
	}
	for _, in := range e.describeCommands(p, a) {
		do(e.commandDocument(shared, in))
	}
}

func compiledAt(t testing.TB, l *layer, point string) rego.PreparedEvalQuery {
	t.Helper()
	c, err := l.points[point].compiled()
	if err != nil {
		t.Fatal(err)
	}
	return c.query
}

func answer(t testing.TB, q rego.PreparedEvalQuery, document ast.Value) any {
	t.Helper()
	rs, err := q.Eval(t.Context(), rego.EvalParsedInput(document), rego.EvalSortSets(true))
	if err != nil || len(rs) != 1 {
		return err
	}
	return rs[0].Bindings["result"]
}

// TestIndexChangesNoAnswer holds that each rule of the shipped policy says the same of
// every text of the corpus, whether it is compiled with our index or by OPA alone.
func TestIndexChangesNoAnswer(t *testing.T) {
	lanetest.SkipShort(t)
	e, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("../../testdata/corpus/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	plain := map[string]rego.PreparedEvalQuery{module.PointCommand: plainPoint(t, module.PointCommand), module.PointProposal: plainPoint(t, module.PointProposal)}
	var texts []string
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.Split(string(content), "\n---\n")...)
	}
	n, chosen := 0, sample.EveryNth(t, texts, 20, 70)
	for _, text := range chosen {
		for point, q := range plain {
			documents(t, e, text, point, func(document ast.Value) {
				n++
				if diff := cmp.Diff(answer(t, q, document), answer(t, compiledAt(t, e.layers[0], point), document)); diff != "" {
					t.Errorf("%q at %s: %s", text, point, diff)
				}
			})
		}
	}
	if len(texts) < 2000 || n < 2*len(chosen) {
		t.Errorf("only %d texts and %d documents", len(texts), n)
	}
}

// TestIndexReadsOnlyWhatHolds holds that a condition is added only where it follows.
func TestIndexReadsOnlyWhatHolds(t *testing.T) {
	const head = "package fumehood.command\n\nimport data.fumehood.lib\n\n"
	const deny = `deny contains {"rule": "x.x", "message": "m", "suggestion": "s"} if `
	for name, c := range map[string]struct {
		rules string
		input string // of the command
	}{
		"a table's name":               {deny + "input.command.program in lib.readers", `{"program": "cat"}`},
		"a table's name, not in it":    {deny + "input.command.program in lib.readers", `{"program": "nosuch"}`},
		"not":                          {deny + "not input.command.program in lib.readers", `{"program": "nosuch"}`},
		"not a key":                    {deny + "not table[input.command.program]\n\ntable := {\"cat\": 1}", `{"program": "go"}`},
		"a key":                        {deny + "table[input.command.program] == 2\n\ntable := {\"cat\": 1, \"go\": 2}", `{"program": "go"}`},
		"a local that shadows":         {deny + "{\n\tsome table in [{\"go\"}]\n\tinput.command.program in table\n}\n\ntable := {\"cat\"}\n\nother if input.command.program in table", `{"program": "go"}`},
		"in a comprehension":           {deny + "count([o | some o in input.command.options]) == 0", `{"program": "go"}`},
		"in every":                     {deny + "every o in input.command.options { o.name == \"x\" }", `{"program": "go"}`},
		"no such option":               {deny + "not input.command.options[0]", `{"program": "go"}`},
		"two rules of one name":        {deny + "input.command.program in table\n\ntable := {\"cat\"} if input.command.sub == \"x\"\n\ntable := {\"go\"} if input.command.sub == \"test\"", `{"program": "go", "sub": "test"}`},
		"else":                         {deny + "input.command.program in table\n\ntable := {\"cat\"} if input.command.sub == \"x\" else := {\"go\"}", `{"program": "go"}`},
		"a helper with else":           {deny + "helper == 2\n\nhelper := 1 if input.command.program in lib.readers else := 2", `{"program": "go"}`},
		"a set of sets":                {deny + "{input.command.program} in {{\"go\"}}", `{"program": "go"}`},
		"the empty set":                {deny + "input.command.program in (lib.readers - lib.readers)", `{"program": "cat"}`},
		"union":                        {deny + "input.command.program in (lib.readers | {\"go\"})", `{"program": "go"}`},
		"values of an object":          {deny + "input.command.program in {\"a\": \"go\"}", `{"program": "go"}`},
		"the value of a member":        {deny + "x := input.command.program in lib.readers\n\tx == false", `{"program": "go"}`},
		"operands, of which are two":   {deny + "{\n\tsome i, w in input.command.operands\n\ti == 1\n\tw.value == \"b\"\n}", `{"program": "go", "operands": [{"value": "a"}, {"value": "b"}]}`},
		"no member in a comprehension": {deny + "count([o | o := input.command.options[_]]) == 0", `{"program": "go", "options": []}`},
		"no key in a comprehension":    {deny + "count([1 | table[input.command.program]]) == 0\n\ntable := {\"cat\": 1}", `{"program": "go"}`},
		"a field by a variable":        {deny + "{\n\tsome k\n\tinput.command.script[k] == true\n}", `{"program": "go", "script": {"plain": true}}`},
		"a table on a condition":       {deny + "input.command.program in table\n\ntable := {\"go\"} if input.command.sub == \"x\"", `{"program": "go", "sub": "test"}`},
		"a table below a name":         {deny + "input.command.program in table\n\ntable.a := {\"go\"}", `{"program": "go"}`},
		"what two tables share":        {deny + "input.command.program in (lib.readers & {\"head\"})", `{"program": "cat"}`},
		"a text of two parts":          {deny + "input.command.program == concat(\"\", [\"g\", input.command.sub])", `{"program": "go", "sub": "o"}`},
		"keys of a second option":      {deny + "table[input.command.options[_].name] == 2\n\ntable := {\"cat\": 1, \"go\": 2}", `{"program": "go", "options": [{"name": "x"}, {"name": "go"}]}`},
		"a member of no list":          {deny + "\"a\" in input.command.argv", `{"program": "go", "argv": ["b", "a"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll(c.rules, "if x :=", "if {\n\tx :=")
			if text != c.rules {
				text += "\n}"
			}
			if !strings.Contains(text, "lib.") {
				text += "\n\nused if lib.readers"
			}
			s := Layer{Name: "x", Role: Restricts, Files: []File{{"x.rego", []byte(head + text)}, {"lib.rego", []byte("package fumehood.lib\n\nreaders := {\"cat\", \"head\"}\n")}}}
			modules, err := parseModules(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			l, err := compileLayer(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			document := ast.MustInterfaceToValue(map[string]any{"command": decoded(t, c.input)})
			plain := plainQuery(t, module.ForPoint(module.PointCommand, modules, module.NewGraph(modules)), l.pointQuery(module.PointCommand))
			if diff := cmp.Diff(answer(t, plain, document), answer(t, compiledAt(t, l, module.PointCommand), document)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func decoded(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
