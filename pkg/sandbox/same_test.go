// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A root in which one file has many names, as busybox often is installed, and another
// has two, as perl has.
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
	x.roots.binds = []Bind{{Source: bin, Target: "/bin"}}
	return x
}

func TestHardLinks(t *testing.T) {
	x := linkedRoot(t)
	for name, n := range map[string]int{"/bin/tool007": sameNames, "/bin/busybox": sameNames, "/bin/perl": 0, "/bin/none": 0, "/binary": 0, "/etc/passwd": 0, "": 0} {
		if got := x.linked(name); len(got) != n {
			t.Errorf("%q has %d links, want %d", name, len(got), n)
		} else if n > 0 && got[0] != "/bin/busybox" {
			t.Errorf("%q is first of all %q, want busybox", name, got[0])
		}
	}
}

func TestCopyOfHardLinks(t *testing.T) {
	x := linkedRoot(t)
	for name, want := range map[string][]string{"copy": {"/bin/copy", "/bin/perl", "/bin/perl5.36.0"}, "tool001": x.linked("/bin/busybox")} {
		path := x.host("/bin/" + name)
		sum, err := fileDigest(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, x.names(uint64(info.Size()), sum)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := x.names(4, "sha256:00"); len(got) > 0 {
		t.Errorf("another content of the same size is %q", got)
	}
}
