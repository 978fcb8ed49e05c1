// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/author/doctor"
)

// What Install has written is accepted, and nothing else.
func TestCheckInstalled(t *testing.T) {
	root := open(t)
	version, _, err := Install(t.Context(), Options{From: release(t, "one"), Root: root})
	if err != nil {
		t.Fatal(err)
	}
	program, dropIn := filepath.Join(version, doctor.Shim), filepath.Join(root, doctor.DropIn)
	if k := checkVersion(t.Context(), filepath.Join(root, version)); k.State != doctor.OK {
		t.Errorf("%+v", k)
	}
	if k := checkDropIn(dropIn, program); k.State != doctor.OK {
		t.Errorf("%+v", k)
	}
	text, err := os.ReadFile(dropIn)
	if err != nil {
		t.Fatal(err)
	}
	for change, want := range map[string]string{
		string(text) + "\nx": "line 13", strings.Replace(string(text), "/usr/local", "/opt", 1): `runtime_path is "/opt`,
		strings.Replace(string(text), "fumehood]", "other]", 1): `runtime_path is ""`, "version = \"three\"": "incompatible types",
	} {
		write(t, dropIn, change)
		if k := checkDropIn(dropIn, program); k.State != doctor.Missing || !strings.Contains(k.Detail, want) {
			t.Errorf("%q: %+v, want %s", change, k, want)
		}
	}
	write(t, filepath.Join(root, program), "two")
	if k := checkVersion(t.Context(), filepath.Join(root, version)); k.State != doctor.Missing || !strings.Contains(k.Detail, "setup.changed") {
		t.Errorf("%+v", k)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

const dumped = `version = 4
imports = ['/etc/containerd/conf.d/*.toml']
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.fumehood]
runtime_type = 'io.containerd.fumehood.v1'
runtime_path = '/shim'
pod_annotations = ['fumehood.dev/*']
container_annotations = []
`

// The configuration that containerd prints must have the runtime, and says what reaches it.
func TestCheckContainerd(t *testing.T) {
	dir := open(t)
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	wantStates(t, "containerd unknown")
	for text, want := range map[string]string{
		dumped:                                   "containerd ok, annotations ok",
		strings.Replace(dumped, "= 4", "= 2", 1): "containerd missing",
		strings.Replace(dumped, "/shim", "/other", 1):          "containerd missing",
		strings.Replace(dumped, "fumehood.v1", "runc.v2", 1):   "containerd missing",
		strings.Replace(dumped, "fumehood]", "other]", 1):      "containerd missing",
		strings.Replace(dumped, "fumehood.dev/*", "", 1):       "containerd ok, annotations limited",
		strings.Replace(dumped, "[]", "['dev.gvisor.*']", 1):   "containerd ok, annotations limited",
		strings.Replace(dumped, "dev/*'", "dev/*', '*'", 1):    "containerd ok, annotations limited",
		"EOF\necho x >&2; exit 1 <<EOF\n":                      "containerd missing",
		"version =":                                            "containerd missing",
		strings.Repeat("# a comment of some length\n", 100000): "containerd missing",
	} {
		write(t, filepath.Join(dir, "containerd"), "#!/bin/sh\ncat <<EOF\n"+text+"EOF\n")
		wantStates(t, want)
	}
	if err := os.Chmod(filepath.Join(dir, "containerd"), 0o777); err != nil {
		t.Fatal(err)
	}
	wantStates(t, "containerd missing")
}

func wantStates(t *testing.T, want string) {
	t.Helper()
	var got []string
	for _, k := range checkContainerd(t.Context(), "/shim") {
		got = append(got, k.Name+" "+k.State)
		if k.Detail == "" || (k.Fix == "") != (k.State == doctor.OK) {
			t.Errorf("%+v", k)
		}
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("%q, want %s", got, want)
	}
}
