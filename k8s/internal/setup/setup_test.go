// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/author/doctor"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// release returns a directory with a shim and the installation of this machine, and something else.
func release(t *testing.T, shim string) string {
	t.Helper()
	runsc, err := install.Find(t.Context(), install.Options{Build: true})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(open(t), "from")
	err = errors.Join(os.MkdirAll(dir, 0o755), copyAll(runsc.Files(), filepath.Dir(runsc.Path), dir),
		os.WriteFile(filepath.Join(dir, doctor.Shim), []byte(shim), 0o755), os.WriteFile(filepath.Join(dir, "other"), nil, 0o644), os.Mkdir(filepath.Join(dir, "more"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// open returns a directory that every user may enter.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func code(err error) string {
	var stopped *proposal.StopError
	if errors.As(err, &stopped) {
		return stopped.Code
	}
	return ""
}

// Two versions are beside each other, and containerd's configuration names the newer one.
func TestInstall(t *testing.T) {
	root := open(t)
	versions := map[string]bool{}
	for _, shim := range []string{"one", "two"} {
		from := release(t, shim)
		for i, want := range []bool{true, false} {
			version, changed, err := Install(t.Context(), Options{From: from, Root: root})
			if err != nil || changed != want {
				t.Fatalf("%d: %s, %t, %v", i, version, changed, err)
			}
			versions[version] = true
			text, err := os.ReadFile(filepath.Join(root, doctor.DropIn))
			if err != nil || !strings.Contains(string(text), `runtime_path = "`+version+"/"+doctor.Shim+`"`) {
				t.Errorf("%s, %v", text, err)
			}
			if got, err := os.ReadFile(filepath.Join(root, version, doctor.Shim)); string(got) != shim || err != nil {
				t.Errorf("%s, %v", got, err)
			}
			if found, err := install.Find(t.Context(), install.Options{Path: filepath.Join(root, version, runscName)}); err != nil {
				t.Errorf("%+v, %v", found, err)
			}
			if _, err := os.Lstat(filepath.Join(root, version, "other")); err == nil {
				t.Error("something else was copied")
			}
		}
	}
	left, err := os.ReadDir(filepath.Join(root, doctor.Versions))
	if len(versions) != 2 || len(left) != 2 || err != nil {
		t.Errorf("%v, %v, %v", versions, left, err)
	}
	for range 2 {
		if err := Remove(root); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{doctor.Versions, doctor.DropIn} {
		if _, err := os.Lstat(filepath.Join(root, path)); err == nil {
			t.Errorf("%s remains", path)
		}
	}
}

// What is incomplete, was changed, or could be changed by others is not installed.
func TestInstallRefuses(t *testing.T) {
	from, root := release(t, "one"), open(t)
	version, _, err := Install(t.Context(), Options{From: from, Root: root})
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(root, doctor.DropIn))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, version, doctor.Shim), []byte("evil"), 0o755); err != nil {
		t.Fatal(err)
	}
	shared := open(t)
	if err := errors.Join(os.MkdirAll(shared+doctor.Versions, 0o755), os.Chmod(shared+"/usr/local", 0o777)); err != nil {
		t.Fatal(err)
	}
	bare, linked := release(t, "one"), release(t, "one")
	if err := errors.Join(os.Remove(filepath.Join(bare, doctor.Shim)), os.Symlink("/etc/passwd", filepath.Join(linked, "gvisor-bin", "x"))); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"setup.changed": {From: from, Root: root}, "setup.shim": {From: bare, Root: root}, "setup.config": {From: from, Root: root, RunscConfig: "x"},
		"setup.write": {From: from, Root: shared}, install.CodeMissing: {From: t.TempDir(), Root: root}, install.CodeDigest: {From: linked, Root: root},
	} {
		if _, _, err := Install(t.Context(), o); code(err) != want {
			t.Errorf("%s: %v", want, err)
		}
	}
	if now, err := os.ReadFile(filepath.Join(root, doctor.DropIn)); string(now) != string(config) || err != nil {
		t.Errorf("the configuration has changed: %s, %v", now, err)
	}
}

// In a pod, the directory is a mount point, and what is above it may be read-only: it is emptied.
func TestRemoveMounted(t *testing.T) {
	for name, flags := range map[string]uintptr{"writable": 0, "read-only": unix.MS_REMOUNT | unix.MS_RDONLY} {
		root := t.TempDir()
		mount(t, root)
		dir := filepath.Join(root, doctor.Versions)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		mount(t, dir)
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "1.0.0"), 0o755), os.WriteFile(filepath.Join(dir, "1.0.0", "shim"), nil, 0o755)); err != nil {
			t.Fatal(err)
		}
		if flags != 0 {
			if err := unix.Mount("none", root, "tmpfs", flags, ""); err != nil {
				t.Fatal(err)
			}
		}
		if err := Remove(root); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}

// mount mounts an empty file system at dir until the test ends.
func mount(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}
