// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

func put(t *testing.T, path, name string, data []byte) {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Put(name, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
		t.Error(err)
	}
}

func get(path, name string) ([]byte, error) {
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// What is put belongs to the owner of the directory, and takes the place of whatever was there,
// also of a link, whose target stays as it is.
func TestPut(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	if err := errors.Join(os.Chown(dir, 1234, 1235), os.WriteFile(outside, nil, 0o600), os.Symlink(outside, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "a", []byte("one"))
	put(t, dir, "a", []byte("two"))
	put(t, dir, "link", []byte("three"))
	for name, want := range map[string]string{"a": "two", "link": "three"} {
		if data, err := get(dir, name); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	var st syscall.Stat_t
	if err := syscall.Lstat(filepath.Join(dir, "link"), &st); err != nil || st.Uid != 1234 || st.Gid != 1235 || st.Mode != syscall.S_IFREG|0o600 {
		t.Errorf("%+v, %v", st, err)
	}
	if data, err := os.ReadFile(outside); err != nil || len(data) > 0 {
		t.Errorf("the link's target has %q, %v", data, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A file that could not be written is not there, and what had its name still is.
func TestPutFails(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a", []byte("one"))
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	full := errors.New("disk full")
	if err := d.Put("a", func(w io.Writer) error { _, err := w.Write([]byte("tw")); return errors.Join(err, full) }); !errors.Is(err, full) {
		t.Error(err)
	}
	if data, err := get(dir, "a"); err != nil || string(data) != "one" {
		t.Errorf("%q, %v", data, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

// Only a regular file is opened, and nothing waits for a writer.
func TestOpenRefused(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Symlink("/etc/passwd", at("link")), unix.Mkfifo(at("fifo"), 0o666), os.Mkdir(at("dir"), 0o777), unix.Mknod(at("device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "fifo", "dir", "device"} {
		if data, err := get(dir, name); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: read %q, %v", name, data, err)
		}
	}
	if _, err := get(dir, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Symlink(dir, dir+"-link"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir + "-link"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a linked directory: %v", err)
	}
}

// Of writers at once, one file stays, and none of it is ever seen in part.
func TestPutAtOnce(t *testing.T) {
	lanetest.SkipShort(t)
	dir := t.TempDir()
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 50 {
				put(t, dir, "a", bytes.Repeat([]byte{byte('a' + i)}, 100_000))
			}
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); writers.Wait() }()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		default:
		}
		data, err := get(dir, "a")
		if err == nil && (len(data) != 100_000 || !bytes.Equal(data, bytes.Repeat(data[:1], len(data)))) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}
