// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/fumehood/fumehood/k8s/internal/pod"
)

func written(t *testing.T, spec specs.Spec) string {
	t.Helper()
	dir := t.TempDir()
	data, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A container's command is started by init, and what could configure gVisor is gone.
func TestChange(t *testing.T) {
	dir := written(t, specs.Spec{Linux: &specs.Linux{}, Process: &specs.Process{Args: []string{"/app", "-v"}},
		Annotations: map[string]string{"dev.gvisor.spec.mount.x.type": "bind", "dev.gvisor.flag.network": "host", "fumehood.dev/policy": "sha256:1"}})
	b, err := readBundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.change("/opt/init"); err != nil {
		t.Fatal(err)
	}
	if b, err = readBundle(dir); err != nil {
		t.Fatal(err)
	}
	if want := []string{pod.Init, "exec", "/app", "-v"}; !slices.Equal(b.spec.Process.Args, want) {
		t.Errorf("%q", b.spec.Process.Args)
	}
	if len(b.spec.Annotations) != 1 || b.spec.Annotations["fumehood.dev/policy"] == "" {
		t.Errorf("%q", b.spec.Annotations)
	}
	last := b.spec.Mounts[len(b.spec.Mounts)-1]
	if last.Destination != pod.Init || last.Source != "/opt/init" || !slices.Contains(last.Options, "ro") {
		t.Errorf("%+v", last)
	}
}

// Mounts of the host are known by their source, those of other file systems have none.
func TestShows(t *testing.T) {
	dir := written(t, specs.Spec{Linux: &specs.Linux{}, Process: &specs.Process{Args: []string{"a"}}, Mounts: []specs.Mount{
		{Type: "proc", Source: "proc"}, {Type: "tmpfs", Source: "tmpfs"}, {Type: "bind", Source: "/a"}, {Source: "/b"}, {Type: "bind", Source: "c"}, {Type: "none", Source: "../d", Options: []string{"rbind"}}}})
	b, err := readBundle(dir)
	if want := []string{"/a", "/b", dir + "/c", filepath.Dir(dir) + "/d"}; err != nil || !slices.Equal(b.shows(), want) {
		t.Errorf("%q, want %q, %v", b.shows(), want, err)
	}
}

func TestChangeRefuses(t *testing.T) {
	for _, place := range []string{"/.fumehood", "/.fumehood/", "/.fumehood/init", "//.fumehood//init", "/x/../.fumehood/y", ".fumehood"} {
		b, err := readBundle(written(t, specs.Spec{Linux: &specs.Linux{}, Process: &specs.Process{Args: []string{"a"}}, Mounts: []specs.Mount{{Destination: place}}}))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.change("/opt/init"); err == nil || !strings.Contains(err.Error(), "pod.mount") {
			t.Errorf("%q: %v", place, err)
		}
	}
	for _, spec := range []specs.Spec{{}, {Linux: &specs.Linux{}, Process: &specs.Process{}}, {Process: &specs.Process{Args: []string{"a"}}}} {
		if _, err := readBundle(written(t, spec)); err == nil {
			t.Errorf("%+v is accepted", spec)
		}
	}
}

// Only what the CRI made is a container of a pod.
func TestPlace(t *testing.T) {
	for _, test := range []struct {
		kind, sandbox string
		first         bool
		err           bool
	}{{"sandbox", "", true, false}, {"sandbox", "other", true, false}, {"container", "pod", false, false}, {"container", "", false, true}, {"", "pod", false, true}, {"x", "pod", false, true}} {
		p, err := placeOf("/run/f", "k8s.io", "me", specs.Spec{Annotations: map[string]string{kindAnnotation: test.kind, sandboxAnnotation: test.sandbox}})
		if (err != nil) != test.err || p.first != test.first {
			t.Errorf("%+v: %+v, %v", test, p, err)
		}
		if test.first && p.dir != dirOf("/run/f", "k8s.io", "me") {
			t.Errorf("the directory of the pod is another container's: %s", p.dir)
		}
	}
}
