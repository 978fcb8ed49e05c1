// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package snippet

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/shell/snippet/grammar"
)

// pythonImports prints the imports that CPython's own parser finds in each given
// file, and null for a file that it does not understand.
const pythonImports = `
import ast, json, sys
for name in sys.stdin.read().splitlines():
    try: tree = ast.parse(open(name, encoding="utf-8").read())
    except Exception: print(json.dumps([name, None])); continue
    found = set()
    for n in ast.walk(tree):
        if isinstance(n, ast.Import): found.update(a.name for a in n.names)
        elif isinstance(n, ast.ImportFrom): found.add("." * n.level + (n.module or ""))
    print(json.dumps([name, sorted(found)]))
`

// calls import too: we follow them, CPython's parser does not.
var calls = regexp.MustCompile(`(__import__|import_module|exec|eval|compile|run_module)\(`)

// TestE2EPythonImportsAgree compares the imports found in the standard library's own
// files, and in its tests if they are installed, with those CPython finds.
func TestE2EPythonImportsAgree(t *testing.T) {
	out, err := exec.Command("python3", "-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])").Output()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, pattern := range []string{"*.py", "*/*.py", "*/*/*.py"} {
		more, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	files = slices.DeleteFunc(files, func(name string) bool {
		info, err := os.Stat(name)
		return err != nil || info.Size() > MaxSize || strings.Contains(name, "site-packages")
	})
	const limit = 500
	files = files[:min(limit, len(files))]
	if len(files) < 200 {
		t.Fatalf("only %d files", len(files))
	}
	cmd := exec.Command("python3", "-c", pythonImports)
	cmd.Stdin = strings.NewReader(strings.Join(files, "\n"))
	if out, err = cmd.Output(); err != nil {
		t.Fatal(err)
	}
	compared, notUnderstood := 0, 0
	for line := range bytes.Lines(out) {
		var pair [2]json.RawMessage
		var name string
		var want []string
		if json.Unmarshal(line, &pair) != nil || json.Unmarshal(pair[0], &name) != nil || json.Unmarshal(pair[1], &want) != nil {
			t.Fatalf("%q", line)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := Analyze("python", string(text))
		switch {
		case want == nil:
			continue
		case !s.Complete && !slices.Contains(codes(s), "encoding"):
			notUnderstood++
			t.Logf("%s: %v", name, codes(s)[:1])
			continue
		}
		compared++
		for _, module := range want {
			if !slices.Contains(s.Imports, module) {
				t.Errorf("%s: CPython finds %q, and we do not", name, module)
			}
		}
		if len(s.Imports) > len(want) && !calls.Match(text) {
			t.Errorf("%s: %v, CPython says %v", name, s.Imports, want)
		}
	}
	t.Logf("%d files agree, %d not understood here", compared, notUnderstood)
	if notUnderstood*50 > compared {
		t.Errorf("%d of %d files are not understood", notUnderstood, compared)
	}
}

// TestE2ENodeAgrees checks that Node agrees on which of the samples, and of their
// halves, are JavaScript at all.
func TestE2ENodeAgrees(t *testing.T) {
	understood := 0
	for _, list := range []string{"ordinary.txt", "hostile.txt"} {
		for _, c := range samples(t, list) {
			if c.language != "javascript" || strings.Contains(c.text, "<div") || strings.Contains(c.text, "await ") {
				continue
			}
			for _, text := range []string{c.text, c.text[:len(c.text)/2]} {
				tree, err := grammar.Parse(t.Context(), "javascript", text)
				if err != nil {
					t.Fatal(err)
				}
				kind := "--input-type=commonjs"
				if strings.Contains(text, "import ") {
					kind = "--input-type=module"
				}
				cmd := exec.Command("node", kind, "--check", "-")
				cmd.Stdin = strings.NewReader(text)
				if cmd.Run() != nil {
					continue
				}
				understood++
				if tree.Broken {
					t.Errorf("Node understands what the grammar does not:\n%s", text)
				}
			}
		}
	}
	if understood < 40 {
		t.Errorf("Node understands only %d", understood)
	}
}
