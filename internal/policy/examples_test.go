// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/internal/policy/opatest"
	"github.com/fumehood/fumehood/policies"
)

// TestShippedPolicyPassesItsTests runs its tests in Rego and the examples in its METADATA
// by the runner that authors have. None must be forgotten: each point has as many rules
// with examples as it had, and rules about what is no command have both kinds.
func TestShippedPolicyPassesItsTests(t *testing.T) {
	lanetest.SkipShort(t)
	layer, err := policy.ShippedLayer()
	if err != nil {
		t.Fatal(err)
	}
	report, err := trial.Run(t.Context(), trial.Options{Tried: []policy.Layer{layer}, Analyse: analysis})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range report.Tests {
		if kinds[r.Kind]++; r.Status != trial.Passed {
			t.Errorf("%s:%d: %s %s: %s; got %s by %v", r.File, r.Line, r.Status, r.Name, r.Message, r.Got, r.Rules)
		}
	}
	if kinds[trial.KindRego] < 25 || kinds[trial.KindExample] < 1200 {
		t.Errorf("only %v tests ran", kinds)
	}
	if report.Coverage() < 85 {
		t.Errorf("tests reach only %.1f%% of the rules", report.Coverage())
	}
}

// TestOPATools: OPA's own tools accept the shipped policy and the examples, with the
// capabilities that policy authors have.
func TestOPATools(t *testing.T) {
	lanetest.SkipShort(t)
	capabilities, err := module.EditorCapabilities()
	if err != nil {
		t.Fatal(err)
	}
	layer, err := policy.ShippedLayer()
	if err != nil {
		t.Fatal(err)
	}
	layers := []policy.Layer{layer}
	for _, name := range []string{"company", "context", "hosts", "image", "registries", "snippets"} {
		l, err := policy.ReadDirectory("../../policies/examples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, l)
	}
	for _, l := range layers {
		files := map[string][]byte{}
		for _, f := range l.Files {
			files[f.Name] = f.Content
		}
		opatest.CheckClean(t, capabilities, files)
	}
}

// TestLinesAreShort: the policies that people read and copy have no line of more than 160
// characters, and no pattern of more than 100 in one piece.
func TestLinesAreShort(t *testing.T) {
	pattern, files := regexp.MustCompile("`[^`]{101,}`"), 0
	for _, dir := range []string{"../../policies", "../author/starter/kinds"} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".rego" {
				return err
			}
			content, err := os.ReadFile(name)
			files++
			for i, line := range strings.Split(string(content), "\n") {
				if n := utf8.RuneCountInString(line); n > 160 {
					t.Errorf("%s:%d: %d characters: break the line", name, i+1, n)
				}
				if pattern.MatchString(line) {
					t.Errorf("%s:%d: a pattern of more than 100 characters: write concat(\"\", […]) of its parts", name, i+1)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 150 {
		t.Errorf("only %d files", files)
	}
}

// Every rule has a title, and an example or a test that names it.
func TestRulesAreDescribed(t *testing.T) {
	var tests []byte
	files, err := filepath.Glob("../../policies/*/*_test.rego")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, text...)
	}
	rules := map[string]int{}
	for _, a := range annotations(t) {
		rule, _ := a.Custom["rule"].(string)
		if rule == "" {
			continue
		}
		point := path.Dir(a.Location.File)
		rules[point]++
		if a.Title == "" {
			t.Errorf("%s has no title", rule)
		}
		match, _ := a.Custom["match"].([]any)
		not, _ := a.Custom["not_match"].([]any)
		if !slices.Contains([]string{"command", "proposal"}, point) && (len(match) == 0 || len(not) == 0) {
			t.Errorf("%s lacks examples", rule)
		}
		if len(match)+len(not) == 0 && !bytes.Contains(tests, []byte(strconv.Quote(rule))) && !slices.Contains([]string{"grant.setup", "setup.registries"}, rule) {
			t.Errorf("%s has no example, and no _test.rego names it", rule)
		}
	}
	for point, least := range map[string]int{"command": 40, "proposal": 5, "trigger": 15, "exec": 11, "egress": 22, "event": 7, "output": 2, "snippet": 4} {
		if rules[point] < least {
			t.Errorf("%d rules of %s carry METADATA, want %d", rules[point], point, least)
		}
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
