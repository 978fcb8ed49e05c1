// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/erofs"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A file is an entry with its content; for a hard link that of the first name.
type file struct {
	Entry
	content string
}

func build(t testing.TB, path string, o Options, files ...file) (string, error) {
	t.Helper()
	w, err := Create(path, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Mode.IsRegular() && f.Hard == "" {
			f.Size = int64(len(f.content))
		}
		if err := w.Add(f.Entry, strings.NewReader(f.content)); err != nil {
			break // Close returns it
		}
	}
	digest, size, err := w.Close()
	info, missing := os.Stat(path)
	if err != nil && missing == nil {
		t.Error("an image is left after an error")
	}
	if err == nil && (missing != nil || info.Size() != size) {
		t.Errorf("the file has %v, Close says %d", info, size)
	}
	return digest, err
}

// readBack lists an image as gVisor reads it.
func readBack(t testing.TB, path string) (map[string]file, map[string]uint64, map[string]uint32) {
	t.Helper()
	source, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	image, err := erofs.OpenImage(source)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	files, numbers, links := map[string]file{}, map[string]uint64{}, map[string]uint32{}
	var visit func(path string, nid, parent uint64)
	visit = func(path string, nid, parent uint64) {
		inode, err := image.Inode(nid)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		f := file{Entry: Entry{Path: path, Mode: fs.FileMode(inode.Mode() & 0o777), UID: inode.UID(), GID: inode.GID(),
			ModTime: time.Unix(int64(inode.Mtime()), int64(inode.MtimeNsec()))}}
		if inode.Mode()&unix.S_ISVTX != 0 {
			f.Mode |= fs.ModeSticky
		}
		numbers[path], links[path] = nid, inode.Nlink()
		switch {
		case inode.IsDir():
			f.Mode |= fs.ModeDir
			dots := 0
			names := []string{}
			if err := inode.IterDirents(func(name string, typ uint8, child uint64) error {
				names = append(names, name)
				if found, err := inode.Lookup(name); err != nil || found != child {
					t.Errorf("%s: looking up %q finds %d, %v", path, name, found, err)
				}
				switch name {
				case ".", "..":
					if dots++; name == "." && child != nid || name == ".." && child != parent {
						t.Errorf("%s: %s is %d", path, name, child)
					}
				default:
					visit(filepath.Join(path, name), child, nid)
				}
				return nil
			}); err != nil || dots != 2 || !slices.IsSorted(names) {
				t.Fatalf("%s: names %q: %v", path, names, err)
			}
		case inode.IsSymlink():
			f.Mode |= fs.ModeSymlink
			if f.Link, err = inode.Readlink(); err != nil {
				t.Fatal(err)
			}
		default:
			ranges, err := inode.DataRanges()
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if off, err := inode.DataOffset(); err != nil || off%blockSize != 0 {
				t.Errorf("%s: data at %d, %v: gVisor cannot map it", path, off, err)
			}
			f.content, f.Size = string(ranges[0].Bytes), int64(inode.Size())
		}
		files[path] = f
	}
	visit(".", image.RootNid(), image.RootNid())
	return files, numbers, links
}

func equal(t testing.TB, got map[string]file, want file) {
	t.Helper()
	g := got[want.Path]
	if g.Mode != want.Mode || g.UID != want.UID || g.GID != want.GID || g.Link != want.Link || g.content != want.content || !g.ModTime.Equal(want.ModTime) {
		t.Errorf("%s is %v, want %v", want.Path, g.Entry, want.Entry)
	}
}

var someTime = time.Unix(1_700_000_000, 123_456_789)

// deep is the depth of a path. fsck.erofs 1.5 runs out of stack somewhere above.
const deep = 300

