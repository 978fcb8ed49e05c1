// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/roottest"
	"github.com/fumehood/fumehood/internal/sandbox/image/oci/ocitest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// asOpener makes this test binary a process that opens an image: the value, the store and
// a layout that is read slowly.
const asOpener = "FUMEHOOD_TEST_OPEN_IMAGE"

func TestMain(m *testing.M) {
	if value := os.Getenv(asOpener); value != "" {
		i, err := Open(context.Background(), value, Options{Dir: os.Getenv("FUMEHOOD_TEST_STORE")})
		fmt.Println(i.File, err)
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	roottest.RunTests(m)
}

func opener(t *testing.T, value, dir string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asOpener+"="+value, "FUMEHOOD_TEST_STORE="+dir)
	return cmd
}

func count(t *testing.T, dir, suffix string) (n int) {
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			n++
		}
	}
	return n
}

// What is in the store is used only if it is what was made; otherwise it is made again.
func TestStoreVerifies(t *testing.T) {
	lanetest.SkipShort(t)
	o := options(t)
	var notices []string
	o.Notice = func(text string) { notices = append(notices, text) }
	a, b := Layout+layers(t, []file{f("a", "1")}).WriteLayout(t), Layout+layers(t, []file{f("b", "2")}).WriteLayout(t)
	open := func(value string) Image {
		t.Helper()
		i, err := Open(t.Context(), value, o)
		must(t, err)
		must(t, i.Close())
		return i
	}
	first, other := open(a), open(b)
	note := func(i Image) string { return strings.TrimSuffix(i.Path, imageSuffix) + noteSuffix }
	same := read(t, first.Path)
	for name, change := range map[string]func() error{
		"nothing": func() error { return nil },
		"poisoned": func() error {
			return rewrite(first.Path, func(data []byte) []byte { data[len(data)-1] ^= 1; return data })
		},
		"truncated": func() error { return os.Truncate(first.Path, 4096) },
		"empty":     func() error { return os.Truncate(first.Path, 0) },
		"longer": func() error {
			return rewrite(first.Path, func(data []byte) []byte { return append(data, make([]byte, 4096)...) })
		},
		"swapped": func() error {
			return rewrite(first.Path, func([]byte) []byte { data, _ := os.ReadFile(other.Path); return data })
		},
		"swapped with its description": func() error {
			image, err := os.ReadFile(other.Path)
			data, err2 := os.ReadFile(note(other))
			return errors.Join(err, err2, os.WriteFile(first.Path, image, 0o600), os.WriteFile(note(first), data, 0o600))
		},
		"description missing": func() error { return os.Remove(note(first)) },
		"description damaged": func() error { return os.WriteFile(note(first), []byte("{"), 0o600) },
		"a link": func() error {
			return errors.Join(os.Rename(first.Path, first.Path+".old"), os.Symlink(first.Path+".old", first.Path))
		},
		"a pipe":      func() error { return errors.Join(os.Remove(first.Path), syscall.Mkfifo(first.Path, 0o600)) },
		"a directory": func() error { return errors.Join(os.Remove(first.Path), os.Mkdir(first.Path, 0o700)) },
	} {
		notices = nil
		must(t, change())
		again := open(a)
		if found := read(t, again.Path); again.File != first.File || fmt.Sprint(found) != fmt.Sprint(same) {
			t.Errorf("%s: %s with %v", name, again.File, found)
		}
		if made := len(notices) > 0; made == (name == "nothing") {
			t.Errorf("%s: %q", name, notices)
		}
	}
}

func rewrite(path string, change func([]byte) []byte) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, change(data), 0o600)
}

// The store keeps what was used last, and never removes what a process uses.
func TestStoreIsBounded(t *testing.T) {
	lanetest.SkipShort(t)
	o := options(t)
	o.Limits.Kept = 3 << 20
	body := strings.Repeat("x", 1<<20)
	open := func(n int) Image {
		i, err := Open(t.Context(), Layout+layers(t, []file{f("a", fmt.Sprint(n)+body)}).WriteLayout(t), o)
		must(t, err)
		return i
	}
	held := open(0)
	defer held.Close()
	for n := range 5 {
		must(t, open(n+1).Close())
	}
	if n := count(t, o.Dir, imageSuffix); n > 3 || count(t, o.Dir, noteSuffix) != n {
		t.Errorf("%d images are kept", n)
	}
	if _, err := os.Stat(held.Path); err != nil {
		t.Errorf("an image in use is gone: %v", err)
	}
}

