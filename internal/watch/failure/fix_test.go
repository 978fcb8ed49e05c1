// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// What formatters print is read as the lines to replace, with their numbers.
func TestFixes(t *testing.T) {
	o := Options{Tree: NewTree([]string{"src/lib.rs", "calc.go", "a.py", "x.sh"}, false)}
	for name, test := range map[string]struct{ out, want string }{
		"rustfmt": {"Diff in /workspace/src/lib.rs:2:\n \n /// Returns the sum.\n pub fn add(a: i32, b: i32) -> i32 {\n-    a+b\n+    a + b\n }\n \n /// Returns nothing.\n" +
			"Diff in /workspace/src/lib.rs:11:\n }\n \n /// Returns one.\n-pub fn one() -> i32 { 1 }\n+pub fn one() -> i32 {\n+    1\n+}\n pub fn two() -> i32 {\n-    let x = vec![1,2,\n-        3];\n+    let x = vec![1, 2, 3];\n \n     x.len() as i32\n }\n",
			`src/lib.rs:5 ["    a+b"] ["    a + b"]; src/lib.rs:14 ["pub fn one() -> i32 { 1 }"] ["pub fn one() -> i32 {" "    1" "}"]; src/lib.rs:16 ["    let x = vec![1,2," "        3];"] ["    let x = vec![1, 2, 3];"]`},
		"gofmt": {"diff calc.go.orig calc.go\n--- calc.go.orig\n+++ calc.go\n@@ -1,3 +1,4 @@\n package calc\n+\n func a() {}\n-func b(){}\n+func b() {}\n",
			`calc.go:1 ["package calc"] ["package calc" ""]; calc.go:3 ["func b(){}"] ["func b() {}"]`},
		"black":              {"--- a.py\t2026-11-27 10:00:00.000000+00:00\n+++ a.py\t2026-11-27 10:00:01.000000+00:00\n@@ -1 +1,2 @@\n+import os\n x = 1\n", `a.py:1 ["x = 1"] ["import os" "x = 1"]`},
		"git diff":           {"diff --git a/x.sh b/x.sh\nindex 1..2 100644\n--- a/x.sh\n+++ b/x.sh\n@@ -2,2 +2 @@ main()\n echo a\n-echo b\n", `x.sh:3 ["echo b"] []`},
		"two files":          {"--- a.py\n+++ x.sh\n@@ -1 +1 @@\n-a\n+b\n", ""},
		"an unknown file":    {"--- b.py\n+++ b.py\n@@ -1 +1 @@\n-a\n+b\nDiff in /workspace/b.rs:1:\n-a\n+b\n", ""},
		"only added":         {"--- a.py\n+++ a.py\n@@ -0,0 +1 @@\n+a\n", ""},
		"a long one":         {"--- a.py\n+++ a.py\n@@ -1,200 +1 @@\n" + strings.Repeat("-a\n", 200) + "+b\n", ""},
		"a hunk of no lines": {"--- a.py\n+++ a.py\n@@ -1,0 +1,0 @@\n@@ -5 +5 @@\n-a\n+b\n", `a.py:5 ["a"] ["b"]`},
	} {
		r := &proposal.Result{Stdout: proposal.Stream{Head: []byte(test.out), Bytes: int64(len(test.out))}}
		var got []string
		for _, f := range SuggestedFixes(r, o) {
			got = append(got, fmt.Sprintf("%s:%d %q %q", f.File, f.Start, f.Old, f.New))
		}
		if s := strings.Join(got, "; "); s != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, s, test.want)
		}
	}
	if list := SuggestedFixes(&proposal.Result{}, Options{}); list != nil {
		t.Errorf("without known files: %v", list)
	}
}

// ESLint's ranges are of the source that it prints, in UTF-16.
func TestFixesOfJSON(t *testing.T) {
	o := Options{Tree: NewTree([]string{"a.js"}, false)}
	const file = `[{"filePath":"/workspace/a.js","source":"let a = '😀', b = !!!a;;\nb();\n","messages":[%s]}]`
	for fix, want := range map[string][]Fix{
		`{"fix":{"range":[18,21],"text":"!"}}`: {{File: "a.js", Start: 1, Old: []string{"let a = '😀', b = !!!a;;"}, New: []string{"let a = '😀', b = !a;;"}}},
		`{"fix":{"range":[24,29],"text":""}}`:  {{File: "a.js", Start: 1, Old: []string{"let a = '😀', b = !!!a;;", "b();"}, New: []string{"let a = '😀', b = !!!a;;"}}},
		`{"fix":{"range":[29,24],"text":""}}`:  nil,
		`{"fix":{"range":[24,99],"text":""}}`:  nil,
		`{"fix":{"range":[1],"text":""}}`:      nil,
		`{"fix":{"range":[1,2]}}`:              nil,
		`{"message":"without a fix"}`:          nil,
	} {
		r := &proposal.Result{Stdout: proposal.Stream{Head: []byte(fmt.Sprintf(file, fix))}}
		if diff := cmp.Diff(want, SuggestedFixes(r, o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fix, diff)
		}
	}
	if got := SuggestedFixes(&proposal.Result{Stdout: proposal.Stream{Head: []byte(strings.ReplaceAll(fmt.Sprintf(file, `{"fix":{"range":[0,1],"text":""}}`), "a.js", "b.js"))}}, o); got != nil {
		t.Errorf("of a file that is not known: %+v", got)
	}
}
