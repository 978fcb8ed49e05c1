// SPDX-License-Identifier: Apache-2.0

package starter_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/open-policy-agent/opa/v1/tester"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/author/starter"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/opatest"
	"github.com/fumehood/fumehood/pkg/plan"
)

func TestDetectKinds(t *testing.T) {
	deep := fstest.MapFS{}
	for i := range 20_000 {
		deep[fmt.Sprintf("a/%05d", i)] = &fstest.MapFile{}
	}
	deep["z/go.mod"] = &fstest.MapFile{}
	for name, c := range map[string]struct {
		fsys fstest.MapFS
		want string
	}{
		"nothing":            {fstest.MapFS{"README.md": {}}, ""},
		"go":                 {fstest.MapFS{"go.mod": {}, "main.go": {}}, "go"},
		"mixed":              {fstest.MapFS{"go.mod": {}, "web/package.json": {}, "tools/py/setup.py": {}, "Makefile": {}}, "go make node python"},
		"too deep":           {fstest.MapFS{"a/b/c/Cargo.toml": {}}, ""},
		"two deep":           {fstest.MapFS{"a/b/Cargo.toml": {}}, "rust"},
		"other people's":     {fstest.MapFS{"node_modules/x/package.json": {}, "vendor/go.mod": {}, ".cache/pom.xml": {}, "testdata/go.mod": {}}, ""},
		"a folder":           {fstest.MapFS{"go.mod/x": {}}, ""},
		"a link":             {fstest.MapFS{"go.mod": {Mode: fs.ModeSymlink}}, ""},
		"too many to look":   {deep, ""},
		"java of two makers": {fstest.MapFS{"pom.xml": {}, "build.gradle.kts": {}}, "java"},
	} {
		if got := strings.Join(starter.DetectKinds(c.fsys), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestOPATools: OPA's own tools accept what is written, with the capabilities beside it,
// and run its tests.
func TestOPATools(t *testing.T) {
	repository := t.TempDir()
	wrote, err := starter.WritePolicy(repository, starter.PolicyKinds())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range wrote.Files {
		if files[name], err = os.ReadFile(filepath.Join(wrote.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	opatest.CheckClean(t, files[starter.PolicyCapabilities], files)
	var regal struct {
		Capabilities struct{ From struct{ File string } }
	}
	if err := yaml.Unmarshal(files[".regal/config.yaml"], &regal); err != nil || regal.Capabilities.From.File != filepath.Join(starter.PolicyDir, starter.PolicyCapabilities) {
		t.Errorf("regal's configuration: %v, %+v", err, regal)
	}
	results, err := tester.Run(t.Context(), wrote.Dir)
	if err != nil || len(results) < 2*len(starter.PolicyKinds()) {
		t.Fatalf("%d tests, %v", len(results), err)
	}
	for _, r := range results {
		if !r.Pass() {
			t.Error(r)
		}
	}
}

// What is written compiles beside the default policy, its cases decode, and no kind
// conflicts with another.
func TestPolicyFilesAreAPolicy(t *testing.T) {
	all := [][]string{nil, starter.PolicyKinds()}
	for _, kind := range starter.PolicyKinds() {
		all = append(all, []string{kind})
	}
	for _, kinds := range all {
		files, err := starter.PolicyFiles(kinds)
		if err != nil {
			t.Fatal(err)
		}
		layer := policy.Layer{Name: "starter"}
		for _, f := range files {
			layer.Files = append(layer.Files, policy.File{Name: f.Name, Content: f.Content})
			if f.Name != "cases.yaml" {
				continue
			}
			cases, problems := plan.DecodeCases(f.Content, f.Name)
			if len(problems) > 0 || len(cases) != 2+2*len(kinds) {
				t.Errorf("%v: %d cases, %v", kinds, len(cases), problems)
			}
		}
		if _, err := policy.New(t.Context(), policy.Options{Layers: []policy.Layer{layer}}); err != nil {
			t.Errorf("%v: %v", kinds, err)
		}
		if len(files) != 4+2*len(kinds) {
			t.Errorf("%v: %d files", kinds, len(files))
		}
	}
}

func TestPolicyFilesOfNoKind(t *testing.T) {
	for _, kinds := range [][]string{{"cobol"}, {"every"}, {"../go"}, {""}, {"go", "Go"}} {
		if _, err := starter.PolicyFiles(kinds); err == nil || !strings.Contains(err.Error(), "rust") {
			t.Errorf("%v: %v", kinds, err)
		}
	}
	twice, err := starter.PolicyFiles([]string{"go", "go"})
	if err != nil || slices.ContainsFunc(twice[1:], func(f starter.PolicyFile) bool { return f.Name == twice[0].Name }) {
		t.Errorf("a kind named twice: %v, %v", twice, err)
	}
}
