// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestSessionDiff: git applies a session's patch to a copy of the workspace, and gets the
// session's files. What the set-up changed is left out, and the log has what went out.
func TestSessionDiff(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	if err := os.CopyFS(ws, os.DirFS("testdata/project")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, ws, "lib/one.txt", "one\n")
	writeFile(t, ws, "lib/two.txt", "two\n")
	writeFile(t, ws, "old name", "a\nb\nc\n")
	writeFile(t, ws, "touched", "same\n")
	writeFile(t, ws, "odd", "#!/bin/sh\nln -s /etc/passwd out\nmkfifo fifo\n")
	if err := os.Chmod(filepath.Join(ws, "odd"), 0o755); err != nil {
		t.Fatal(err)
	}
	g := newGate(t, gate.Options{Workspace: ws, Setup: gate.Setup{Steps: []gate.SetupStep{{Proposal: proposal.Proposal{ID: "deps", Phase: proposal.PhaseSetup, Run: "mkdir deps && echo made > deps/made && echo left > deps/left", Origin: proposal.OriginSetup}}}}})
	s := open(t, g, gate.SessionOptions{})
	if err := s.SetUp(t.Context(), proposal.Proposal{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "put.txt", []byte("put\n")); err != nil {
		t.Fatal(err)
	}
	script := `set -e; sed -i s/b/B/ 'old name'; rm -r lib; mkdir sub; echo new > 'sub/a
b'; ln -s put.txt link; touch touched; chmod +x touched; echo changed >> deps/made
		printf 'a\0b' > binary; truncate -s 3000000 large; cp odd gone; rm gone; touch key.txt`
	for _, p := range []proposal.Proposal{run("odd", "./odd"), run("edit", script)} {
		if r := ran(t, s, p); !r.Succeeded() {
			t.Fatalf("%+v", r)
		}
	}
	d, err := s.Diff(t.Context())
	if err != nil || d.Omitted != 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	var got []string
	for _, f := range d.Files {
		got = append(got, strings.TrimSpace(f.Kind+" "+f.Path+" "+strings.Split(f.Note, ";")[0]))
	}
	want := []string{"added binary binary", "added deps/made", "added fifo neither a file nor a symlink", "added large larger than 1 MiB", "removed lib/one.txt", "removed lib/two.txt", "added link",
		"changed old name", "added out", "added put.txt", "added sub/a\nb", "changed touched mode 0755, before 0644"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	apply := exec.Command("git", "apply", "--exclude=binary", "--exclude=large", d.Patch.File)
	apply.Dir = ws
	if out, err := apply.CombinedOutput(); err != nil {
		text, _ := os.ReadFile(d.Patch.File)
		t.Fatalf("%v\n%s\n%s", err, out, text)
	}
	for name, want := range map[string]string{"put.txt": "put\n", "old name": "a\nB\nc\n", "sub/a\nb": "new\n", "link": "put\n", "deps/made": "made\nchanged\n"} {
		if data, err := os.ReadFile(filepath.Join(ws, name)); err != nil || string(data) != want {
			t.Errorf("%q: %q, %v", name, data, err)
		}
	}
	if part, err := s.Diff(t.Context(), "sub", "link", "nothing"); err != nil || len(part.Files) != 2 || part.Patch.File == d.Patch.File {
		t.Errorf("a part: %+v, %v", part, err)
	}
	report, err := s.Close()
	if err != nil || report.Transfers[1].Kind != "diff" || report.Transfers[1].Names != len(want) || report.Transfers[1].Output.SHA256 != d.Patch.SHA256 {
		t.Errorf("%+v, %v", report.Transfers, err)
	}
	checkLog(t, report, true)
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Links of the workspace lead nowhere, before and after, and a secret of the workspace does
// not leave because a command changed the file.
func TestSessionDiffHostile(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	writeFile(t, ws, "secret.env", "TOKEN=gh"+"p_"+"aZ3kQ9rT7mW1xY5vB8nC2dF6gH4jL0pS3uEq\nmode=a\n")
	if err := os.Symlink("/etc", filepath.Join(ws, "etc")); err != nil {
		t.Fatal(err)
	}
	g := newGate(t, gate.Options{Workspace: ws})
	s := open(t, g, gate.SessionOptions{})
	r := ran(t, s, run("edit", `sed -i s/mode=a/mode=b/ secret.env; rm etc; mkdir etc; echo mine > etc/passwd`))
	if !r.Succeeded() {
		t.Fatalf("%+v", r)
	}
	d, err := s.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(d.Patch.File)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); strings.Contains(got, "p_aZ3k") || strings.Contains(got, "root:") || !strings.Contains(got, "+mode=b") || !strings.Contains(got, "deleted file mode 120000") || !strings.Contains(got, "+mine") {
		t.Errorf("%s", got)
	}
	if d.Files[len(d.Files)-1].Note != "secrets are redacted" {
		t.Errorf("%+v", d.Files)
	}
	if _, err := s.Close(); err != nil {
		t.Error(err)
	}
}
