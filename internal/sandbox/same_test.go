// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A root in which one file has many names, as busybox often has, and another has two,
// as perl has.
func linkedRoot(t *testing.T) *sameIndex {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"busybox": "many tools", "perl": "perl", "copy": "perl"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := func(old, new string) {
		if err := os.Link(filepath.Join(bin, old), filepath.Join(bin, new)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		link("busybox", fmt.Sprintf("tool%03d", i))
	}
	link("perl", "perl5.36.0")
	x := &sameIndex{}
	x.roots = readOnlyRoot{files: hostFiles{}, binds: []Bind{{Source: bin, Target: "/bin"}}}
	return x
}

func TestHardLinks(t *testing.T) {
	x := linkedRoot(t)
	for name, n := range map[string]int{"/bin/tool007": sameNames, "/bin/busybox": sameNames, "/bin/perl": 0, "/bin/none": 0, "/binary": 0, "/etc/passwd": 0, "": 0} {
		if got := x.hardLinks(name); len(got) != n {
			t.Errorf("%q has %d links, want %d", name, len(got), n)
		} else if n > 0 && got[0] != "/bin/busybox" {
			t.Errorf("%q is first of all %q, want busybox", name, got[0])
		}
	}
}

func TestCopyOfHardLinks(t *testing.T) {
	x := linkedRoot(t)
	for name, want := range map[string][]string{"copy": {"/bin/copy", "/bin/perl", "/bin/perl5.36.0"}, "tool001": x.hardLinks("/bin/busybox")} {
		path := x.hostPath("/bin/" + name)
		sum := x.fileDigest(path)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, x.namesOfContent(uint64(info.Size()), sum)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := x.namesOfContent(4, "sha256:00"); len(got) > 0 {
		t.Errorf("another content of the same size is %q", got)
	}
}

// elfFile is a program that needs this loader.
func elfFile(loader string) string {
	b := make([]byte, 64+56)
	copy(b, "\x7fELF\x02\x01\x01")
	for at, v := range map[int]uint16{16: 2, 54: 56, 56: 1} {
		binary.LittleEndian.PutUint16(b[at:], v)
	}
	for at, v := range map[int]uint64{32: 64, 64: 3, 72: 120, 96: uint64(len(loader))} {
		binary.LittleEndian.PutUint64(b[at:], v)
	}
	return string(b) + loader
}

// Loaders and C libraries are not in directories named for programs, and a loader may
// have any name.
func TestCopyOfALoader(t *testing.T) {
	usr := t.TempDir()
	for name, text := range map[string]string{
		"lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": "loader", "lib/x86_64-linux-gnu/libc.so.6": "library", "lib/ld-2.31.so": "older",
		"lib/musl/libc.so": "musl", "lib/odd/start": "odd", "lib/x86_64-linux-gnu/libz.so.1": "another", "bin/bash": elfFile("/usr/lib/odd/start\x00"),
	} {
		path := filepath.Join(usr, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	x := &sameIndex{}
	x.roots = readOnlyRoot{files: hostFiles{}, binds: []Bind{{Source: usr, Target: "/usr"}}, links: map[string]string{"/bin": "usr/bin"}}
	for name, known := range map[string]bool{"lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": true, "lib/x86_64-linux-gnu/libc.so.6": true, "lib/ld-2.31.so": true,
		"lib/musl/libc.so": true, "lib/odd/start": true, "bin/bash": true, "lib/x86_64-linux-gnu/libz.so.1": false} {
		path := filepath.Join(usr, name)
		sum := x.fileDigest(path)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		if known {
			want = []string{"/usr/" + name}
		}
		if diff := cmp.Diff(want, x.namesOfContent(uint64(info.Size()), sum)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
