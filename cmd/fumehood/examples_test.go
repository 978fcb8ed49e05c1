// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/pkg/action"
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
				if !step.fumehood() || text == "" || strings.HasPrefix(text, "${{ needs.review.outputs.plan }}") {
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
	if code := run(t.Context(), []string{"check", "--plan", file}, nil, &out, &out); code != exitOK {
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
var reviewers = []struct{ example, sample, input, pattern string }{
	{"claude.yml", "claude.json", "claude_args", `(?s)--json-schema '(.*)'`},
	{"codex.yml", "codex.json", "output-schema", `(?s)^(.*)$`},
}

// optional are the fields that a reviewer may add to a proposal, each with an example.
var optional = map[string]string{
	"phase": `"setup"`, "needs": `["a"]`, "timeout": `"5m"`, "limits": `{"memory":"4GiB"}`, "outputs": `["out.txt"]`, "network": `["example.com"]`,
}

// Every answer that a reviewer's schema allows is a plan, according to the
// published schema and to fumehood.
func TestReviewerPlans(t *testing.T) {
	published := schemaOf(t, readFile(t, "../../testdata/schema/fumehood.plan.v1.json"))
	for _, r := range reviewers {
		t.Run(r.example, func(t *testing.T) {
			var w workflow
			readYAML(t, "../../.github/examples/"+r.example, &w)
			own := schemaOf(t, []byte(reviewerSchema(t, w, r.input, r.pattern)))
			sample := readFile(t, "../../testdata/reviewer/"+r.sample)
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
			for field, value := range optional {
				one := fmt.Appendf(nil, `{"schema":"fumehood.plan/v1","proposer":%q,"proposals":[{"id":"a","run":"ls","why":"x","expect":"passes"},{"id":"b","run":"ls","why":"x","expect":"passes",%q:%s}]}`,
					strings.TrimSuffix(r.example, ".yml"), field, value)
				one = bytes.Replace(one, []byte(`"claude"`), []byte(`"claude-code-action"`), 1)
				one = bytes.Replace(one, []byte(`"codex"`), []byte(`"codex-action"`), 1)
				if field == "phase" { // comes first in a plan
					one = bytes.Replace(one, []byte(`{"id":"a","run":"ls","why":"x","expect":"passes"},`), nil, 1)
				}
				if err := valid(own, one); err != nil {
					t.Errorf("the given schema does not allow %s: %v", field, err)
				}
				if err := valid(published, one); err != nil {
					t.Errorf("%s: %v", field, err)
				}
				if _, problems := plan.Decode(one, "plan.json"); len(problems) > 0 {
					t.Errorf("%s: %v", field, problems)
				}
			}
			p, problems := plan.Decode(sample, r.sample)
			if len(problems) > 0 || len(p.Proposals) == 0 || !strings.HasSuffix(p.Proposer, "-action") {
				t.Errorf("the sample answer is no plan: %v", problems)
			}
			if document, inline := (action.Inputs{Plan: string(sample)}).PlanDocument(); !inline || !bytes.Equal(document, sample) {
				t.Error("the sample answer is taken for a path")
			}
			wantAllowed(t, r.sample, string(sample))
		})
	}
}

func reviewerSchema(t *testing.T, w workflow, input, pattern string) string {
	t.Helper()
	for _, step := range w.Jobs["review"].Steps {
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
		text := string(readFile(t, path))
		for _, found := range regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
			switch language, snippet := found[1], found[2]; language {
			case "json":
				if _, problems := plan.Decode([]byte(snippet), page); len(problems) > 0 {
					t.Errorf("%s: a plan that is none: %v\n%s", page, problems, snippet)
				}
			case "yaml":
				var v any
				if err := yaml.Unmarshal([]byte(snippet), &v); err != nil {
					t.Errorf("%s: %v\n%s", page, err, snippet)
				}
			default:
				t.Errorf("%s: nobody reads snippets of %s", page, language)
			}
		}
		for _, found := range regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), found[1])); err != nil {
				t.Errorf("%s: a link leads nowhere: %v", page, err)
			}
		}
	}
}
