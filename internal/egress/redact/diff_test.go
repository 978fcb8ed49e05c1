// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// raw is one side of a path, with content as the sandbox leaves it.
func raw(t *testing.T, u *Redactor, side, path, content string) *proposal.FileState {
	t.Helper()
	dir, err := u.CreateRawDir()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("~1.outputs", side, path)
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return &proposal.FileState{Type: "file", Mode: 0o644, Output: proposal.Output{Path: path, Bytes: int64(len(content)), SHA256: sumOf([]byte(content)), File: name}}
}

func TestDiff(t *testing.T) {
	lanetest.SkipShort(t)
	long := strings.Repeat("x\n", maxCompared/2)
	for name, c := range map[string]struct {
		path, before, after string
		want, note          string
	}{
		"changed":                 {"f", "a\nb\n", "a\nc\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", ""},
		"added":                   {"f", "", "a\n", "new file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1,1 @@\n+a\n", ""},
		"removed":                 {"f", "a\n", "", "deleted file mode", ""},
		"secret added":            {"f", "a\n", "a\nkey = " + token + "\n", "+key = [redacted github-pat]\n", "secrets are redacted"},
		"secret removed":          {"f", "a\n" + canary + "\n", "a\n", "-[redacted CANARY]\n", "secrets are redacted"},
		"only the secret differs": {"f", canary + "\n", token + "\n", "", "secrets are redacted"},
		"binary":                  {"f", "a\x00", "b\x00", "Binary files a/f and b/f differ\n# binary; before 2 bytes, sha256 " + sumOf([]byte("a\x00")) + "; after 2 bytes, sha256 ", "binary"},
		"binary late":             {"f", "a\n", strings.Repeat("text\n", 4000) + "\x00", "# binary; ", "binary"},
		"binary with a secret":    {"f", "a\x00", "\x00" + canary, "# binary, withheld: by policy; before 2 bytes", "secrets are redacted"},
		"large":                   {"f", long, long + "y\n", "# larger than 1 MiB; before ", "larger than 1 MiB"},
		"secret in the name":      {canary, "a\n", "b\n", "diff --git a/[redacted CANARY] b/[redacted CANARY]\nBinary files", "its name contains what looks like a secret"},
		"hostile name":            {"\x1b[31m\n+++ b/x", "a\n", "b\n", `diff --git "a/\033[31m\012+++ b/x"`, ""},
		"secret across two hunks": {"f", "1\n" + canary + "\n2\n", "1\n" + canary + "\n3\n", " [redacted CANARY]\n", "secrets are redacted"},
	} {
		t.Run(name, func(t *testing.T) {
			u := redactor(t, &asked{})
			f := proposal.FileDiff{Path: c.path}
			if c.before != "" {
				f.Old = raw(t, u, "old", c.path, c.before)
			}
			if c.after != "" {
				f.New = raw(t, u, "new", c.path, c.after)
			}
			d, err := u.Diff(t.Context(), "~1", proposal.Diff{Files: []proposal.FileDiff{f}, Omitted: 3}, DiffBounds{})
			if err != nil || len(d.Files) != 1 || d.Omitted != 3 {
				t.Fatalf("%+v, %v", d, err)
			}
			got := d.Files[0]
			if !strings.Contains(got.Text, c.want) || !strings.Contains(got.Note, c.note) || (got.Note == "") != (c.note == "") {
				t.Errorf("note %q\n%s", got.Note, got.Text)
			}
			if strings.Contains(got.Text+got.Path, canary) || strings.Contains(got.Text, token) {
				t.Errorf("a secret leaves:\n%s", got.Text)
			}
			if files := left(t, u.o.Artifacts); len(files) != 1 || files["~1.diff"] != got.Text || d.Patch.SHA256 != sumOf([]byte(got.Text)) || d.Patch.Bytes != int64(len(got.Text)) {
				t.Errorf("artifacts: %q, %+v", files, d.Patch)
			}
			if rest := left(t, u.raw.Path); len(rest) > 1 { // the lease
				t.Errorf("not searched: %q", rest)
			}
		})
	}
}

