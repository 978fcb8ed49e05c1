// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestPosition(t *testing.T) {
	d := must(ParseDiff([]byte(`diff --git a/old.go b/new.go
similarity index 80%
rename from old.go
rename to new.go
index 1..2 100644
--- a/old.go
+++ b/new.go
@@ -10,7 +10,8 @@ func a() {
 1
 2
 3
-4
+four
+five
 5
 6
 7
@@ -40,3 +41,2 @@
 x
-y
 z
\ No newline at end of file
diff --git a/gone.go b/gone.go
deleted file mode 100644
index 1..0
--- a/gone.go
+++ /dev/null
@@ -1,2 +0,0 @@
-a
-b
diff --git a/moved.go b/same.go
similarity index 100%
rename from moved.go
rename to same.go
diff --git a/p.png b/p.png
index 1..2 100644
Binary files a/p.png and b/p.png differ
diff --git "a/sp\303\244t.go" "b/sp\303\244t.go"
new file mode 100644
index 0..1
--- /dev/null
+++ "b/sp\303\244t.go"
@@ -0,0 +1 @@
+a
`)))
	for _, c := range []struct {
		file        string
		start, line int
		side, want  string
	}{
		{"new.go", 0, 13, "", "new.go 0 13 RIGHT"},
		{"new.go", 0, 10, "", "new.go 0 10 RIGHT"},
		{"new.go", 0, 17, "", "new.go 0 17 RIGHT"},
		{"new.go", 0, 18, "", "not in the diff"},
		{"new.go", 0, 9, "", "not in the diff"},
		{"new.go", 13, 14, "", "new.go 13 14 RIGHT"},
		{"new.go", 14, 14, "", "new.go 0 14 RIGHT"},
		{"new.go", 14, 41, "", "not in the diff"},
		{"new.go", 9, 12, "", "not in the diff"},
		{"old.go", 0, 13, SideBase, "new.go 0 13 LEFT"},
		{"old.go", 0, 17, SideBase, "not in the diff"},
		{"old.go", 0, 13, "", "does not change this file"},
		{"gone.go", 0, 2, SideBase, "gone.go 0 2 LEFT"},
		{"gone.go", 0, 2, "", "not in the diff"},
		{"same.go", 0, 1, "", "no lines"},
		{"p.png", 0, 1, "", "no lines"},
		{"other.go", 0, 1, "", "does not change this file"},
		{"spät.go", 0, 1, "", "spät.go 0 1 RIGHT"},
		{"spät.go", 0, 1, SideBase, "not in the diff"},
	} {
		p, why := d.Position(proposal.ReviewFinding{File: c.file, Line: c.line, Start: c.start, Side: c.side})
		got := why
		if p != nil {
			got = fmt.Sprintf("%s %d %d %s", p.Path, p.StartLine, p.Line, p.Side)
		}
		if (p == nil) != (why != "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestReplace(t *testing.T) {
	for _, c := range []struct {
		text        string
		start, line int
		with, want  string
	}{
		{"a\nb\nc\n", 0, 2, "B\n", "a\nB\nc\n"},
		{"a\nb\nc\n", 2, 3, "X", "a\nX\n"},
		{"a\nb\nc\n", 1, 3, "", ""},
		{"a\nb", 0, 2, "B\n", "a\nB\n"},
		{"a\r\nb\r\n", 0, 1, "A\nAA\n", "a1"},
		{"a\n", 0, 2, "B\n", "error"},
		{"", 0, 1, "B\n", "error"},
	} {
		got, err := replaceLines(c.text, proposal.ReviewFinding{Start: c.start, Line: c.line, Suggestion: &c.with})
		if c.want == "a1" {
			c.want = "A\r\nAA\r\nb\r\n"
		}
		if c.want == "error" != (err != nil) || err == nil && got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// A suggestion changes one file of the copy, and nothing through a link.
func TestApply(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	dir := t.TempDir()
	for path, text := range map[string]string{outside: "a\n", filepath.Join(dir, "f"): "a\nb\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": outside, "inner": "f"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	with := "X\n"
	for _, name := range []string{"link", "inner", ".", "missing", "../outside"} {
		if err := applySuggestion(dir, proposal.ReviewFinding{File: name, Line: 1, Suggestion: &with}); err == nil {
			t.Errorf("%s is changed", name)
		}
	}
	if err := applySuggestion(dir, proposal.ReviewFinding{File: "f", Line: 1, Suggestion: &with}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{outside: "a\n", filepath.Join(dir, "f"): "X\nb\n"} {
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// What reads hostile bytes neither panics nor places a comment outside the hunks.
func FuzzPosition(f *testing.F) {
	f.Add("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a", 2)
	f.Fuzz(func(t *testing.T, text, file string, line int) {
		d, err := ParseDiff([]byte(text))
		if err != nil {
			return
		}
		for _, side := range []string{SideHead, SideBase} {
			p, why := d.Position(proposal.ReviewFinding{File: file, Line: line, Side: side})
			if (p == nil) != (why != "") {
				t.Fatalf("%v, %q", p, why)
			}
			if p != nil && (p.Line < 1 || len(d.files[p.Path].TextFragments) == 0) {
				t.Fatalf("%+v", p)
			}
		}
	})
}
