// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// layers makes an upper and a lower directory. The tests write to the upper one
// what an overlay would: a whiteout is a 0:0 character device, an opaque directory
// has an extended attribute. Both need root, as the sandbox does.
func layers(t *testing.T) (upper, lower string) {
	t.Helper()
	upper, lower = t.TempDir(), t.TempDir()
	write(t, lower, "a")
	write(t, lower, "d/b")
	write(t, lower, "d/c")
	return upper, lower
}

func write(t *testing.T, root, path string) {
	t.Helper()
	full := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(path), 0o644); err != nil {
		t.Fatal(err)
	}
}

func whiteout(t *testing.T, root, path string) {
	t.Helper()
	full := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(full); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(full, unix.S_IFCHR, 0); err != nil {
		t.Fatal(err)
	}
}

func TestChanges(t *testing.T) {
	upper, lower := layers(t)
	tree := newTree(walkUpper(upper), lower)
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"nothing", func() {}, nil},
		{"add", func() { write(t, upper, "n/x") }, []string{"added dir n", "added file n/x"}},
		{"again nothing", func() {}, nil},
		{"change", func() { write(t, upper, "a") }, []string{"changed file a"}},
		{"copied up directory", func() { write(t, upper, "d/b") }, []string{"changed file d/b"}},
		{"remove what was below", func() { whiteout(t, upper, "d/b") }, []string{"removed file d/b"}},
		{"remove what was added", func() { os.RemoveAll(filepath.Join(upper, "n")) }, []string{"removed dir n", "removed file n/x"}},
		{"bring back", func() { os.Remove(filepath.Join(upper, "d/b")); write(t, upper, "d/b") }, []string{"added file d/b"}},
		{"replace a directory", func() {
			os.RemoveAll(filepath.Join(upper, "d"))
			os.Mkdir(filepath.Join(upper, "d"), 0o755)
			if err := unix.Setxattr(filepath.Join(upper, "d"), "trusted.overlay.opaque", []byte("y"), 0); err != nil {
				t.Fatal(err)
			}
		}, []string{"removed file d/b", "removed file d/c"}},
	} {
		step.do()
		found, unseen, err := tree.scanChanges()
		if unseen != 0 || err != nil {
			t.Errorf("%s: %d places unseen, %v", step.name, unseen, err)
		}
		var got []string
		for _, c := range found {
			got = append(got, c.kind+" "+c.typ+" "+c.path)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// A path longer than the kernel accepts is counted, and the rest is still listed.
func TestChangesTooDeep(t *testing.T) {
	upper, lower := layers(t)
	write(t, upper, "a")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(upper)
	name := strings.Repeat("d", 200)
	for range 30 {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chdir(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chdir(here); err != nil {
		t.Fatal(err)
	}
	found, unseen, err := newTree(walkUpper(upper), lower).scanChanges()
	if err != nil || unseen == 0 || len(found) == 0 || found[0].path != "a" {
		t.Errorf("%d found, %d unseen", len(found), unseen)
	}
}

// total lists all that happened since the mark, with the files of removed directories, and
// does not count as a look.
func TestTotal(t *testing.T) {
	upper, lower := layers(t)
	tree := newTree(walkUpper(upper), lower)
	write(t, upper, "before")
	tree.scanChanges()
	write(t, upper, "deps/made")
	write(t, upper, "deps/left")
	tree.scanChanges()
	if err := tree.markSetup(); err != nil {
		t.Fatal(err)
	}
	write(t, upper, "n")
	tree.scanChanges()
	whiteout(t, upper, "d")
	if err := os.WriteFile(filepath.Join(upper, "deps/made"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		if err := errors.Join(tree.writeTotalChanges(10, w), w.Flush()); err != nil {
			t.Fatal(err)
		}
		want := "added file 6 \"before\"\nchange removed dir 0 \"d\"\nchange removed file 0 \"d/b\"\nchange removed file 0 \"d/c\"\nchange changed file 7 \"deps/made\"\nchange added file 1 \"n\"\nok 0\n"
		if diff := cmp.Diff("change "+want, out.String()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if found, _, _ := tree.scanChanges(); len(found) != 2 {
		t.Errorf("changes since the last look: %+v", found)
	}
}

// A directory that became a file hides its files, too, and one that was gone at the mark is
// not reported again.
func TestTotalHidden(t *testing.T) {
	upper, lower := layers(t)
	last := newTree(walkUpper(upper), lower)
	write(t, upper, "d")
	found := totalOf(t, last)
	if len(found) != 3 || found[1].path != "d/b" {
		t.Errorf("%+v", found)
	}
	last.scanChanges()
	if err := last.markSetup(); err != nil {
		t.Fatal(err)
	}
	if found := totalOf(t, last); len(found) != 0 {
		t.Errorf("since the mark: %+v", found)
	}
}

func totalOf(t *testing.T, tree *upperTree) []change {
	t.Helper()
	l, err := tree.total.takeLook()
	if err != nil {
		t.Fatal(err)
	}
	return l.listChanges()
}

func serverOf(upper, lower string) *server {
	return &server{tree: newTree(walkUpper(upper), lower), root: upper, lower: lower}
}

// Each side has its own file; what is below a link is not there.
func TestEntries(t *testing.T) {
	upper, lower := layers(t)
	if err := errors.Join(os.Symlink("d", filepath.Join(lower, "l")), os.Symlink("/etc", filepath.Join(upper, "b")), os.WriteFile(filepath.Join(upper, "x"), []byte("123"), 0o751)); err != nil {
		t.Fatal(err)
	}
	s := serverOf(upper, lower)
	for request, want := range map[string]string{
		`entry old "a"`:        "entry file 420 1 \"\"\n",
		`entry new "a"`:        "entry none 0 0 \"\"\n",
		`entry new "x"`:        "entry file 489 3 \"\"\n",
		`entry new "x/y"`:      "entry none 0 0 \"\"\n",
		`entry old "d"`:        "entry dir ",
		`entry old "l"`:        "entry symlink 511 1 \"d\"\n",
		`entry old "l/b"`:      "entry none 0 0 \"\"\n",
		`entry new "b/b"`:      "entry none 0 0 \"\"\n",
		`entry new "b/passwd"`: "entry none 0 0 \"\"\n",
		`entry old "../a"`:     "error ",
		`entry old "/etc"`:     "error ",
		`entry both "a"`:       "error \"invalid side",
		`entry old a`:          "error \"invalid path",
		`read 10 old "d/b"`:    "data 3\nd/bok 3\n",
		`read 10 new "d/b"`:    "error ",
		`read 2 old "d/b"`:     "error \"not a regular file of at most 2 bytes\"",
		`read 10 old "l/b"`:    "error ",
		`read 10 new "b"`:      "error ",
		`read 10 old "../a"`:   "error ",
		`read 10 "d/b"`:        "error \"invalid",
	} {
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		if err := serveRequests(s, strings.NewReader(request+"\n"), w); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: %q, want %q", request, out.String(), want)
		}
	}
}

// A file that a process of the host shortens while it is read is an error, and the next
// answer is where it must be.
func TestSendShort(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(name, []byte("12"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	if err := sendFile(f, 5, w); err == nil || w.Flush() != nil || out.String() != "data 5\n12\x00\x00\x00" {
		t.Errorf("%v, %q", err, out.String())
	}
}
