// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// workspace makes a directory with files, and links of which the text begins with "->".
func workspace(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		change(t, dir, name, text)
	}
	return dir
}

func change(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path))
	if target, link := strings.CutPrefix(text, "->"); link {
		err = errors.Join(err, os.Symlink(target, path))
	} else {
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func openTree(t *testing.T, dir string) *Tree {
	t.Helper()
	tree, err := OpenTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

// has reports whether the workspace dir has inputs, and fails if that cannot be said.
func has(t *testing.T, dir string, inputs []Input) bool {
	t.Helper()
	same, err := openTree(t, dir).HasInputs(inputs)
	if err != nil {
		t.Error(err)
	}
	return same
}

// A workspace is used for another's set-up only if all that set-up learned of it is the same, and
// no other change matters.
func TestInputs(t *testing.T) {
	files := map[string]string{"package.json": "{}", "src/a.js": "1", "src/b.js": "22", "link": "->src/a.js", "dir": "->src", ".git/HEAD": "ref: refs/heads/main\n",
		".git/refs/heads/main": "1", ".git/index": "x", "empty/x": "", "weird/\xff\n": "1", "go/a.go": "package a\n", "go/c.go": "package a\nimport `C`\n", "go/d.go": "->../data", "data": "package a\n", "inc/x.h": "1"}
	reads := []Read{
		{Path: "package.json", Content: true}, {Path: "src/b.js"}, {Path: "missing"}, {Path: "src", Content: true}, {Path: "link"}, {Path: "empty"}, {Path: "weird/\xff\n", Content: true}, {Path: "weird/\xfe"},
		{"go/a.go", true, true}, {"go/c.go", true, true}, {"go/d.go", true, true}, {"go", true, true}, {"inc/x.h", true, true}, {"inc/y.h", false, true}, {".git/index", true, true},
	}
	for _, x := range []struct {
		name, file, text string
		same             bool
	}{
		{"nothing", "", "", true},
		{"a file that was read", "package.json", "{ }", false},
		{"a byte of it", "package.json", "[]", false},
		{"another file's content", "src/a.js", "2", true},
		{"content of one that was only looked up", "src/b.js", "33", true},
		{"its size", "src/b.js", "3", false},
		{"its type", "src/b.js", "->a.js", false},
		{"what was not there", "missing", "", false},
		{"a list", "src/c.js", "", false},
		{"a Go file of a cache", "go/a.go", "2", true},
		{"one that uses C", "go/c.go", "package a\n", false},
		{"a link of that name", "go/d.go", "->../src/a.js", false},
		{"a list of a cache", "go/b.go", "2", true},
		{"a header of a cache", "inc/x.h", "2", false},
		{"a header that was not there", "inc/y.h", "2", false},
		{"a directory that was only looked up", "empty/y", "", true},
		{"a directory that became a link", "empty", "->src", false},
		{"a directory above", "weird", "->src", false},
		{"a link's target", "link", "->src/b.js", false},
		{"a link that was not looked up", "dir", "->empty", true},
		{"a name that is no text", "weird/\xff\n", "2", false},
		{"another one", "weird/\xfe", "", false},
		{"the commit", ".git/HEAD", "ref: refs/heads/next\n", true},
		{"a directory at a file's path", "package.json/x", "", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := workspace(t, files)
			inputs, err := openTree(t, dir).InputsOf(reads)
			if err != nil {
				t.Fatal(err)
			}
			if other := workspace(t, files); !has(t, other, inputs) {
				t.Fatalf("a copy has not %q", inputs)
			}
			if x.name == "a directory at a file's path" || x.name == "a directory that became a link" || x.name == "a directory above" {
				if err := os.RemoveAll(filepath.Join(dir, strings.Split(x.file, "/")[0])); err != nil {
					t.Fatal(err)
				}
			}
			if x.file != "" {
				change(t, dir, x.file, x.text)
			}
			if got := has(t, dir, inputs); got != x.same {
				t.Errorf("%v for %q", got, inputs)
			}
		})
	}
}

// The states have the form that Input describes.
func TestInputStates(t *testing.T) {
	dir := workspace(t, map[string]string{"d/f": "abc", "l": "->d/f"})
	if err := errors.Join(os.Chmod(filepath.Join(dir, "d/f"), 0o750), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	got, err := openTree(t, dir).InputsOf([]Read{{Path: "d/f", Content: true}, {Path: "d", Content: true}, {Path: "l"}, {Path: "d/f/x"}, {Path: "no/thing"}})
	want := []Input{{".", "dir 755"}, {"d", "list 755 HASH"}, {"d/f", "content 750 3 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"d/f/x", "absent"}, {"l", `link "d/f"`}, {"no", "absent"}, {"no/thing", "absent"}}
	for i := range got {
		if head, _, found := strings.Cut(got[i].State, " 755 "); found {
			got[i].State = head + " 755 HASH"
		}
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// A set-up that read the repository's store depends on the commit, and not on what differs from
// clone to clone.
func TestInputsOfGit(t *testing.T) {
	files := map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": "1", ".git/index": "x", ".git/objects/pack/p": "1", "a": "1"}
	dir := workspace(t, files)
	inputs, err := openTree(t, dir).InputsOf([]Read{{Path: ".git", Content: true}, {Path: ".git/index", Content: true}, {Path: ".git/objects/pack", Content: true}})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := openTree(t, dir).AllInputs()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]bool{ // as many as were read, and all
		".git/index": {true, true}, ".git/objects/pack/q": {true, true}, ".git/HEAD": {false, false}, ".git/refs/heads/main": {false, false}, ".git/refs/tags/v1": {false, false},
		".git/packed-refs": {false, false}, "a": {true, false}, "b": {true, false},
	} {
		other := workspace(t, files)
		change(t, other, name, "another")
		if got := [2]bool{has(t, other, inputs), has(t, other, whole)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// What changed since set-up began is found, whatever changed it and whatever time it has then.
func TestInputsChangedMeanwhile(t *testing.T) {
	reads := []Read{{Path: "a", Content: true}, {Path: "d/b"}, {Path: "none"}}
	for name, edit := range map[string]func(dir string) error{
		"":                       func(string) error { return nil },
		"a file, with its times": func(dir string) error { return rewrite(filepath.Join(dir, "a")) },
		"back and forth": func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "x")), os.Rename(filepath.Join(dir, "x"), filepath.Join(dir, "a")))
		},
		"a file that is gone": func(dir string) error { return os.Remove(filepath.Join(dir, "d/b")) },
		"a file that was not there": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "none"), nil, 0o600), os.Remove(filepath.Join(dir, "none")))
		},
		"a directory": func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "e")), os.Rename(filepath.Join(dir, "e"), filepath.Join(dir, "d")))
		},
	} {
		dir := workspace(t, map[string]string{"a": "a", "d/b": "b"})
		tree := openTree(t, dir)
		tree.RefuseChangesSince(WaitForClockTick())
		if err := edit(dir); err != nil {
			t.Fatal(err)
		}
		_, err := tree.InputsOf(reads)
		all := openTree(t, dir)
		all.RefuseChangesSince(tree.before)
		_, errAll := all.AllInputs()
		if want := name != ""; errors.Is(err, ErrChanged) != want || errors.Is(errAll, ErrChanged) != want {
			t.Errorf("%s: %v, %v", name, err, errAll)
		}
	}
}

