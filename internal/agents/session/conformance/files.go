// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
)

// putFile puts a file that must be accepted.
func putFile(t *testing.T, s gate.Session, name, data string) {
	t.Helper()
	if out, err := s.Put(t.Context(), name, []byte(data)); err != nil || out.Refused != "" {
		t.Fatalf("put %q: %+v, %v", name, out, err)
	}
}

// Files go in and out byte for byte.
func testFiles(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	putFile(t, s, "in/deep/note.txt", "hello\n")
	if r := doSuccessfully(t, s, shellProposal("read",
		"cat in/deep/note.txt; echo more >> in/deep/note.txt")); string(r.Stdout.Head) != "hello\n" {
		t.Errorf("%+v", r)
	}
	if data, out, err := s.Take(t.Context(), "in/deep/note.txt"); err != nil || out.Refused != "" ||
		string(data) != "hello\nmore\n" {
		t.Errorf("took %q, %+v, %v", data, out, err)
	}
	large := bytes.Repeat([]byte("0123456789abcde\n"), 128<<10)
	putFile(t, s, "large", string(large))
	if data, _, err := s.Take(t.Context(), "large"); err != nil || !bytes.Equal(data, large) {
		t.Errorf("%d of %d bytes came back, %v", len(data), len(large), err)
	}
	if out, err := s.PutPart(t.Context(), "large", large[:1<<20]); err != nil || out.Refused != "" {
		t.Errorf("put a part: %+v, %v", out, err)
	}
	end := int64(len(large))
	if data, out, err := s.TakePart(t.Context(), "large", end-16, 2<<20); err != nil || out.File != "" ||
		!bytes.Equal(data, large[:1<<20+16]) {
		t.Errorf("took %d bytes of the end, %+v, %v", len(data), out, err)
	}
	if data, _, err := s.TakePart(t.Context(), "large", 1, 2); err != nil || string(data) != "12" {
		t.Errorf("took %q, %v", data, err)
	}
	putFile(t, s, "empty", "")
	if data, out, err := s.Take(t.Context(), "empty"); err != nil || out.Refused != "" || len(data) != 0 {
		t.Errorf("took %q, %+v, %v", data, out, err)
	}
	found, err := s.List(t.Context(), "in/*")
	if err != nil || len(found.Files) != 1 || found.Files[0].Path != "in/deep" || found.Files[0].Type != "dir" {
		t.Errorf("list: %+v, %v", found, err)
	}
	changes, err := s.Changes(t.Context())
	var names []string
	for _, c := range changes.Files {
		names = append(names, c.Kind+" "+c.Path)
	}
	if got := strings.Join(names, ", "); err != nil ||
		got != "added empty, added in, added in/deep, added in/deep/note.txt, added large" {
		t.Errorf("changes: %s, %v", got, err)
	}
	if report := closeSession(t, s); len(report.Transfers) != 10 {
		t.Errorf("%d transfers are in the report", len(report.Transfers))
	}
}

// No name leads out of the workspace, in either direction.
func testEscapes(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	if _, err := s.Put(t.Context(), "links.sh",
		[]byte("mkdir sub; mkfifo fifo; ln -s /etc/passwd out; ln -s /etc dir; ln -s ../.. up\n")); err != nil {
		t.Fatal(err)
	}
	doSuccessfully(t, s, shellProposal("links", "sh links.sh"))
	for _, name := range []string{"../x", "/etc/passwd", "/x", "sub/../../x", "dir/passwd", "up/etc/passwd", "out",
		"fifo", "sub", ""} {
		if out, err := s.Put(t.Context(), name, []byte("x")); err != nil || out.Refused == "" {
			t.Errorf("put %q: %+v, %v", name, out, err)
		}
		if data, out, err := s.Take(t.Context(), name); err != nil || out.Refused == "" || len(data) > 0 {
			t.Errorf("took %q: %q, %+v, %v", name, data, out, err)
		}
		if out, err := s.PutPart(t.Context(), name, []byte("x")); err != nil || out.Refused == "" {
			t.Errorf("put a part of %q: %+v, %v", name, out, err)
		}
		if data, out, err := s.TakePart(t.Context(), name, 0, 9); err != nil || out.Refused == "" || len(data) > 0 {
			t.Errorf("took a part of %q: %q, %+v, %v", name, data, out, err)
		}
	}
	if out, err := s.PutPart(t.Context(), "none", []byte("x")); err != nil || out.Refused == "" {
		t.Errorf("put a part of a file that does not exist: %+v, %v", out, err)
	}
	for _, part := range [][2]int64{{-1, 1}, {0, -1}, {0, 33 << 20}} {
		if _, out, err := s.TakePart(t.Context(), "links.sh", part[0], part[1]); err != nil || out.Refused == "" {
			t.Errorf("took part %v: %+v, %v", part, out, err)
		}
	}
	if _, out, err := s.Take(t.Context(), "none"); err != nil || out.Refused == "" {
		t.Errorf("took a file that does not exist: %+v, %v", out, err)
	}
	for _, pattern := range []string{"../*", "/etc/*", "dir/*", "[["} {
		if found, err := s.List(t.Context(), pattern); err != nil || len(found.Files) > 0 {
			t.Errorf("list %q: %+v, %v", pattern, found, err)
		}
	}
	closeSession(t, s)
}

// A diff has the texts, and names a file of this machine that has them.
func testDiff(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	putFile(t, s, "a.txt", "one\n")
	doSuccessfully(t, s, shellProposal("edit", "mkdir -p sub && echo new > sub/b.txt"))
	d, err := s.Diff(t.Context())
	if err != nil || len(d.Files) != 2 || !strings.Contains(d.Files[0].Text, "+one") ||
		d.Files[1].Path != "sub/b.txt" || d.Files[1].Kind != "added" {
		t.Fatalf("%+v, %v", d, err)
	}
	patch, err := os.ReadFile(d.Patch.File)
	if err != nil || string(patch) != d.Files[0].Text+d.Files[1].Text || int64(len(patch)) != d.Patch.Bytes {
		t.Errorf("%q, %v", patch, err)
	}
	if d, err := s.Diff(t.Context(), "sub"); err != nil || len(d.Files) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := s.Diff(t.Context(), make([]string, 101)...); errorCode(err) != "session.paths" {
		t.Errorf("too many paths: %v", err)
	}
	closeSession(t, s)
}
