// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"io/fs"
	"path"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/fumehood/fumehood/policies"
)

// TestRego runs the policy's own tests, in Rego.
func TestRego(t *testing.T) {
	modules := map[string]*ast.Module{}
	err := fs.WalkDir(policies.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".rego" {
			return err
		}
		content, err := fs.ReadFile(policies.FS, name)
		if err != nil {
			return err
		}
		modules[name], err = ast.ParseModuleWithOpts(name, string(content), ast.ParserOptions{RegoVersion: ast.RegoV1})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	results, err := tester.NewRunner().SetModules(modules).SetDefaultRegoVersion(ast.RegoV1).RunTests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for r := range results {
		ran++
		if !r.Pass() {
			t.Errorf("%s.%s: %v", r.Package, r.Name, r.Error)
		}
	}
	if ran < 12 {
		t.Errorf("only %d Rego tests ran", ran)
	}
}