func sample() []file {
	files := []file{
		{Entry: Entry{Path: ".", Mode: fs.ModeDir | 0o751, UID: 7, GID: 8, ModTime: someTime}},
		{Entry{Path: "empty", Mode: 0o600, ModTime: someTime}, ""},
		{Entry{Path: "a/one", Mode: 0o755, UID: 1 << 20, GID: 3, ModTime: someTime}, "one\n"},
		{Entry{Path: "a/old", Mode: 0o4, ModTime: time.Unix(-5, 1)}, strings.Repeat("o", blockSize)},
		{Entry{Path: "a/big", Mode: 0o644, ModTime: someTime}, strings.Repeat("0123456789", 20_000)},
		{Entry{Path: "a/holes", Mode: 0o644, ModTime: someTime}, strings.Repeat("\x00", 3<<20) + "end"},
		{Entry: Entry{Path: "a/link", Mode: fs.ModeSymlink | 0o777, Link: "../../outside", ModTime: someTime}},
		{Entry: Entry{Path: "a/far", Mode: fs.ModeSymlink | 0o777, Link: strings.Repeat("l", maxLink), ModTime: someTime}},
		{Entry: Entry{Path: "sticky", Mode: fs.ModeDir | fs.ModeSticky | 0o777, ModTime: someTime}},
		{Entry{Path: "sticky/" + strings.Repeat("n", maxName), Mode: 0o644, ModTime: someTime}, "long"},
		{Entry{Path: strings.Repeat("d/", deep) + "deep", Mode: 0o644, ModTime: someTime}, "deep"},
		{Entry{Path: "names/-x", Mode: 0o644, ModTime: someTime}, "before the dots"},
		{Entry{Path: "names/\xff\xfe", Mode: 0o644, ModTime: someTime}, "not UTF-8"},
	}
	for i := range 3000 {
		files = append(files, file{Entry{Path: fmt.Sprintf("many/%d", i), Mode: 0o640, ModTime: someTime}, fmt.Sprint(i)})
	}
	return files
}

// What is written is what gVisor reads.
func TestWriter(t *testing.T) {
	lanetest.SkipShort(t)
	path := filepath.Join(t.TempDir(), "image")
	files := sample()
	hard := file{Entry{Path: "zz", Mode: 0o644, Hard: "a/big"}, ""}
	digest, err := build(t, path, Options{}, append(slices.Clone(files), hard)...)
	if err != nil {
		t.Fatal(err)
	}
	got, numbers, links := readBack(t, path)
	for _, f := range files {
		equal(t, got, f)
	}
	if numbers["zz"] != numbers["a/big"] || links["zz"] != 2 || links["empty"] != 1 || links["a"] != 2 || links["."] != 7 {
		t.Errorf("hard links: %d and %d; counts of zz %d, empty %d, a %d, . %d", numbers["zz"], numbers["a/big"], links["zz"], links["empty"], links["a"], links["."])
	}
	if parent := got["many"]; parent.Mode != fs.ModeDir|0o755 || parent.UID != 0 || parent.ModTime.Unix() != 0 {
		t.Errorf("a parent that was not added is %v", parent.Entry)
	}
	if want := len(files) + 1 + deep + len([]string{"a", "names", "many"}); len(got) != want {
		t.Errorf("%d files, want %d", len(got), want)
	}
	if err := Verify(path, digest); err != nil {
		t.Error(err)
	}
}

// Metadata may be added in any order; only that of contents shows.
func TestReproducible(t *testing.T) {
	lanetest.SkipShort(t)
	dir := t.TempDir()
	files := sample()
	first, err := build(t, filepath.Join(dir, "1"), Options{}, files...)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(files, func(a, b file) int { return int(b.Mode.Type()>>1) - int(a.Mode.Type()>>1) })
	second, err := build(t, filepath.Join(dir, "2"), Options{}, files...)
	if err != nil || first != second {
		t.Errorf("%s and %s, %v", first, second, err)
	}
	files[len(files)-1].ModTime = someTime.Add(1)
	if third, err := build(t, filepath.Join(dir, "3"), Options{}, files...); err != nil || third == first {
		t.Errorf("another time has the same digest %s, %v", third, err)
	}
}

