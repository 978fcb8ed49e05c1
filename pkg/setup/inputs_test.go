// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

func mapFS(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return fsys
}

// The digest covers exactly what the commands read: lock files and manifests, or all files where
// the repository's own code runs.
func TestReadInputs(t *testing.T) {
	node := map[string]string{"package.json": `{"scripts":{"test":"mocha"}}`, "package-lock.json": "{}", "src/a.js": "1", ".git/HEAD": "ref: refs/heads/main", ".git/index": "1"}
	for _, x := range []struct {
		name          string
		files         map[string]string
		commands      string // separated by semicolons
		whole, pinned bool
		more          map[string]string // in addition
		same          bool              // whether the digest is the same then
	}{
		{"npm, source changed", node, "npm ci", false, true, map[string]string{"src/a.js": "2"}, true},
		{"npm, lock changed", node, "npm ci", false, true, map[string]string{"package-lock.json": "{ }"}, false},
		{"npm, manifest below", node, "npm ci", false, true, map[string]string{"packages/a/package.json": "{}"}, false},
		{"npm, configuration", node, "npm ci", false, true, map[string]string{".npmrc": "x=y"}, false},
		{"npm without a lock", node, "npm install", false, false, nil, true},
		{"npm, install script", with(node, "package.json", `{"scripts":{"postinstall":"node build"}}`), "npm ci", true, true, map[string]string{"src/a.js": "2"}, false},
		{"npm, script below", with(node, "packages/a/package.json", `{"scripts": { "prepare" : "tsc"}}`), "npm ci", true, true, nil, true},
		{"npm, local package", with(node, "package.json", `{"dependencies":{"a":"file:./a.tgz"}}`), "npm ci", true, true, nil, true},
		{"npm, addon", with(node, "binding.gyp", `{}`), "npm ci", true, true, nil, true},
		{"npm, unreadable manifest", with(node, "package.json", "{"), "npm ci", true, true, nil, true},
		{"node_modules in the repository", with(node, "node_modules/a/x", ""), "npm ci", true, true, nil, true},
		{"commit changed", with(node, "Makefile", ""), "make deps", true, false, map[string]string{".git/HEAD": "x"}, false},
		{"index changed", with(node, "Makefile", ""), "make deps", true, false, map[string]string{".git/index": "2"}, true},
		{"unknown words", node, "", true, false, nil, true},
		{"go", map[string]string{"go.mod": "module x", "a.go": "1"}, "go mod download;go list -e -export -test -deps -f {{}} ./...", false, true, map[string]string{"a.go": "2"}, true},
		{"go.sum", map[string]string{"go.mod": "module x", "a.go": "1"}, "go mod download", false, true, map[string]string{"go.sum": "2"}, false},
		{"requirements", map[string]string{"requirements.txt": "a==1"}, "python3 -m venv .venv;.venv/bin/python -m pip install -r requirements.txt", false, false, map[string]string{"a.py": ""}, true},
		{"requirements that include", map[string]string{"requirements.txt": "-r more.txt"}, ".venv/bin/python -m pip install -r requirements.txt", true, false, map[string]string{"more.txt": ""}, false},
		{"project", map[string]string{"pyproject.toml": "[project]"}, ".venv/bin/python -m pip install -e .", true, false, nil, true},
		{"uv", map[string]string{"pyproject.toml": "[project]", "uv.lock": ""}, "uv sync --frozen", false, true, nil, true},
		{"uv, built", map[string]string{"pyproject.toml": "[build-system]", "uv.lock": ""}, "uv sync --frozen", true, true, nil, true},
		{"cargo", map[string]string{"Cargo.toml": "", "Cargo.lock": ""}, "cargo fetch --locked", false, true, nil, true},
		{"cargo, configured", map[string]string{"Cargo.toml": "", ".cargo/config.toml": ""}, "cargo fetch", true, false, nil, true},
		{"gradle", map[string]string{"build.gradle": ""}, "gradle testClasses", true, false, nil, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			var commands [][]string
			for text := range strings.SplitSeq(x.commands, ";") {
				commands = append(commands, strings.Fields(text))
			}
			a, err := ReadInputs(mapFS(x.files), commands)
			if err != nil {
				t.Fatal(err)
			}
			if (a.Whole != "") != x.whole || a.Pinned != x.pinned {
				t.Errorf("%+v", a)
			}
			all := maps.Clone(x.files)
			maps.Copy(all, x.more)
			b, err := ReadInputs(mapFS(all), commands)
			if err != nil || (a.Digest == b.Digest) != x.same {
				t.Errorf("%s and then %s, %v", a.Digest, b.Digest, err)
			}
		})
	}
}

func with(files map[string]string, name, text string) map[string]string {
	all := maps.Clone(files)
	all[name] = text
	return all
}

// What other commits may change must not come from a layer.
func TestInputsAllows(t *testing.T) {
	for name, want := range map[string][2]bool{ // of lock files only, of the whole tree
		"node_modules/a/x": {true, true}, "packages/a/node_modules/x": {true, true}, ".venv/bin/python": {true, true}, "package-lock.json": {true, true},
		"src/a.js": {false, true}, "node_modules": {false, true}, "dist/a.js": {false, true}, ".git/config": {false, false}, ".git/node_modules/x": {false, false},
	} {
		if got := [2]bool{Inputs{}.Allows(name), Inputs{Whole: "x"}.Allows(name)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
