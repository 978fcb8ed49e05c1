// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/policies"
)

// TestRuleExamples runs the match and not_match examples that the rules about
// commands carry in their METADATA. A rule id that ends in a dot stands for all that
// begin with it.
func TestRuleExamples(t *testing.T) {
	e := shipped(t)
	rules := 0
	for _, a := range annotations(t) {
		rule, _ := a.Custom["rule"].(string)
		if rule == "" || isTrigger(a) || isExec(a) || isEgress(a) || isEvent(a) || isOutput(a) {
			continue
		}
		rules++
		speaks := func(text string) bool {
			return slices.ContainsFunc(decide(t, e, text).Rules, func(r string) bool {
				return r == rule || strings.HasSuffix(rule, ".") && strings.HasPrefix(r, rule)
			})
		}
		for _, text := range examples(t, a, "match") {
			if !speaks(text) {
				t.Errorf("%s does not match %q, rules: %v", rule, text, decide(t, e, text).Rules)
			}
		}
		for _, text := range examples(t, a, "not_match") {
			if speaks(text) {
				t.Errorf("%s matches %q", rule, text)
			}
		}
		if a.Title == "" {
			t.Errorf("%s has no title", rule)
		}
	}
	if rules < 40 {
		t.Errorf("only %d rules carry METADATA", rules)
	}
}

func examples(t *testing.T, a *ast.Annotations, key string) []string {
	t.Helper()
	list, _ := a.Custom[key].([]any)
	var texts []string
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			t.Fatalf("%v: %s holds %v", a.Custom["rule"], key, item)
		}
		texts = append(texts, text)
	}
	return texts
}

func annotations(t *testing.T) []*ast.Annotations {
	t.Helper()
	var all []*ast.Annotations
	err := fs.WalkDir(policies.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".rego" {
			return err
		}
		content, err := fs.ReadFile(policies.FS, name)
		if err != nil {
			return err
		}
		m, err := ast.ParseModuleWithOpts(name, string(content), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		if err != nil {
			return err
		}
		all = append(all, m.Annotations...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
