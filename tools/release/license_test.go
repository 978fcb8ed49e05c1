// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

const testVersion = "v9.8.7"

// The licenses of all modules that the programs of a release link are there and known.
func TestLicenses(t *testing.T) {
	lanetest.SkipShort(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := []*debug.Module{{Path: "std", Version: strings.TrimPrefix(runtime.Version(), "go")}}
	for line := range strings.Lines(string(out)) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		modules = append(modules, &debug.Module{Path: path, Version: version})
	}
	l, err := releaseFlags{root: "../.."}.findLicenses(t.Context(), linked{"program": modules})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for name, ids := range l.ids {
		path, _, _ := strings.Cut(name, "@")
		got[path] = ids
	}
	for path, want := range map[string]string{"std": "BSD-3-Clause", "gvisor.dev/gvisor": "Apache-2.0 BSD-3-Clause MIT", "github.com/open-policy-agent/opa": "Apache-2.0", "go.yaml.in/yaml/v3": "Apache-2.0 MIT",
		"github.com/google/go-cmp": ""} {
		if ids := strings.Join(got[path], " "); ids != want {
			t.Errorf("%s: %q, want %q", path, ids, want)
		}
	}
	file := filepath.Join(t.TempDir(), "notices")
	if err := l.write(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name := range l.ids {
		if !strings.Contains(string(text), "\n"+name+"/") {
			t.Errorf("no notice of %s", name)
		}
	}
	for _, want := range []string{"tree-sitter-python", "Zachary Rice", "klauspost/compress@", "/zstd/internal/xxhash/LICENSE.txt\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the notices do not have %q", want)
		}
	}
	t.Logf("%d modules, %d texts, %d bytes", len(l.ids), len(l.texts), len(text))
}

// A module without a license, or with one that is not known, is refused.
func TestLicensesRefuse(t *testing.T) {
	const mit = "Permission is hereby granted, free of charge, to any person\nobtaining a copy of this software"
	for name, files := range map[string]map[string]string{
		"there is no license file":       {"NOTICE": "Copyright", "sub/LICENSE": mit, "license.go": mit},
		"no such file":                   nil,
		"is not a license that is known": {"LICENSE": mit, "COPYING": "All rights reserved."},
	} {
		dir := filepath.Join(t.TempDir(), "module")
		for file, text := range files {
			write(t, filepath.Join(dir, file), text, 0o644)
		}
		l := licenses{map[string][]string{}, map[string][]string{}}
		if err := l.addModule("example.com/x@v1.0.0", dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	for file, text := range map[string]string{"License.txt": mit, "NOTICE": "Copyright", "sub/COPYING": "of sub", "testdata/LICENSE": "a test", "LICENSE.docs": "of pages"} {
		write(t, filepath.Join(dir, file), text, 0o644)
	}
	l := licenses{map[string][]string{}, map[string][]string{}}
	if err := l.addModule("example.com/x@v1.0.0", dir); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, of := range l.texts {
		files = append(files, of...)
	}
	slices.Sort(files)
	want := []string{"example.com/x@v1.0.0/LICENSE.docs", "example.com/x@v1.0.0/License.txt", "example.com/x@v1.0.0/NOTICE", "example.com/x@v1.0.0/sub/COPYING"}
	if diff := cmp.Diff(want, files); diff != "" || !slices.Equal(l.ids["example.com/x@v1.0.0"], []string{"MIT"}) {
		t.Errorf("%v\n%s", l.ids, diff)
	}
}

// An archive has the notices of its programs' modules, and its bill of materials their licenses.
func TestArchiveHasNotices(t *testing.T) {
	lanetest.SkipShort(t)
	dir := t.TempDir()
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "amd64/program"), string(program), 0o755)
	o := releaseFlags{root: "../..", version: testVersion, progress: func(string) {}}
	lines, err := o.pack(t.Context(), filepath.Join(dir, "amd64"), filepath.Join(dir, "a.tar.gz"), "", []string{"program"})
	if err != nil || len(lines) != 2 {
		t.Fatalf("%q, %v", lines, err)
	}
	if out, err := exec.Command("tar", "-tzf", filepath.Join(dir, "a.tar.gz")).CombinedOutput(); err != nil || string(out) != "THIRD_PARTY_NOTICES\nprogram\n" {
		t.Errorf("%s, %v", out, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	libraries := 0
	for _, c := range b.Components {
		if c.Type == "library" {
			if libraries++; len(c.Licenses) == 0 || c.Licenses[0].License.ID == "" {
				t.Errorf("no license of %s", c.Name)
			}
		}
	}
	if libraries < 2 {
		t.Errorf("%d libraries", libraries)
	}
}