func TestRefused(t *testing.T) {
	regular := func(path string) file { return file{Entry{Path: path, Mode: 0o644}, "x"} }
	for name, files := range map[string][]file{
		"absolute":        {regular("/a")},
		"outside":         {regular("../a")},
		"parent":          {regular("..")},
		"not clean":       {regular("a/../b")},
		"double slash":    {regular("a//b")},
		"empty":           {regular("")},
		"null":            {regular("a\x00b")},
		"long name":       {regular(strings.Repeat("n", maxName+1))},
		"long path":       {regular(strings.Repeat("n/", maxPath/2) + "n")},
		"twice":           {regular("a"), regular("a")},
		"directory twice": {{Entry: Entry{Path: "a", Mode: fs.ModeDir}}, {Entry: Entry{Path: "a", Mode: fs.ModeDir}}},
		"root twice":      {{Entry: Entry{Path: ".", Mode: fs.ModeDir}}, {Entry: Entry{Path: ".", Mode: fs.ModeDir}}},
		"root a file":     {regular(".")},
		"below a file":    {regular("a"), regular("a/b")},
		"below a link":    {{Entry: Entry{Path: "a", Mode: fs.ModeSymlink, Link: "/etc"}}, regular("a/b")},
		"over a parent":   {regular("a/b"), regular("a")},
		"device":          {{Entry: Entry{Path: "a", Mode: fs.ModeDevice | fs.ModeCharDevice}}},
		"pipe":            {{Entry: Entry{Path: "a", Mode: fs.ModeNamedPipe}}},
		"socket":          {{Entry: Entry{Path: "a", Mode: fs.ModeSocket}}},
		"empty link":      {{Entry: Entry{Path: "a", Mode: fs.ModeSymlink}}},
		"long link":       {{Entry: Entry{Path: "a", Mode: fs.ModeSymlink, Link: strings.Repeat("l", maxLink+1)}}},
		"file with link":  {{Entry{Path: "a", Mode: 0o644, Link: "b"}, "x"}},
		"large directory": {{Entry: Entry{Path: "a", Mode: fs.ModeDir, Size: 1}}},
		"hard, no target": {{Entry: Entry{Path: "a", Mode: 0o644, Hard: "b"}}},
		"hard to a dir":   {regular("d/x"), {Entry: Entry{Path: "a", Mode: 0o644, Hard: "d"}}},
		"hard twice":      {regular("a"), regular("b"), {Entry: Entry{Path: "b", Mode: 0o644, Hard: "a"}}},
		"hard to itself":  {{Entry: Entry{Path: "a", Mode: 0o644, Hard: "a"}}},
		"hard directory":  {regular("a"), {Entry: Entry{Path: "b", Mode: fs.ModeDir, Hard: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := build(t, filepath.Join(t.TempDir(), "image"), Options{}, files...)
			wantCode(t, err, CodeEntry)
		})
	}
}

func wantCode(t testing.TB, err error, code string) {
	t.Helper()
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// A header may ask for anything; an image has only what its limits allow.
func TestLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	_, err := build(t, path, Options{MaxFiles: 3}, file{Entry{Path: "a/b/c", Mode: 0o644}, ""})
	wantCode(t, err, CodeLimit)
	_, err = build(t, path, Options{MaxBytes: 4 * blockSize}, file{Entry{Path: "a", Mode: 0o644}, "x"})
	if err != nil {
		t.Errorf("an image of four blocks: %v", err)
	}
	os.Remove(path)
	_, err = build(t, path, Options{MaxBytes: 4*blockSize - 1}, file{Entry{Path: "a", Mode: 0o644}, "x"})
	wantCode(t, err, CodeLimit)

	w, err := Create(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, w.Add(Entry{Path: "a", Mode: 0o644, Size: 1<<63 - 1}, strings.NewReader("")), CodeLimit)
	wantCode(t, w.Add(Entry{Path: "b", Mode: 0o644}, nil), CodeLimit)
	_, _, err = w.Close()
	wantCode(t, err, CodeLimit)
}

func TestContentLength(t *testing.T) {
	for _, size := range []int64{0, 2, 4, 1 << 30} {
		w, err := Create(filepath.Join(t.TempDir(), "image"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, w.Add(Entry{Path: "a", Mode: 0o644, Size: size}, strings.NewReader("abc")), CodeContent)
		w.Abort()
	}
}

// An existing file, or a link where one is expected, is never written to.
func TestCreateExclusive(t *testing.T) {
	dir := t.TempDir()
	os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "link"))
	for _, path := range []string{dir, filepath.Join(dir, "link")} {
		_, err := Create(path, Options{})
		wantCode(t, err, CodeWrite)
	}
}

