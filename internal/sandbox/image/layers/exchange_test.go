// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// exported is a directory of another user with the layer "a", and the file's name.
func exported(t *testing.T) (dir, file string) {
	t.Helper()
	s := testStore(t, 0)
	made := mustKeep(t, s, "a", strings.Repeat("content ", 4000))
	dir = t.TempDir()
	if err := os.Chown(dir, 1234, 1235); err != nil {
		t.Fatal(err)
	}
	if err := s.Export(made, dir); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, nameOf("a"))
}

// A layer leaves a store for another user's directory, and another store takes it from there.
func TestExchange(t *testing.T) {
	dir, file := exported(t)
	var st syscall.Stat_t
	if err := syscall.Stat(file, &st); err != nil || st.Uid != 1234 || st.Gid != 1235 || st.Mode&0o777 != 0o600 {
		t.Fatalf("%+v, %v", st, err)
	}
	parent := t.TempDir()
	s, err := OpenTemporary(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Import(dir, keyOf("b"), anyInputs); err != nil || mustGet(t, s, "b") != nil {
		t.Errorf("a key that is not there: %v", err)
	}
	if err := s.Import(filepath.Join(dir, "none"), keyOf("a"), anyInputs); err != nil || mustGet(t, s, "a") != nil {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := s.Import(dir, keyOf("a"), only(nil)); err != nil || mustGet(t, s, "a") != nil {
		t.Errorf("other inputs: %v", err)
	}
	for range 2 { // the second finds its own
		if err := s.Import(dir, keyOf("a"), anyInputs); err != nil {
			t.Fatal(err)
		}
	}
	l := mustGet(t, s, "a")
	if l == nil || l.Setup != keyOf("a") {
		t.Fatalf("imported %+v", l)
	}
	if err := s.Export(l.Info, dir); err != nil { // replaces the file
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("the directory has %v, %v", files, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := l.verifyImage(); err != nil {
		t.Errorf("the layer in use: %v", err)
	}
}

// THREATS 67, 68: nothing that a directory of others holds is used unless it is the layer for
// the key: it is refused when it is copied, or removed by Find, and what it names is not read.
func TestImportRefused(t *testing.T) {
	lanetest.SkipShort(t)
	for name, spoil := range map[string]func(t *testing.T, dir, file string) error{
		"poisoned": func(t *testing.T, _, file string) error {
			return edit(file, func(b []byte) []byte { b[100] ^= 1; return b })
		},
		"truncated": func(t *testing.T, _, file string) error {
			return edit(file, func(b []byte) []byte { return b[:len(b)-block] })
		},
		"cut to its last block": func(t *testing.T, _, file string) error {
			return edit(file, func(b []byte) []byte { return append(b[:block:block], b[len(b)-block:]...) })
		},
		"another key's": func(t *testing.T, _, file string) error {
			s := testStore(t, 0)
			mustKeep(t, s, "other", "x")
			return os.Rename(filepath.Join(s.dir, nameOf("other")), file)
		},
		"another key, and this one's name and size": func(t *testing.T, _, file string) error {
			return edit(file, func(b []byte) []byte { return bytes.Replace(b, []byte(keyOf("a")), []byte(keyOf("b")), 1) })
		},
		"empty":         func(t *testing.T, _, file string) error { return os.Truncate(file, 0) },
		"10 GB, sparse": func(t *testing.T, _, file string) error { return os.Truncate(file, 10<<30) },
		"sparse":        func(t *testing.T, _, file string) error { return os.Truncate(file, maxSize/block*block) },
		"a link":        func(t *testing.T, dir, file string) error { return relink(file, filepath.Join(dir, "real")) },
		"a link to root": func(t *testing.T, _, file string) error {
			return replaceWith(file, func() error { return os.Symlink("/etc/shadow", file) })
		},
		"a FIFO": func(t *testing.T, _, file string) error {
			return replaceWith(file, func() error { return unix.Mkfifo(file, 0o666) })
		},
		"a device": func(t *testing.T, _, file string) error {
			return replaceWith(file, func() error { return unix.Mknod(file, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) })
		},
		"a directory": func(t *testing.T, _, file string) error {
			return replaceWith(file, func() error { return os.Mkdir(file, 0o777) })
		},
		"a linked directory": func(t *testing.T, dir, _ string) error { return relink(dir, dir+"-real") },
	} {
		t.Run(name, func(t *testing.T) {
			dir, file := exported(t)
			if err := spoil(t, dir, file); err != nil {
				t.Fatal(err)
			}
			s := testStore(t, 0)
			err := s.Import(dir, keyOf("a"), anyInputs)
			if err != nil && code(err) != CodeExchange {
				t.Errorf("%v", err)
			}
			if name != "poisoned" && err == nil {
				t.Error("it was copied")
			}
			l, getErr := get(s, "a")
			if l != nil || err == nil && code(getErr) != CodeInvalid {
				t.Errorf("got %+v, %v", l, getErr)
			}
			if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// replaceWith puts something else in the place of file.
func replaceWith(file string, with func() error) error {
	if err := os.Remove(file); err != nil {
		return err
	}
	return with()
}

// relink moves from to to, and puts a link in its place.
func relink(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return os.Symlink(to, from)
}

func edit(file string, change func([]byte) []byte) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, change(data), 0o600)
}

// THREATS 67: root writes to a directory of others without following what is in it.
func TestExportFollowsNothing(t *testing.T) {
	s := testStore(t, 0)
	made := mustKeep(t, s, "a", "x")
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(elsewhere, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, nameOf("a"))
	for _, link := range []string{name, name + ".new"} {
		if err := os.Symlink(elsewhere, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Export(made, dir); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(elsewhere); err != nil || string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
	if err := relink(dir, dir+"-real"); err != nil {
		t.Fatal(err)
	}
	if err := s.Export(made, dir); code(err) != CodeExchange {
		t.Errorf("a linked directory: %v", err)
	}
}

// THREATS 81: a private layer is used by the temporary store that made it, and no other store
// makes, takes, leaves or keeps one.
func TestPrivateStays(t *testing.T) {
	private := Info{Setup: keyOf("a"), Run: "run-1", Private: true}
	kept, dir := testStore(t, 0), t.TempDir()
	if _, err := kept.Make(private, testInputs); code(err) != CodeWrite {
		t.Errorf("a kept store makes one: %v", err)
	}
	own, err := OpenTemporary(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	m, err := own.Make(private, testInputs)
	var made Info
	if err == nil {
		made, err = m.Keep()
	}
	if err != nil {
		t.Fatal(err)
	}
	if l := mustGet(t, own, "a"); l == nil || !l.Private {
		t.Fatalf("%+v", l)
	}
	if err := own.Export(made, dir); code(err) != CodeExchange {
		t.Errorf("it was left: %v", err)
	}
	name := nameOf("a")
	data, err := os.ReadFile(filepath.Join(own.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{dir, kept.dir} {
		if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other, err := OpenTemporary(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Import(dir, keyOf("a"), anyInputs); code(err) != CodeExchange || mustGet(t, other, "a") != nil {
		t.Errorf("it was taken: %v", err)
	}
	if l, err := get(kept, "a"); l != nil || code(err) != CodeInvalid {
		t.Errorf("a kept store has it: %v", err)
	}
}
