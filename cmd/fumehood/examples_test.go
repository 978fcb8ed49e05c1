// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/pkg/plan"
)

// Every plan in an example workflow is valid, and the default policy allows it,
// with the values of a matrix filled in.
func TestExamplePlans(t *testing.T) {
	plans := 0
	for _, w := range workflows(t) {
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				text := strings.NewReplacer("${{ matrix.name }}", "unit", "${{ matrix.command }}", "npm test").Replace(step.With["plan"])
				if !step.fumehood() || text == "" || strings.HasPrefix(text, "${{ ") {
					continue
				}
				plans++
				if document, inline := (action.Inputs{Plan: text}).PlanDocument(); !inline || !bytes.Equal(document, []byte(text)) {
					t.Errorf("%s: %s: the plan is taken for a path", w.file, name)
				}
				wantAllowed(t, w.file+": "+name, text)
			}
		}
	}
	if plans < 4 {
		t.Errorf("found %d plans, the workflows have more", plans)
	}
}

// wantAllowed runs fumehood check on a plan.
func wantAllowed(t *testing.T, where, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := runCommandLine(t.Context(), []string{"check", "--plan", file}, nil, &out, &out); code != exitOK {
		t.Errorf("%s: fumehood check: exit code %d\n%s", where, code, &out)
	}
}

// The inputs in the workflows exist, and the binary accepts their values.
func TestExampleInputs(t *testing.T) {
	a := readAction(t)
	for _, w := range workflows(t) {
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				if !step.fumehood() {
					continue
				}
				given := map[string]string{}
				for name, value := range step.With {
					if _, declared := a.Inputs[name]; !declared {
						t.Errorf("%s gives input %s, which does not exist", w.file, name)
					}
					if !strings.HasPrefix(value, "${{") {
						given[inputVariable(name)] = value
					}
				}
				_, problems := action.ReadInputs(func(name string) string { return given[name] })
				for _, p := range problems {
					t.Errorf("%s: input %s %s", w.file, p.Input, p.Message)
				}
			}
		}
	}
}

// reviewers are the workflows in which an AI proposes, and the location of the
// schema that each gives its reviewer.
var reviewers = []struct {
	example, sample, input, pattern string
	strict                          bool // every property is required: OpenAI's rule
}{
	{"claude.yml", "claude.json", "claude_args", `(?s)--json-schema '(.*)'`, false},
	{"codex.yml", "codex.json", "output-schema", `(?s)^(.*)$`, true},
	{"review-claude.yml", "claude.json", "claude_args", `(?s)--json-schema '(.*)'`, false},
	{"review-codex.yml", "codex.json", "output-schema", `(?s)^(.*)$`, true},
}

// variants are values that a reviewer may give the fields of a proposal.
var variants = map[string][]string{
	"phase": {`"setup"`, `"run"`}, "needs": {`["a"]`, `[]`}, "timeout": {`"1m"`, `"5m"`, `"10m"`, `"20m"`},
	"limits":  {`{"memory":"1GiB"}`, `{"memory":"2GiB"}`, `{"memory":"4GiB"}`, `{"memory":"8GiB"}`},
	"outputs": {`["out.txt"]`, `["a/*.html","b"]`, `[]`}, "network": {`["example.com"]`, `["registry:npm"]`, `[]`},
	"why": {`"x"`, `""`}, "expect": {`"passes"`, `""`},
}

// A reviewerSchema is the JSON Schema that a workflow gives its reviewer.
type reviewerSchema struct {
	Type       any                       `json:"type"` // a name, or a list of them
	Enum       []any                     `json:"enum"`
	Properties map[string]reviewerSchema `json:"properties"`
	Required   []string                  `json:"required"`
	Additional *bool                     `json:"additionalProperties"`
	Items      *reviewerSchema           `json:"items"`
	Doc        string                    `json:"description"`
}

// check reports what structured output refuses: objects that allow other properties,
// keywords that are not supported, and for strict schemas properties that are not required.
func (s reviewerSchema) check(t *testing.T, path string, strict bool) {
	t.Helper()
	if len(s.Properties) > 0 && (s.Additional == nil || *s.Additional) {
		t.Errorf("%s allows additional properties", path)
	}
	for name, p := range s.Properties {
		if strict && !slices.Contains(s.Required, name) {
			t.Errorf("%s.%s is not required", path, name)
		}
		p.check(t, path+"."+name, strict)
	}
	if s.Items != nil {
		s.Items.check(t, path+"[]", strict)
	}
}

