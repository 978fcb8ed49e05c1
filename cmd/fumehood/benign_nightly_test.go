// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// benignTexts returns what reviewers and projects run: the benign corpora, and the commands of
// testdata/projects that a maintainer expects to run without set-up.
func benignTexts(t *testing.T) (texts []string) {
	t.Helper()
	texts = corpusOf(t, "../../testdata/corpus/benign/*.txt", "../../testdata/corpus/benign.txt")
	files, err := filepath.Glob("../../testdata/projects/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var project struct {
			Commands []struct {
				Run, Want string
				Setup     []string
			}
		}
		if err := yaml.Unmarshal(jobtest.ReadFile(t, file), &project); err != nil {
			t.Fatal(err)
		}
		for _, c := range project.Commands {
			if c.Want == "allow" && len(c.Setup) == 0 {
				texts = append(texts, c.Run)
			}
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// benignWorkspace makes a repository that has something of each kind, so that commands get as far
// as the programs that they start.
func benignWorkspace(t *testing.T, ws string) {
	t.Helper()
	for name, text := range map[string]string{
		"go.mod": "module example.com/app\n\ngo 1.24\n", "main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"app\") }\n", "cmd/app/main.go": "package main\n\nfunc main() { println(\"app\") }\n",
		"cmd/server/main.go": "package main\n\nfunc main() { println(\"server\") }\n", "x/x.go": "package x\n\n// X returns one.\nfunc X() int { return 1 }\n",
		"x/x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Log(X()) }\n\nfunc BenchmarkX(b *testing.B) { for b.Loop() { X() } }\n", "pkg/x/x.go": "package x\n", "internal/parse/parse.go": "package parse\n", "internal/shell/parse/parse.go": "package parse\n",
		"internal/parse/parse_test.go": "package parse\n\nimport \"testing\"\n\nfunc TestParse(t *testing.T) {}\n", "package.json": `{"name":"app","version":"1.0.0","scripts":{"test":"node --test","build":"node build.js","lint":"node build.js","test-ci":"node --test","check":"sh scripts/check.sh"}}`,
		"build.js": "require('fs').mkdirSync('dist', {recursive: true})\n", "test/a.test.js": "require('node:test')('a', () => {})\n", "index.js": "module.exports = 1\n", "package-lock.json": `{"name":"app","version":"1.0.0","lockfileVersion":3,"packages":{}}`,
		"src/main.c": "#include <stdio.h>\nint main(void) { puts(\"main\"); return 0; }\n", "main.c": "int main(void) { return 0; }\n", "src/util.c": "int util(void) { return 0; }\n", "hello.c": "int main(void) { return 0; }\n",
		"Makefile": ".PHONY: all test check lint build clean\nall build: app\napp: main.c\n\t$(CC) -o $@ $<\ntest check: app\n\t./app\n\tsh scripts/check.sh\nlint clean:\n\t@rm -f app\n", "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(app C)\nadd_executable(app main.c)\n",
		"scripts/check.sh": "#!/bin/sh\nset -e\nfor f in $(ls scripts); do basename \"$f\" | sed s/sh/x/; done\n", "run.sh": "#!/bin/bash\necho run | tr a-z A-Z\n", "setup.py": "from setuptools import setup\nsetup(name='app')\n", "app/__init__.py": "", "manage.py": "print('manage')\n", "main.py": "print('main')\n",
		"tests/__init__.py": "", "tests/test_a.py": "import subprocess\n\ndef test_a():\n    assert subprocess.run(['ls']).returncode == 0\n", "tests/runtests.py": "print('ran')\n", "tests/fixtures/a.json": `{"a": [1, 2]}`, "README.md": "# app\n\nMore text.\n", "docs/a.md": "# a\n",
		"data.csv": "a,b\n1,2\n", "data.json": `{"a": 1}`, "config.yaml": "a: 1\n", ".github/workflows/ci.yml": "on: push\njobs: {}\n", "Cargo.toml": "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "src/main.rs": "fn main() {}\n", "pom.xml": "<project/>", "A.java": "class A {}\n",
	} {
		write(t, filepath.Join(ws, name), text)
	}
	runCommand(t, exec.Command("bash", "-c", "cd "+ws+" && chmod +x run.sh scripts/*.sh && printf '%s\\n' app dist > .gitignore && git init -q -b main && git config user.name a && git config user.email a@example.com && git add -A && "+
		"git commit -qm base && git tag v1.0.0 && git update-ref refs/remotes/origin/main HEAD && git update-ref refs/remotes/origin/master HEAD && git checkout -q -b change && echo '// more' >> x/x_test.go && echo '# more' >> tests/test_a.py && git commit -qam 'x: more' && "+
		"mkdir -p old && gzip -kc data.csv > old/data.csv.gz && tar czf old/a.tgz docs && zip -qr old/a.zip docs && sqlite3 old/a.db 'create table t(a)'"))
}

// What reviewers and projects run is not refused when it runs either: no program that an allowed
// text starts, and no file that it loads. The commands succeed or fail in their own way.
func TestNightlyBenign(t *testing.T) {
	var mu sync.Mutex
	allowed, starts, judged := 0, 0, 0
	t.Run("texts", func(t *testing.T) {
		chunks := slices.Collect(slices.Chunk(benignTexts(t), 200))
		for i, chunk := range chunks {
			t.Run(fmt.Sprintf("%d of %d", i+1, len(chunks)), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				benignWorkspace(t, filepath.Join(dir, "ws"))
				report, events := runInWorkspace(t, dir, chunk, "10s")
				mu.Lock()
				defer mu.Unlock()
				for _, r := range report.Records {
					if r.Decision.Effect == proposal.Allow {
						allowed++
					}
				}
				starts += len(events)
				for _, e := range events {
					if e.Kind != proposal.EventRefused {
						continue
					}
					// Words that a text does not show are judged when they are known, and may then be refused.
					log := t.Errorf
					if rule := e.Decision.Rules[0]; !strings.HasPrefix(rule, "exec.") && !strings.HasPrefix(rule, "start.") {
						log = t.Logf
						judged++
					}
					log("%s\n\t%s: %q below %q: %s", chunk[indexOf(e.Command)], e.Decision.Rules, e.Exec.Argv, e.Exec.Chain, e.Decision.Reason.Message)
				}
			})
		}
	})
	t.Logf("%d allowed texts started and loaded %d programs; %d starts were refused for words that the texts do not show", allowed, starts, judged)
	if allowed < 1000 || starts < 3000 || judged > 3 {
		t.Error("allowed or started is less than the corpora have, or more was refused")
	}
}
