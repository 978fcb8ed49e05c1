// SPDX-License-Identifier: Apache-2.0

// Package pkg contains only tests of the layering and dependencies of the packages
// below it.
package pkg

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/fumehood/fumehood/"

// layers assigns each package to a layer. A package may import only packages of
// lower layers. A package that is not listed fails the test, so a new one must be
// assigned to a layer.
var layers = map[string]int{
	"cmd/fumehood": 7, "cmd/fumehood-runsc": 7, "cmd/fumehood-init": 7, "cmd/fumehood-release": 7, "tools": 7,

	"pkg/job": 6, "pkg/cli": 6,

	"pkg/evidence": 5, "pkg/replay": 5, "pkg/starter": 5, "pkg/mcpserver": 5, "pkg/session": 5, "pkg/e2b": 5, "pkg/review": 5, "pkg/pod": 5,

	"pkg/gate": 4, "pkg/report": 4, "pkg/comment": 4, "pkg/action": 4, "pkg/bot": 4, "pkg/export": 4,

	"pkg/key": 3,

	"pkg/plan": 2, "pkg/config": 2, "pkg/setup": 2, "pkg/parse": 2, "pkg/policy": 2, "pkg/rootfs": 2, "pkg/sandbox": 2, "pkg/audit": 2,
	"pkg/checkout": 2, "pkg/github": 2, "pkg/egress": 2, "pkg/snippet": 2, "pkg/redact": 2, "pkg/lineage": 2, "pkg/observe": 2, "pkg/baseline": 2, "pkg/process": 2, "pkg/health": 2, "pkg/results": 2,

	"pkg/diagnose": 1, "pkg/monitor": 1, "pkg/failure": 1, "pkg/image": 1, "pkg/journal": 1, "pkg/interpreter": 1, "pkg/claims": 1,

	"pkg/proposal": 0, "pkg/terminal": 0, "policies": 0,
}

// policyLayers is the order within pkg/policy.
var policyLayers = map[string]int{
	"pkg/policy/trial": 4,

	"pkg/policy/explain": 3, "pkg/policy/manual": 3, "pkg/policy/source": 3,

	"pkg/policy": 2,

	"pkg/policy/lint": 1,

	"pkg/policy/bounds": 0, "pkg/policy/facts": 0, "pkg/policy/module": 0, "pkg/policy/opatest": 0,
}

// only lists the packages of this module that only certain packages may import. For
// other modules, see CONTRIBUTING's table.
var only = map[string][]string{
	module + "pkg/monitor/sentry":               {"cmd/fumehood-runsc"},
	module + "pkg/sandbox/guest":                {"pkg/sandbox", "pkg/pod", "cmd/fumehood-init"},
	module + "pkg/sandbox/control":              {"pkg/sandbox", "pkg/pod"},
	module + "pkg/internal/golden":              {}, // tests only
	module + "pkg/internal/document/schematest": {}, // tests only
	module + "internal/jobtest":                 {}, // tests only
	module + "pkg/internal/testprogram":         {}, // tests only
	module + "pkg/session/conformance":          {}, // tests only
	module + "pkg/session/remote/certtest":      {}, // tests only
}

type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	list, err := listPackages()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	return list
}

var listPackages = sync.OnceValues(func() (list []goPackage, err error) {
	out, err := exec.Command("go", "list", "-tags", "e2e,nightly", "-json=ImportPath,Imports,TestImports,XTestImports", module+"...").Output()
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for decoder.More() {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
})

// parent returns a package's name in layers: sub-packages belong to their parent.
func parent(path string) string {
	path = strings.TrimPrefix(path, module)
	parts := strings.SplitN(path, "/", 3)
	if parts[0] == "pkg" || parts[0] == "cmd" {
		return strings.Join(parts[:min(2, len(parts))], "/")
	}
	return parts[0]
}

func TestLayers(t *testing.T) {
	list := packages(t)
	if len(list) < len(layers) {
		t.Fatalf("found %d packages, the table has %d", len(list), len(layers))
	}
	for _, p := range list {
		from := parent(p.ImportPath)
		if from == "pkg" || from == "pkg/internal" || from == "internal" {
			continue
		}
		if _, known := layers[from]; !known {
			t.Errorf("%s is in no layer: add it to layers", from)
			continue
		}
		for _, path := range p.Imports {
			checkLayer(t, from, path)
			checkOnly(t, from, path)
		}
	}
}

// Within pkg/policy imports go down only, too, and what is known of tools needs no OPA.
func TestPolicyLayers(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		if parent(p.ImportPath) != "pkg/policy" {
			continue
		}
		if _, known := policyLayers[from]; !known {
			t.Errorf("%s is in no layer: add it to policyLayers", from)
		}
		for _, path := range p.Imports {
			if layer, inside := policyLayers[strings.TrimPrefix(path, module)]; inside && layer >= policyLayers[from] {
				t.Errorf("%s imports %s: imports go down only", from, path)
			}
			if from == "pkg/policy/facts" && strings.HasPrefix(path, "github.com/open-policy-agent/") {
				t.Errorf("%s imports %s", from, path)
			}
		}
	}
}

func checkLayer(t *testing.T, from, path string) {
	t.Helper()
	if !strings.HasPrefix(path, module) {
		if from == "pkg/proposal" && strings.Contains(path, ".") {
			t.Errorf("%s imports %s: the lowest layer has the standard library only", from, path)
		}
		return
	}
	to := parent(path)
	if to == from || to == "pkg/internal" {
		return
	}
	// The exception: runsc's sink and the guest's init are linked into the programs
	// that run them.
	if slices.Contains([]string{"pkg/monitor", "pkg/sandbox"}, to) && strings.HasPrefix(from, "cmd/fumehood-") {
		return
	}
	if layers[to] >= layers[from] {
		t.Errorf("%s (layer %d) imports %s (layer %d): imports go down only", from, layers[from], to, layers[to])
	}
}

func checkOnly(t *testing.T, from, path string) {
	t.Helper()
	for prefix, importers := range only {
		if path != prefix && !strings.HasPrefix(path, prefix+"/") {
			continue
		}
		if !slices.Contains(importers, from) {
			t.Errorf("%s imports %s, which only %s may", from, path, strings.Join(importers, ", "))
		}
	}
}
