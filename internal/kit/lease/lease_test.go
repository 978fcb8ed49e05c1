// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/kit/lease/leasetest"
)

const prefix = "lease-"

// No process loses its directory to the others, and no abandoned one remains.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	leasetest.RunTogether(t, dir, func(turn leasetest.Turn) error {
		lease.Sweep(turn.Dir, prefix, (*lease.Dir).Remove)
		d, err := lease.Make(turn.Dir, prefix)
		if err != nil {
			return err
		}
		file := filepath.Join(d.Path, "file")
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			return err
		}
		lease.Sweep(turn.Dir, prefix, (*lease.Dir).Remove)
		if _, err := os.Stat(file); err != nil {
			return err
		}
		if turn.ShouldAbandon() {
			return d.Close()
		}
		return d.Remove()
	})
	lease.Sweep(dir, prefix, (*lease.Dir).Remove)
	wantEntries(t, dir)
}

// Make returns a directory that stays, although sweepers remove most of them before they
// are locked.
func TestMakeAmongSweepers(t *testing.T) {
	lanetest.SkipShort(t)
	dir := t.TempDir()
	var sweepers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		sweepers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					lease.Sweep(dir, prefix, (*lease.Dir).Remove)
				}
			}
		})
	}
	for range 200 {
		d, err := lease.Make(dir, prefix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.Path, "file"), nil, 0o600); err != nil {
			t.Fatalf("a directory was lost: %v", err)
		}
		if err := d.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	sweepers.Wait()
	wantEntries(t, dir)
}

// A killed process abandons its directory with everything in it.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("LEASE_TEST_HOLD"); dir != "" {
		d, err := lease.Make(dir, prefix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(d.Path, "a/b"), 0o700); err != nil {
			t.Fatal(err)
		}
		defer d.Close() // keeps d, whose lock would go with it
		os.Stdout.WriteString("held\n")
		select {}
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "LEASE_TEST_HOLD="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	lease.Sweep(dir, prefix, (*lease.Dir).Remove)
	if left := entries(t, dir); len(left) != 1 {
		t.Errorf("while the process lives there are %q, want one directory", left)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	lease.Sweep(dir, prefix, (*lease.Dir).Remove)
	wantEntries(t, dir)
}

// Anything that other users may leave in a shared directory is neither removed nor
// followed, and does not stop a sweep.
func TestSweepAmongTricks(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	mkdir := func(name string, mode os.FileMode) {
		t.Helper()
		err := errors.Join(os.Mkdir(path(name), 0o700), os.WriteFile(filepath.Join(path(name), "file"), nil, 0o600), os.Chmod(path(name), mode))
		if err != nil {
			t.Fatal(err)
		}
	}
	mkdir("other", 0o700)
	mkdir("lease-foreign", 0o700)
	mkdir("lease-open", 0o777)
	mkdir("lease-abandoned", 0o700)
	err := errors.Join(
		os.Lchown(path("lease-foreign"), 65534, 65534),
		os.Symlink("other", path("lease-link")),
		os.Symlink("lease-open", path("lease-loop")),
		os.WriteFile(path("lease-file"), nil, 0o600),
		syscall.Mkfifo(path("lease-fifo"), 0o666), // its open would block
		os.Symlink("../other", filepath.Join(path("lease-abandoned"), "link")),
	)
	if err != nil {
		t.Fatal(err)
	}
	lease.Sweep(dir, prefix, (*lease.Dir).Remove)
	wantEntries(t, dir, "lease-fifo", "lease-file", "lease-foreign", "lease-link", "lease-loop", "lease-open", "other")
	wantEntries(t, path("other"), "file")
	wantEntries(t, path("lease-open"), "file")
	wantEntries(t, path("lease-foreign"), "file")
}

// Remove removes the locked directory, even if its name belongs to another one by then.
func TestRemoveAfterRename(t *testing.T) {
	dir := t.TempDir()
	d, err := lease.Make(dir, prefix)
	if err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(dir, "precious")
	err = errors.Join(os.WriteFile(filepath.Join(d.Path, "mine"), nil, 0o600), os.Mkdir(precious, 0o700),
		os.WriteFile(filepath.Join(precious, "file"), nil, 0o600),
		os.Rename(d.Path, filepath.Join(dir, "moved")), os.Rename(precious, d.Path))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("err = %v, want that the directory of that name is not empty", err)
	}
	wantEntries(t, d.Path, "file")
	wantEntries(t, filepath.Join(dir, "moved"))
}

func TestTake(t *testing.T) {
	dir := t.TempDir()
	d, err := lease.Make(dir, prefix)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Take(d.Path); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("held: %v", err)
	}
	if _, err := lease.Share(d.Path); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("shared: %v", err)
	}
	if _, err := lease.Take(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	one, err := lease.Share(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	two, err := lease.Share(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	one.Close()
	if _, err := lease.Take(d.Path); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("while one shares: %v", err)
	}
	two.Close()
	again, err := lease.Take(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Remove(); err != nil {
		t.Error(err)
	}
}

// Make reports why it failed, and leaves nothing behind.
func TestMakeFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := lease.Make(filepath.Join(dir, "none"), prefix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no parent: %v", err)
	}
	if _, err := lease.Make("/proc", prefix); err == nil {
		t.Error("made a directory in /proc")
	}
	wantEntries(t, dir)
}

// The path is the real one, even if the parent's name is a link.
func TestMakeThroughLink(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	d, err := lease.Make(link, prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Remove()
	info, err := os.Stat(d.Path)
	if err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("%v, %v; want a directory for this user alone", info, err)
	}
	if real, err := filepath.EvalSymlinks(dir); err != nil || filepath.Dir(d.Path) != real {
		t.Errorf("path %q, want it in %q (%v)", d.Path, real, err)
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range list {
		names = append(names, x.Name())
	}
	return names
}

func wantEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := entries(t, dir); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", filepath.Base(dir), got, want)
	}
}