// Several processes and goroutines that need one image make it once.
func TestStoreTogether(t *testing.T) {
	lanetest.SkipShort(t)
	o := options(t)
	value := Layout + layers(t, []file{f("a", strings.Repeat("x", 4<<20))}).WriteLayout(t)
	var all sync.WaitGroup
	outputs := make([]string, 6)
	for n := range outputs {
		all.Go(func() {
			if n%2 == 0 {
				out, err := opener(t, value, o.Dir).CombinedOutput()
				outputs[n] = fmt.Sprintf("%s %v", strings.TrimSpace(string(out)), err)
				return
			}
			i, err := Open(t.Context(), value, o)
			outputs[n] = fmt.Sprintf("%s %v %v", i.File, err, err)
			_ = i.Close()
		})
	}
	all.Wait()
	for _, out := range outputs {
		if out != outputs[0] || !strings.HasPrefix(out, "sha256:") {
			t.Errorf("%q and %q", out, outputs[0])
		}
	}
	if n := count(t, o.Dir, imageSuffix); n != 1 {
		t.Errorf("%d images", n)
	}
}

// A process that is killed while it makes an image leaves nothing that is used.
func TestStoreKilled(t *testing.T) {
	lanetest.SkipShort(t)
	o := options(t)
	image := layers(t, []file{f("a", strings.Repeat("x", 24<<20))})
	value := Layout + image.WriteLayout(t)
	for n := range 8 {
		cmd := opener(t, value, o.Dir)
		must(t, cmd.Start())
		time.Sleep(time.Duration(n*n) * 8 * time.Millisecond)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
	}
	i, err := Open(t.Context(), value, o)
	must(t, err)
	defer i.Close()
	if read(t, i.Path)["a"] != strings.Repeat("x", 24<<20) || count(t, o.Dir, "") != 3 {
		t.Errorf("%d files in the store; want the image, its description and the lock", count(t, o.Dir, ""))
	}
}

// A full disk is reported, and leaves nothing.
func TestStoreDiskFull(t *testing.T) {
	lanetest.SkipShort(t)
	o := options(t)
	must(t, os.Mkdir(o.Dir, 0o700))
	must(t, syscall.Mount("tmpfs", o.Dir, "tmpfs", 0, "size=8m,mode=0700"))
	t.Cleanup(func() { _ = syscall.Unmount(o.Dir, syscall.MNT_DETACH) })
	for _, size := range []int{20 << 20, 5 << 20} { // while the layer is read, and while the image is written
		_, err := Open(t.Context(), Layout+layers(t, []file{f("a", strings.Repeat("xy", size/2))}).WriteLayout(t), o)
		if size == 20<<20 {
			wantCode(t, err, CodeDisk)
		}
		var stop *proposal.StopError
		if !errors.As(err, &stop) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v; want a full disk", err)
		}
		wantEmpty(t, o.Dir)
	}
}

func TestStoreOfOthers(t *testing.T) {
	o := options(t)
	must(t, os.Mkdir(o.Dir, 0o755))
	_, err := Open(t.Context(), Layout+layers(t, []file{f("a", "1")}).WriteLayout(t), o)
	wantCode(t, err, CodeStore)
}

// FuzzLayer applies any bytes as the upper of two layers. An image file is made whose files
// can be read, or none is left.
func FuzzLayer(fz *testing.F) {
	for _, files := range [][]file{
		{f("a", "1"), d("b"), link("c", "a"), hard("d", "a"), f("b/.wh..wh..opq", ""), f(".wh.x", "")},
		{link("bin", "/usr/bin"), f("bin/x", "1"), special("dev2", tarChar)},
		{{Name: "p", Body: "1", PAX: map[string]string{"SCHILY.xattr.user.x": "y", "comment": "z"}}},
	} {
		fz.Add(ocitest.Tar(fz, files...))
	}
	fz.Add(sparse(1 << 20))
	lower := ocitest.PlainLayer(ocitest.Tar(fz, f("x", "1"), f("usr/bin/y", "2"), link("l", "usr"), hard("h", "x")))
	root := fz.TempDir()
	fz.Fuzz(func(t *testing.T, data []byte) {
		image := ocitest.Make(ocitest.Config{}, lower, ocitest.PlainLayer(data))
		o := Options{Dir: filepath.Join(root, "images"), Limits: Limits{Bytes: 16 << 20, File: 4 << 20, Entries: 5000, Files: 5000, Kept: 1 << 20}}
		layout := image.WriteLayout(t)
		i, err := Open(t.Context(), Layout+layout, o)
		if err != nil {
			var stop *proposal.StopError
			if !errors.As(err, &stop) || !strings.HasPrefix(stop.Code, "rootfs.") || stop.Code == CodeStore || stop.Code == CodeDisk {
				t.Fatalf("%v", err)
			}
			return
		}
		defer i.Close()
		for path := range read(t, i.Path) {
			if !fs.ValidPath(strings.ToValidUTF8(strings.TrimSuffix(path, "/"), "?")) {
				t.Errorf("the image has %q", path)
			}
		}
		if _, err := json.Marshal(i); err != nil {
			t.Error(err)
		}
	})
}

const tarChar = '3'
