// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// layers makes an upper and a lower directory. The tests write to the upper one
// what an overlay would: a whiteout is a 0:0 character device, an opaque directory
// has an extended attribute. Both need root, as the sandbox does.
func layers(t *testing.T) (upper, lower string) {
	t.Helper()
	upper, lower = t.TempDir(), t.TempDir()
	write(t, lower, "a")
	write(t, lower, "d/b")
	write(t, lower, "d/c")
	return upper, lower
}

func write(t *testing.T, root, path string) {
	t.Helper()
	full := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(path), 0o644); err != nil {
		t.Fatal(err)
	}
}

func whiteout(t *testing.T, root, path string) {
	t.Helper()
	full := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(full); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(full, unix.S_IFCHR, 0); err != nil {
		t.Fatal(err)
	}
}

func TestChanges(t *testing.T) {
	upper, lower := layers(t)
	tree := newTree(upper, lower)
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"nothing", func() {}, nil},
		{"add", func() { write(t, upper, "n/x") }, []string{"added dir n", "added file n/x"}},
		{"again nothing", func() {}, nil},
		{"change", func() { write(t, upper, "a") }, []string{"changed file a"}},
		{"copied up directory", func() { write(t, upper, "d/b") }, []string{"changed file d/b"}},
		{"remove what was below", func() { whiteout(t, upper, "d/b") }, []string{"removed file d/b"}},
		{"remove what was added", func() { os.RemoveAll(filepath.Join(upper, "n")) }, []string{"removed dir n", "removed file n/x"}},
		{"bring back", func() { os.Remove(filepath.Join(upper, "d/b")); write(t, upper, "d/b") }, []string{"added file d/b"}},
		{"replace a directory", func() {
			os.RemoveAll(filepath.Join(upper, "d"))
			os.Mkdir(filepath.Join(upper, "d"), 0o755)
			if err := unix.Setxattr(filepath.Join(upper, "d"), "trusted.overlay.opaque", []byte("y"), 0); err != nil {
				t.Fatal(err)
			}
		}, []string{"removed file d/b", "removed file d/c"}},
	} {
		step.do()
		found, unseen := tree.look()
		if unseen != 0 {
			t.Errorf("%s: %d places unseen", step.name, unseen)
		}
		var got []string
		for _, c := range found {
			got = append(got, c.kind+" "+c.typ+" "+c.path)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// A path longer than the kernel accepts is counted, and the rest is still listed.
func TestChangesTooDeep(t *testing.T) {
	upper, lower := layers(t)
	write(t, upper, "a")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(upper)
	name := strings.Repeat("d", 200)
	for range 30 {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chdir(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chdir(here); err != nil {
		t.Fatal(err)
	}
	found, unseen := newTree(upper, lower).look()
	if unseen == 0 || len(found) == 0 || found[0].path != "a" {
		t.Errorf("%d found, %d unseen", len(found), unseen)
	}
}
