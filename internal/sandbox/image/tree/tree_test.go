// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/fumehood/fumehood/internal/sandbox/image"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) *FS {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	w, err := image.Create(path, image.Options{})
	must(t, err)
	for _, e := range []image.Entry{
		{Path: "usr/bin/tool", Mode: 0o755, Size: 4}, {Path: "usr/bin/again", Hard: "usr/bin/tool"}, {Path: "usr/empty", Mode: 0o644},
		{Path: "bin", Mode: fs.ModeSymlink | 0o777, Link: "usr/bin"}, {Path: "abs", Mode: fs.ModeSymlink | 0o777, Link: "/bin/tool"},
		{Path: "usr/up", Mode: fs.ModeSymlink | 0o777, Link: "../../../../etc/passwd"}, {Path: "etc/passwd", Mode: 0o644, Size: 4},
		{Path: "loop", Mode: fs.ModeSymlink | 0o777, Link: "loop2"}, {Path: "loop2", Mode: fs.ModeSymlink | 0o777, Link: "loop"}, {Path: "gone", Mode: fs.ModeSymlink | 0o777, Link: "/nothing"},
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777}, {Path: "odd/\xe9/\xff", Mode: 0o644, Size: 4},
	} {
		must(t, w.Add(e, strings.NewReader("text"[:e.Size])))
	}
	_, _, err = w.Close()
	must(t, err)
	file, err := os.Open(path)
	must(t, err)
	f, err := Open(file)
	must(t, err)
	t.Cleanup(f.Close)
	return f
}

// Links are followed inside the image, never on the host.
func TestResolve(t *testing.T) {
	f := open(t)
	for name, want := range map[string]string{
		".": ".", "bin/tool": "usr/bin/tool", "abs": "usr/bin/tool", "usr/up": "etc/passwd", "bin": "usr/bin",
	} {
		if got, err := f.Resolve(name); err != nil || got != want {
			t.Errorf("%s leads to %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]error{
		"loop": syscall.ELOOP, "gone": fs.ErrNotExist, "usr/bin/tool/x": fs.ErrNotExist, "nothing": fs.ErrNotExist, "../etc/passwd": fs.ErrInvalid, "/etc/passwd": fs.ErrInvalid, "": fs.ErrInvalid,
	} {
		if got, err := f.Resolve(name); !errors.Is(err, want) {
			t.Errorf("%q leads to %q, %v; want %v", name, got, err, want)
		}
	}
}

// A name that is listed can be read, also one that is not UTF-8.
func TestNotUTF8(t *testing.T) {
	f := open(t)
	var found []string
	must(t, fs.WalkDir(f, "odd", func(path string, d fs.DirEntry, err error) error {
		found = append(found, path)
		return err
	}))
	if want := []string{"odd", "odd/\xe9", "odd/\xe9/\xff"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if data, err := f.ReadFile("odd/\xe9/\xff"); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := f.ReadFile("odd/\xe9/../../../etc/passwd"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a path with dots: %v", err)
	}
}

func TestFS(t *testing.T) {
	f := open(t)
	sub, err := fs.Sub(f, "usr/bin")
	must(t, err)
	must(t, fstest.TestFS(sub, "tool", "again"))
	if data, err := f.ReadFile("usr/up"); err != nil || string(data) != "text" {
		t.Errorf("%q, %v; want the image's own /etc/passwd", data, err)
	}
	a, err := f.Stat("bin/tool")
	must(t, err)
	b, err := f.Lstat("usr/bin/again")
	must(t, err)
	x, y := a.Sys().(*syscall.Stat_t), b.Sys().(*syscall.Stat_t)
	if x.Ino != y.Ino || x.Dev != y.Dev || x.Nlink != 2 || a.Mode() != 0o755 {
		t.Errorf("%+v and %+v; want one file with two names", x, y)
	}
	other, err := open(t).Stat("bin/tool")
	must(t, err)
	if other.Sys().(*syscall.Stat_t).Dev == x.Dev {
		t.Error("two images have one device")
	}
	if info, err := f.Lstat("tmp"); err != nil || info.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	file, err := f.Open("usr/bin/tool")
	must(t, err)
	var part [2]byte
	if n, err := file.(io.ReaderAt).ReadAt(part[:], 2); n != 2 || err != nil || string(part[:]) != "xt" {
		t.Errorf("%d, %v, %q", n, err, part)
	}
}

func TestOpenFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	for _, data := range [][]byte{nil, make([]byte, 100), make([]byte, 8192)} {
		must(t, os.WriteFile(path, data, 0o600))
		file, err := os.Open(path)
		must(t, err)
		if _, err := Open(file); err == nil {
			t.Errorf("%d bytes are an image", len(data))
		}
	}
}
