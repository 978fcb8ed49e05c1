// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fumehood/fumehood/internal/egress/registry"
	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// same compares configurations without the positions in the file.
var same = cmp.Options{cmpopts.IgnoreUnexported(Config{}), cmpopts.IgnoreFields(Config{}, "Digest")}

func mustDecode(t testing.TB, data, name string) Config {
	t.Helper()
	c, problems := Decode([]byte(data), name)
	if len(problems) > 0 {
		t.Fatal(Describe(name, problems[0]))
	}
	return c
}

const full = `schema: fumehood.config/v1
setup:
  - npm ci
  - argv: [make, "-C", fixtures]
    cwd: web
    env: {CI: "1"}
    network: ["registry:npm"]
    timeout: 5m
registries: [npm, pypi]
rootfs: dir:/opt/root
tools: [/opt/sdk/bin]
services: [postgres, redis]
limits:
  memory: 4GiB
  cpus: 2
timeout: 15m
policy: .github/policy
cache: false
checkout: {submodules: true, lfs: true}
`

func TestDecode(t *testing.T) {
	want := Config{
		Schema: Schema,
		Setup: Setup{Mode: Listed, Commands: []Command{
			{Run: "npm ci"},
			{Argv: []string{"make", "-C", "fixtures"}, Cwd: "web", Env: map[string]string{"CI": "1"}, Network: []string{"registry:npm"}, Timeout: proposal.Duration(5 * time.Minute)},
		}},
		Registries: Registries{Listed: true, Names: []string{"npm", "pypi"}},
		Rootfs:     "dir:/opt/root", Tools: []string{"/opt/sdk/bin"}, Services: []string{"postgres", "redis"},
		Limits:  &proposal.Limits{Memory: 4 << 30, CPUs: 2},
		Timeout: proposal.Duration(15 * time.Minute), Policy: ".github/policy",
		Cache: Cache{Off: true}, Checkout: Checkout{Submodules: true, LFS: true},
	}
	got := mustDecode(t, full, Path)
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(got.Digest, "sha256:") || len(got.Digest) != len("sha256:")+64 {
		t.Errorf("digest %q", got.Digest)
	}
	step := got.Setup.Commands[1].Proposal("setup-2")
	if step.Phase != proposal.PhaseSetup || step.ID != "setup-2" || step.Form() != "argv" {
		t.Errorf("proposal %+v", step)
	}
}

// Words, booleans and a file with the schema alone.
func TestDecodeWords(t *testing.T) {
	for text, want := range map[string]Config{
		"":                             {},
		"setup: auto":                  {},
		"setup: none":                  {Setup: Setup{Mode: None}},
		"registries: auto":             {},
		"registries: none":             {Registries: Registries{Listed: true}},
		"rootfs: host":                 {Rootfs: "host"},
		"cache: true":                  {},
		"cache: false":                 {Cache: Cache{Off: true}},
		"layers: true":                 {Layers: new(true)},
		"layers: false":                {Layers: new(false)},
		"setup: [\"go mod download\"]": {Setup: Setup{Mode: Listed, Commands: []Command{{Run: "go mod download"}}}},
	} {
		want.Schema = Schema
		if diff := cmp.Diff(want, mustDecode(t, "schema: fumehood.config/v1\n"+text, Path), same); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	json := `{"schema": "fumehood.config/v1", "setup": "none"}`
	if c := mustDecode(t, json, ""); c.Setup.Mode != None {
		t.Errorf("JSON: %+v", c)
	}
}

// The zero Config is the strictest one.
func TestZero(t *testing.T) {
	var c Config
	e, err := MergeOverrides(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range e.Values {
		if v.Source.String() != "default" {
			t.Errorf("%s comes from %s", v.Field, v.Source)
		}
	}
	if c.Setup.Mode != Auto || c.Cache.Off || !c.Registries.Allow("npm") || e.Config.Policy != "" {
		t.Errorf("%+v", c)
	}
}

func TestAllow(t *testing.T) {
	listed := Registries{Listed: true, Names: []string{"npm"}}
	if !listed.Allow("npm") || listed.Allow("go") || (Registries{Listed: true}).Allow("npm") {
		t.Error("a list must allow its names only")
	}
}

// A rejected file leaves nothing that could be used.
func TestRejectedIsZero(t *testing.T) {
	got, problems := Decode([]byte("schema: fumehood.config/v1\nsetup: none\nx: 1\n"), Path)
	if len(problems) == 0 {
		t.Fatal("accepted")
	}
	want := Config{Digest: got.Digest}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each file in testdata/bad has its problems next to it, one per line, in a file of the
// same name plus .out.
func TestReject(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		_, problems := Decode(golden.Read(t, file), file)
		if len(problems) == 0 {
			t.Errorf("%s is accepted", file)
		}
		var out bytes.Buffer
		for _, p := range problems {
			fmt.Fprintln(&out, Describe(filepath.Base(file), p))
		}
		golden.Compare(t, file+".out", out.Bytes())
	}
}

func TestRejectSizes(t *testing.T) {
	deep := "schema: fumehood.config/v1\nsetup: " + strings.Repeat("[", 40) + strings.Repeat("]", 40)
	for name, text := range map[string]string{
		"document": "schema: fumehood.config/v1\n#" + strings.Repeat("x", MaxDocument),
		"depth":    deep,
		"commands": "schema: fumehood.config/v1\nsetup:\n" + strings.Repeat("  - ls\n", MaxCommands+1),
		"command":  "schema: fumehood.config/v1\nsetup: [\"" + strings.Repeat("x", document.MaxShellText+1) + "\"]",
		"alias":    "schema: fumehood.config/v1\nsetup: &a [ls]\nservices: *a\n",
	} {
		if _, problems := Decode([]byte(text), Path); len(problems) == 0 {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Registries are those that the gateway knows.
func TestRegistriesAreTheGateways(t *testing.T) {
	want, got := slices.Sorted(slices.Values(registry.Names())), slices.Sorted(slices.Values(document.Registries))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-gateway +documents):\n%s", diff)
	}
}