// rewrite changes a file and gives it the time that it had.
func rewrite(path string) error {
	old := time.Now().Add(-time.Hour)
	return errors.Join(os.WriteFile(path, []byte("b"), 0o644), os.Chtimes(path, old, old))
}

// What is not a file of the workspace gives no Inputs.
func TestInputsRefused(t *testing.T) {
	dir := workspace(t, map[string]string{"a": "a", "l": "->/etc"})
	for _, name := range []string{"../x", "/etc/passwd", "", "a/../b", "..", "l/passwd"} {
		inputs, err := openTree(t, dir).InputsOf([]Read{{Path: name, Content: true}})
		if err == nil {
			t.Errorf("%q: %q", name, inputs)
		}
		if same, _ := openTree(t, dir).HasInputs([]Input{{name, "absent"}}); same {
			t.Errorf("%q: it is the same", name)
		}
	}
	if same, err := openTree(t, dir).HasInputs(nil); same || err != nil {
		t.Errorf("no inputs: %v, %v", same, err)
	}
}

// A layer may have only what is over the same in each workspace that it is used for.
func TestCovers(t *testing.T) {
	inputs, err := openTree(t, workspace(t, map[string]string{"src/a": "a"})).InputsOf([]Read{{Path: "src/a", Content: true}, {Path: "new"}, {Path: "src/b"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"src/a": true, "src/b": true, "src/c": false, "new": true, "new/x/y": true, "other": false, "src": true, ".": true, ".git": false, ".git/x": false, "../x": false} {
		if got := CoversFile(inputs, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	whole := []Input{{".", "tree x"}}
	if !CoversFile(whole, "other") || CoversFile(whole, ".git/hooks/x") {
		t.Error("of all files")
	}
}

func TestIsPinned(t *testing.T) {
	for text, want := range map[string]bool{
		"npm ci": true, "npm install": false, "npm install --prefix x pnpm@9.1.2": true, "pnpm install --frozen-lockfile": true, "pnpm install": false, "go mod download": true,
		"go list -e -export ./...": true, "go test -c -o /dev/null .": true, "go test .": false, "cargo fetch": false, "cargo fetch --locked": true, "uv sync --frozen": true, "python3 -m venv .venv": true,
		".venv/bin/python -m pip install -r requirements.txt": false, "make deps": false, "": false, "npm cider": false,
		"bun install --frozen-lockfile": true, "bun install": false, "dotnet restore --locked-mode": true, "dotnet restore": false, "mix deps.get": false,
		"composer install --no-interaction --no-progress --prefer-dist": true, "composer update --no-interaction --no-progress --prefer-dist": false,
	} {
		if got := IsPinned(strings.Fields(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