// Files that are the same, such as one that was only touched, are not in a diff.
func TestDiffSame(t *testing.T) {
	u := redactor(t, &asked{})
	d, err := u.Diff(t.Context(), "~1", proposal.Diff{Files: []proposal.FileDiff{
		{Path: "f", Old: raw(t, u, "old", "f", "a\n"), New: raw(t, u, "new", "f", "a\n")},
		{Path: "b", Old: raw(t, u, "old", "b", "\x00"), New: raw(t, u, "new", "b", "\x00")},
		{Path: "l", Old: &proposal.FileState{Type: "symlink", Target: "x"}, New: &proposal.FileState{Type: "symlink", Target: "x"}},
	}}, DiffBounds{})
	if err != nil || len(d.Files) > 0 || d.Patch.Bytes > 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

// The texts are bounded together; the files are still named.
func TestDiffBounded(t *testing.T) {
	lanetest.SkipShort(t)
	u := redactor(t, &asked{})
	var in proposal.Diff
	for _, name := range strings.Split("abcdefghij", "") {
		in.Files = append(in.Files, proposal.FileDiff{Path: name, New: raw(t, u, "new", name, strings.Repeat("01234567890123456789012345678901234567890123456789012345678901\n", maxCompared/63))})
	}
	d, err := u.Diff(t.Context(), "~1", in, DiffBounds{})
	if err != nil || len(d.Files) != 10 || d.Patch.Bytes > maxPatch {
		t.Fatalf("%d files, %+v, %v", len(d.Files), d.Patch, err)
	}
	if f := d.Files[9]; f.Text != "" || !strings.Contains(f.Note, "larger than 8 MiB together") || f.New.SHA256 == "" {
		t.Errorf("%+v", f)
	}
}

// A caller's bounds leave out texts too, and the patch is exactly the texts that are left.
func TestDiffWithinBounds(t *testing.T) {
	u := redactor(t, &asked{})
	var in proposal.Diff
	for name, size := range map[string]int{"a": 100, "b": 5000, "c": 100, "d": 1000} {
		in.Files = append(in.Files, proposal.FileDiff{Path: name, New: raw(t, u, "new", name, strings.Repeat("x", size)+"\n")})
	}
	slices.SortFunc(in.Files, func(a, b proposal.FileDiff) int { return strings.Compare(a.Path, b.Path) })
	d, err := u.Diff(t.Context(), "~1", in, DiffBounds{File: 2 << 10, All: 1 << 10})
	if err != nil || len(d.Files) != 4 {
		t.Fatalf("%+v, %v", d, err)
	}
	var all string
	for i, want := range []string{"", "larger than 2 KiB", "", "larger than 1 KiB together"} {
		f := d.Files[i]
		all += f.Text
		if (f.Text == "") != (want != "") || !strings.Contains(f.Note, want) {
			t.Errorf("%s: note %q, %d bytes of text", f.Path, f.Note, len(f.Text))
		}
	}
	if d.Patch.SHA256 != sumOf([]byte(all)) || d.Patch.Bytes != int64(len(all)) {
		t.Errorf("the patch is %+v", d.Patch)
	}
}

// Policy decides about each file, and if it cannot, nothing leaves.
func TestDiffPolicy(t *testing.T) {
	both := func(u *Redactor) proposal.Diff {
		return proposal.Diff{Files: []proposal.FileDiff{{Path: "f", Old: raw(t, u, "old", "f", "first\n"), New: raw(t, u, "new", "f", "second\n")}}}
	}
	a := &asked{answer: func(x points.Outgoing) (points.OutputDecision, error) {
		return points.OutputDecision{Effect: proposal.Deny, Reason: &proposal.Reason{Rule: "mine", Message: "no files"}}, nil
	}}
	u := redactor(t, a)
	d, err := u.Diff(t.Context(), "~1", both(u), DiffBounds{})
	if err != nil || !strings.Contains(d.Files[0].Note, "withheld: mine: no files") || strings.Contains(d.Files[0].Text, "first") || len(a.list) != 2 || a.list[0].Name != "f" {
		t.Errorf("%+v, %v, %+v", d, err, a.list)
	}
	u = redactor(t, &asked{answer: func(points.Outgoing) (points.OutputDecision, error) {
		return points.OutputDecision{}, errors.New("no answer")
	}})
	if d, err := u.Diff(context.Background(), "~1", both(u), DiffBounds{}); err == nil || len(d.Files) > 0 || len(left(t, u.o.Artifacts)) > 0 {
		t.Errorf("%+v, %v, %q", d, err, left(t, u.o.Artifacts))
	}
}