// answer is an answer with one proposal before another that has these fields, and null for
// each required one that is not given.
func (s reviewerSchema) answer(t *testing.T, fields map[string]string) []byte {
	t.Helper()
	one := s.Properties["proposals"].Items
	write := func(id string, fields map[string]string) string {
		all := maps.Clone(fields)
		for _, name := range one.Required {
			if _, given := all[name]; !given {
				all[name] = map[string]string{"id": `"` + id + `"`, "run": `"ls"`, "why": `"x"`, "expect": `"passes"`}[name]
			}
			all[name] = cmp.Or(all[name], "null")
		}
		var list []string
		for _, name := range slices.Sorted(maps.Keys(all)) {
			list = append(list, fmt.Sprintf("%q:%s", name, all[name]))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	first := map[string]string{}
	if fields["needs"] == `["a"]` && fields["phase"] == `"setup"` {
		first["phase"] = `"setup"`
	}
	return fmt.Appendf(nil, `{"schema":%q,"proposer":%q,"proposals":[%s,%s]}`,
		s.Properties["schema"].Enum[0], s.Properties["proposer"].Enum[0], write("a", first), write("b", fields))
}

// Every answer that a reviewer's schema allows is a plan, according to the
// published schema and to fumehood.
func TestReviewerPlans(t *testing.T) {
	published := schemaOf(t, jobtest.ReadFile(t, "../../testdata/schema/fumehood.plan.v1.json"))
	for _, r := range reviewers {
		t.Run(r.example, func(t *testing.T) {
			var w workflow
			readYAML(t, "../../.github/examples/"+r.example, &w)
			text := []byte(schemaText(t, w, r.input, r.pattern))
			own := schemaOf(t, text)
			sample := jobtest.ReadFile(t, "../../testdata/reviewer/"+r.sample)
			for name, s := range map[string]*jsonschema.Resolved{"given": own, "published": published} {
				if err := valid(s, sample); err != nil {
					t.Errorf("the sample answer is invalid by the %s schema: %v", name, err)
				}
			}
			for name, change := range map[string][2]string{
				"a field of its own": {`"why"`, `"sudo":true,"why"`}, "another schema": {"fumehood.plan/v1", "fumehood.plan/v2"}, "a field less": {`"why"`, `"expect"`},
			} {
				changed := bytes.Replace(sample, []byte(change[0]), []byte(change[1]), 1)
				if valid(own, changed) == nil {
					t.Errorf("the given schema allows %s", name)
				}
			}
			checkReviewerSchema(t, text, own, published, r.strict)
			p, problems := plan.Decode(sample, r.sample)
			if problems = append(problems, p.Refused()...); len(problems) > 0 || len(p.Proposals) == 0 || !strings.HasSuffix(p.Proposer, "-action") {
				t.Errorf("the sample answer is no plan: %v", problems)
			}
			if document, inline := (action.Inputs{Plan: string(sample)}).PlanDocument(); !inline || !bytes.Equal(document, sample) {
				t.Error("the sample answer is taken for a path")
			}
			wantAllowed(t, r.sample, string(sample))
		})
	}
}

// checkReviewerSchema checks that structured output accepts the schema, that it has the
// fields that the prompts explain, and that each answer that it allows, with every value of
// one field, with all of them and with none, is a plan with nothing to refuse.
func checkReviewerSchema(t *testing.T, text []byte, own, published *jsonschema.Resolved, strict bool) {
	t.Helper()
	var s reviewerSchema
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("a keyword that structured output may not support: %v", err)
	}
	s.check(t, "plan", strict)
	fields := slices.Sorted(maps.Keys(s.Properties["proposals"].Items.Properties))
	if diff := gocmp.Diff([]string{"expect", "id", "limits", "needs", "network", "outputs", "phase", "run", "timeout", "why"}, fields); diff != "" {
		t.Errorf("fields of a proposal (-want +got):\n%s", diff)
	}
	answers, all := []map[string]string{{}}, map[string]string{}
	for _, field := range fields {
		for _, value := range variants[field] {
			answers, all[field] = append(answers, map[string]string{field: value}), value
		}
	}
	for _, fields := range append(answers, all) {
		answer := s.answer(t, fields)
		for name, schema := range map[string]*jsonschema.Resolved{"given": own, "published": published} {
			if err := valid(schema, answer); err != nil {
				t.Errorf("the %s schema does not allow %s: %v", name, answer, err)
			}
		}
		p, problems := plan.Decode(answer, "plan.json")
		if problems = append(problems, p.Refused()...); len(problems) > 0 {
			t.Errorf("%s: %v", answer, problems)
		}
	}
}

func schemaText(t *testing.T, w workflow, input, pattern string) string {
	t.Helper()
	for _, step := range append(w.Jobs["review"].Steps, w.Jobs["propose"].Steps...) {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(step.With[input]); found != nil && step.With[input] != "" {
			return found[1]
		}
	}
	t.Fatalf("%s has no schema in %s", w.file, input)
	return ""
}

func schemaOf(t *testing.T, text []byte) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("cannot read schema: %v\n%s", err, text)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func valid(s *jsonschema.Resolved, document []byte) error {
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		return err
	}
	return s.Validate(v)
}

// The snippets in .github's pages are equal to the files that they quote, and the
// links lead to existing files.
func TestGitHubPages(t *testing.T) {
	pages := []string{"ai-reviewers.md", "RELEASING.md", "examples/README.md"}
	for _, page := range pages {
		path := filepath.Join("../../.github", page)
		text := string(jobtest.ReadFile(t, path))
		for _, found := range regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
			switch language, snippet := found[1], found[2]; language {
			case "json":
				p, problems := plan.Decode([]byte(snippet), page)
				if problems = append(problems, p.Refused()...); len(problems) > 0 {
					t.Errorf("%s: a plan that is none: %v\n%s", page, problems, snippet)
				}
			case "yaml":
				var v any
				if err := yaml.Unmarshal([]byte(snippet), &v); err != nil {
					t.Errorf("%s: %v\n%s", page, err, snippet)
				}
			default:
				t.Errorf("%s: no parser reads snippets of %s", page, language)
			}
		}
		for _, found := range regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), found[1])); err != nil {
				t.Errorf("%s: a link leads nowhere: %v", page, err)
			}
		}
	}
}
