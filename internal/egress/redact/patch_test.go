// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func file(mode uint32, content string) *patchSide {
	return &patchSide{FileState: &proposal.FileState{Type: "file", Mode: mode}, Content: []byte(content)}
}

func link(target string) *patchSide {
	return &patchSide{FileState: &proposal.FileState{Type: "symlink", Mode: 0o777}, Content: []byte(target)}
}

// git applies the text to the tree before, and gets the tree after.
func TestGitApplies(t *testing.T) {
	lanetest.SkipShort(t)
	long := strings.Repeat("line\n", 40)
	for path, c := range map[string]struct{ before, after *patchSide }{
		"added":                    {nil, file(0o644, "a\nb\n")},
		"dir/deep/added":           {nil, file(0o600, "x\n")},
		"empty":                    {nil, file(0o644, "")},
		"emptied":                  {file(0o644, "x\n"), file(0o644, "")},
		"removed":                  {file(0o644, "a\n"), nil},
		"changed":                  {file(0o644, long+"x\n"+long), file(0o644, "first\n"+long+"y\n"+long)},
		"no newline":               {file(0o644, "a"), file(0o644, "a\nb")},
		"newline added":            {file(0o644, "a"), file(0o644, "a\n")},
		"now executable":           {file(0o644, "a\n"), file(0o755, "a\n")},
		"executable and changed":   {file(0o644, "a\n"), file(0o755, "b\n")},
		"carriage return":          {file(0o644, "a\r\nb\n"), file(0o644, "a\nb\r\n")},
		"link":                     {nil, link("added")},
		"link moved":               {link("added"), link("/etc/passwd")},
		"link instead":             {file(0o644, "a\n"), link("b")},
		"file instead":             {link("b"), file(0o644, "a\n")},
		"sp ace":                   {file(0o644, "a\n"), file(0o644, "b\n")},
		"tab\there":                {file(0o644, "a\n"), file(0o644, "b\n")},
		"new\nline":                {nil, file(0o644, "b\n")},
		`quote" and \`:             {file(0o644, "a\n"), nil},
		"ünï":                      {file(0o644, "a\n"), file(0o644, "b\n")},
		"bad\xff utf-8":            {nil, file(0o644, "b\n")},
		"\u202eright to left":      {nil, file(0o644, "b\n")},
		"esc\x1b[31m":              {file(0o644, "a\n"), file(0o644, "b\n")},
		"forged":                   {file(0o644, "a\n"), file(0o644, "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")},
		"ends like a lost line":    {file(0o644, "a\n"), file(0o644, "a\n\\ No newline at end of file\n")},
		"many\nlines\nin its name": {file(0o644, "a\n"), file(0o755, "a\n")},
	} {
		t.Run(strings.ToValidUTF8(path, "?"), func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, path), c.before)
			text := patchOf(path, c.before, c.after)
			apply := exec.Command("git", "apply", "--verbose", "-")
			apply.Dir, apply.Stdin = dir, strings.NewReader(text)
			if out, err := apply.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, text)
			}
			check(t, filepath.Join(dir, path), c.after)
		})
	}
}

func write(t *testing.T, name string, s *patchSide) {
	t.Helper()
	var err error
	switch {
	case s == nil:
		return
	case s.Type == "symlink":
		err = os.Symlink(string(s.Content), name)
	default:
		err = os.WriteFile(name, s.Content, os.FileMode(s.Mode))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, name string, s *patchSide) {
	t.Helper()
	info, err := os.Lstat(name)
	switch {
	case s == nil:
		if !os.IsNotExist(err) {
			t.Errorf("%v is left", info)
		}
	case err != nil:
		t.Error(err)
	case s.Type == "symlink":
		if target, err := os.Readlink(name); err != nil || target != string(s.Content) {
			t.Errorf("a link to %q, %v", target, err)
		}
	default:
		data, err := os.ReadFile(name)
		if err != nil || string(data) != string(s.Content) || info.Mode().IsRegular() == (s.Type != "file") || info.Mode()&0o100 != os.FileMode(s.Mode)&0o100 {
			t.Errorf("%v %q, %v", info.Mode(), data, err)
		}
	}
}

// A side that is not shown has no content in the text, and what is not a file has no text.
func TestHidden(t *testing.T) {
	secret := file(0o644, "secret\n")
	secret.Hidden = true
	for want, got := range map[string]string{
		"diff --git a/x b/x\nnew file mode 100644\nBinary files /dev/null and b/x differ\n":     patchOf("x", nil, secret),
		"diff --git a/x b/x\ndeleted file mode 100644\nBinary files a/x and /dev/null differ\n": patchOf("x", secret, nil),
		"diff --git a/x b/x\nBinary files a/x and b/x differ\n":                                 patchOf("x", secret, file(0o644, "y\n")),
		"": patchOf("x", nil, &patchSide{FileState: &proposal.FileState{Type: "other"}}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A line of a name never becomes a line of the text.
func FuzzText(f *testing.F) {
	f.Add("x\n+++ b/y", "a\n", "b\n")
	f.Fuzz(func(t *testing.T, path, before, after string) {
		text := patchOf(path, file(0o644, before), file(0o755, after))
		header, _, _ := strings.Cut(text, "\n@@")
		if n := strings.Count(header, "\n"); n > 4 {
			t.Errorf("the header has %d lines:\n%s", n, header)
		}
	})
}
