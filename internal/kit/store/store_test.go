// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

func keyOf(n int) string { return fmt.Sprintf("%064x", n) }

func open(t *testing.T, dir string, max int64) *Store {
	t.Helper()
	s, err := Open(dir, max)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(s *Store, key, text string) error {
	return s.Put(key, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
}

func get(s *Store, key string) (string, error) {
	f, err := s.Get(key)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), err
}

func TestPutGet(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s"), 100)
	if _, err := get(s, keyOf(1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty store has an entry: %v", err)
	}
	for _, text := range []string{"one", "another"} {
		if err := put(s, keyOf(1), text); err != nil {
			t.Fatal(err)
		}
		if got, err := get(s, keyOf(1)); got != text || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := s.Remove(keyOf(1)); err != nil {
		t.Error(err)
	}
	if list, err := s.List(); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	for _, key := range []string{"", "lock", "../" + keyOf(1), strings.ToUpper(keyOf(10)), keyOf(1) + "0"} {
		if put(s, key, "x") == nil || s.Remove(key) == nil {
			t.Errorf("key %q is accepted", key)
		}
		if _, err := s.Get(key); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("key %q is looked up: %v", key, err)
		}
	}
}

// The entries that were not used for the longest time are removed first.
func TestBounds(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s"), 10)
	for n := range 3 {
		if err := put(s, keyOf(n), "123"); err != nil {
			t.Fatal(err)
		}
		past := time.Now().Add(time.Duration(n-10) * time.Minute)
		if err := s.dir.Chtimes(keyOf(n), past, past); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := get(s, keyOf(0)); err != nil { // the oldest is used
		t.Fatal(err)
	}
	if err := put(s, keyOf(3), "123"); err != nil {
		t.Fatal(err)
	}
	for n, there := range []bool{true, false, true, true} {
		if _, err := get(s, keyOf(n)); (err == nil) != there {
			t.Errorf("entry %d: %v", n, err)
		}
	}
	if err := put(s, keyOf(0), "12345678901"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("larger than the store: %v", err)
	}
	if got, err := get(s, keyOf(0)); got != "123" || err != nil {
		t.Errorf("a failed Put changed the entry: %q, %v", got, err)
	}
	if err := s.PruneTo(3); err != nil {
		t.Error(err)
	}
	if list, err := s.List(); len(list) != 1 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// A failed Put leaves nothing, and files of ended processes are removed.
func TestUnfinished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s := open(t, dir, 10)
	broken := errors.New("broken")
	if err := s.Put(keyOf(1), func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if found, _ := os.ReadDir(dir); len(found) > 0 {
		t.Errorf("%v is left", found)
	}
	old := filepath.Join(dir, unfinished+"1-1")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-2 * abandoned)
	if err := errors.Join(os.Chtimes(old, past, past), put(s, keyOf(1), "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an abandoned file is left: %v", err)
	}
}

func TestForeignDirectory(t *testing.T) {
	parent := t.TempDir()
	wide, link, file := filepath.Join(parent, "wide"), filepath.Join(parent, "link"), filepath.Join(parent, "file")
	if err := errors.Join(os.Mkdir(wide, 0o755), os.Mkdir(filepath.Join(parent, "good"), 0o700), os.Symlink("good", link), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{wide, link, file, filepath.Join(parent, "none", "deep")} {
		if _, err := Open(dir, 10); err == nil {
			t.Errorf("%s is accepted", dir)
		}
	}
}

// What is not a file of this user with one name is not read.
func TestForeignEntry(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s := open(t, dir, 100)
	at := func(n int) string { return filepath.Join(dir, keyOf(n)) }
	if err := errors.Join(os.Symlink("/etc/hostname", at(1)), syscall.Mkfifo(at(2), 0o600), os.Mkdir(at(3), 0o700),
		os.WriteFile(at(4), nil, 0o600), os.Link(at(4), at(5)), os.WriteFile(at(6), nil, 0o600), os.Chmod(at(6), 0o622)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 6; n++ {
		if f, err := s.Get(keyOf(n)); err == nil {
			f.Close()
			t.Errorf("entry %d is read", n)
		}
	}
}

const helperDir = "FUMEHOOD_STORE_TEST"

// Processes that write, read and prune at the same time see only whole entries.
func TestProcesses(t *testing.T) {
	lanetest.SkipShort(t)
	if dir := os.Getenv(helperDir); dir != "" {
		work(t, dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "s")
	open(t, dir, 1<<20)
	all := make(chan error)
	const processes = 4
	for range processes {
		go func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), helperDir+"="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			all <- err
		}()
	}
	for range processes {
		if err := <-all; err != nil {
			t.Error(err)
		}
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, d := range found {
		info, err := d.Info()
		if err != nil || strings.HasPrefix(d.Name(), unfinished) {
			t.Errorf("%s is left, %v", d.Name(), err)
			continue
		}
		total += info.Size()
	}
	if total > 1<<20 || total == 0 {
		t.Errorf("the store has %d bytes", total)
	}
}

func work(t *testing.T, dir string) {
	s := open(t, dir, 1<<20)
	for i := range 200 {
		n := i % 10
		want := bytes.Repeat([]byte{byte('a' + n)}, 200<<10)
		if err := s.Put(keyOf(n), func(w io.Writer) error { _, err := w.Write(want); return err }); err != nil {
			t.Fatal(err)
		}
		got, err := get(s, keyOf((i+3)%10))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err == nil && (len(got) != len(want) || strings.Trim(got, got[:1]) != "") {
			t.Fatalf("a torn entry of %d bytes", len(got))
		}
	}
}

func TestFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		t.Fatalf("cannot mount a small file system (this test needs root): %v", err)
	}
	s := open(t, dir, 1<<20)
	t.Cleanup(func() { s.Close(); _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := put(s, keyOf(1), "small"); err != nil {
		t.Fatal(err)
	}
	if err := put(s, keyOf(1), strings.Repeat("x", 100<<10)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("full disk: %v", err)
	}
	if got, err := get(s, keyOf(1)); got != "small" || err != nil {
		t.Errorf("a full disk changed the entry: %q, %v", got, err)
	}
	if list, err := s.List(); len(list) != 1 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}