func TestVerify(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "image")
	digest, err := build(t, path, Options{}, sample()...)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	os.Symlink(path, link)
	wantCode(t, Verify(link, digest), CodeWrite)
	wantCode(t, Verify(dir, digest), CodeWrite)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte{1}, 5*blockSize+1)
	f.Close()
	wantCode(t, Verify(path, digest), CodeDigest)
}

// tree makes a directory with everything that a repository may have.
func tree(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	steps := []error{
		os.MkdirAll(filepath.Join(dir, "sub/empty"), 0o755),
		os.WriteFile(filepath.Join(dir, "sub/a"), []byte("content\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\n"), 0o755),
		os.Chmod(filepath.Join(dir, "run"), 0o755|fs.ModeSetuid|fs.ModeSetgid),
		os.Link(filepath.Join(dir, "sub/a"), filepath.Join(dir, "sub/b")),
		os.Symlink("/etc/passwd", filepath.Join(dir, "sub/link")),
		os.Symlink("sub", filepath.Join(dir, "to-dir")),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFromDir(t *testing.T) {
	dir, path := tree(t), filepath.Join(t.TempDir(), "image")
	owner := func(uid, gid uint32) (uint32, uint32) { return uid + 1000, gid + 2000 }
	if _, err := FromDir(context.Background(), path, dir, DirOptions{Owner: owner}); err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(t.TempDir(), "private")
	if digest, err := FromDir(context.Background(), private, dir, DirOptions{Owner: owner, Private: true}); err != nil || digest != "" {
		t.Errorf("a private image: %q, %v", digest, err)
	} else if err := Verify(private, digestIn(t, path)); err != nil {
		t.Errorf("a private image is another: %v", err)
	}
	got, numbers, _ := readBack(t, path)
	for name := range got {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want := file{Entry{Path: name, Mode: info.Mode() & (fs.ModeType | fs.ModePerm), UID: uint32(os.Getuid()) + 1000, GID: uint32(os.Getgid()) + 2000, ModTime: info.ModTime()}, ""}
		switch want.Mode.Type() {
		case fs.ModeSymlink:
			want.Link, _ = os.Readlink(filepath.Join(dir, name))
		case 0:
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			want.content = string(data)
		}
		equal(t, got, want)
	}
	if len(got) != 8 || numbers["sub/a"] != numbers["sub/b"] {
		t.Errorf("%d files; sub/a is %d, sub/b %d", len(got), numbers["sub/a"], numbers["sub/b"])
	}
}

func digestIn(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	digest, _, err := digestOf(f)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestFromDirRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	dir := tree(t)
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := FromDir(context.Background(), path, dir, DirOptions{})
	wantCode(t, err, CodeEntry)
	for _, wrong := range []string{"run", "to-dir"} {
		_, err = FromDir(context.Background(), path, filepath.Join(dir, wrong), DirOptions{})
		wantCode(t, err, CodeContent)
	}
	_, err = FromDir(context.Background(), path, tree(t), DirOptions{Options: Options{MaxFiles: 4}})
	wantCode(t, err, CodeLimit)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := FromDir(ctx, path, dir, DirOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after an end: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("an image is left")
	}
}

// What is mounted in a tree is not part of it.
func TestFromDirMount(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{outside: "sub/empty", filepath.Join(outside, "secret"): "run"} {
		dir := tree(t)
		at := filepath.Join(dir, to)
		if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		_, err := FromDir(context.Background(), filepath.Join(t.TempDir(), "image"), dir, DirOptions{})
		wantCode(t, err, CodeContent)
	}
}

// A file that is written, and a directory from which a file is moved, while they are read
// make no image.
func TestFromDirChanging(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"write": func(dir string) error { return appendTo(filepath.Join(dir, "sub/a"), "more") },
		"move":  func(dir string) error { return os.Rename(filepath.Join(dir, "run"), filepath.Join(dir, "ran")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, calls := tree(t), 0
			owner := func(uid, gid uint32) (uint32, uint32) { // is called after the first look at a file
				if calls++; calls == map[string]int{"write": 4, "move": 1}[name] {
					if err := change(dir); err != nil {
						t.Fatal(err)
					}
				}
				return uid, gid
			}
			_, err := FromDir(context.Background(), filepath.Join(t.TempDir(), "image"), dir, DirOptions{Owner: owner})
			wantCode(t, err, CodeContent)
		})
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
