// SPDX-License-Identifier: Apache-2.0

// Package opatest checks, in tests, that OPA's own tools accept a policy.
package opatest

import (
	"bytes"
	"path"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
)

// CheckClean fails t where `opa fmt` would change one of the files, and if `opa check --strict
// --capabilities` reports an error. Files whose names do not end in .rego are ignored.
func CheckClean(t testing.TB, capabilities []byte, files map[string][]byte) {
	t.Helper()
	c, err := ast.LoadCapabilitiesJSON(bytes.NewReader(capabilities))
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]*ast.Module{}
	for name, content := range files {
		if path.Ext(name) != ".rego" {
			continue
		}
		if formatted, err := format.Source(name, content); err != nil || !bytes.Equal(formatted, content) {
			t.Errorf("opa fmt would change %s: %v\n%s", name, err, formatted)
		}
		m, err := ast.ParseModuleWithOpts(name, string(content),
			ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: c, ProcessAnnotation: true})
		if err != nil {
			t.Fatal(err)
		}
		modules[name] = m
	}
	compiler := ast.NewCompiler().WithStrict(true).WithCapabilities(c)
	if compiler.Compile(modules); compiler.Failed() {
		t.Errorf("opa check --strict: %v", compiler.Errors)
	}
}
