// SPDX-License-Identifier: Apache-2.0

package order

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Commands that read run before set-up. What writes waits for it, if there is one. What is not known
// to do no more needs it.
func TestFindSetupNeed(t *testing.T) {
	for _, run := range []string{
		"git log -1", "git diff HEAD~1 -- internal", "git --no-pager log --oneline -5", "git show HEAD:go.mod", "git status --short", "git branch --show-current",
		"git grep -n node_modules", "git blame -L 1,5 a.go | head", "git -C web log -1", "git ls-files ':!node_modules'",
		"cat package.json", "ls -la", "ls src/build.rs", "which node git", "cat src/builds/a.go", "sed -n '1,20p' a.go", "awk 'NR>=3 && NR<=9' a.go", "jq .version package.json", "wc -l $(git ls-files '*.go')",
		"grep -rn TODO . --include=*.go | sort | uniq -c | head -n 5", "grep -rn x --exclude-dir=node_modules .", "git -c color.ui=never diff", "while IFS= read -r f; do cat \"$f\"; done < a", "/usr/bin/time -p cat a", "gcc -fsyntax-only -std=c11 -Iinclude -DX=1 a.c", "rg -n build src", "rg -g '!node_modules' x",
		"find . -name '*.go' -not -path './node_modules/*' | xargs wc -l", "find . -name node_modules -prune -o -name '*.ts' -print", `find . -name '*.go' -exec grep -l x {} +`,
		"cd web && cat package.json", "for f in a b; do cat \"$f\" || true; done", "diff a.txt b.txt", "timeout 5 cat a", "LC_ALL=C sort a.txt", "bash -c 'cat a | head'",
		"bash -n run.sh", "node --check a.js", "php -l a.php", "gcc -fsyntax-only -Wall a.c", "go version", "node --version && npm --version", "go env GOVERSION", "gofmt -l .", "gofmt -d a.go",
		"cat a 2>/dev/null", "cat <<'E'\nx\nE\n", `printf '%s\n' "$(git rev-parse HEAD)"`, "test -f go.mod && echo node_modules/x", "f() { cat a; }; f", "command -v node", "env", "time cat a", "node -v && npm -v", "GIT_PAGER=cat git log -3", "PAGER= git diff", "base=$(git merge-base origin/main HEAD)\ngit diff --stat \"$base\" HEAD; git diff ${base}..HEAD -- a", "git show $(git rev-parse --short HEAD~1):a",
		"diff -u <(git show HEAD:a) a", "git config --get core.autocrlf", "awk '$1 ~ /x/ {print $2}' a", "/usr/bin/time -p cat a", "gcc -fsyntax-only -x c -I include a.c", "find src/* -name x", "ls n*", "tree -L 2", "git tag", "git remote -v", "cat vendor/github.com/a/b/c.go", "ls vendor", "cat deps/lua/src/lua.c", "sort a | uniq > /dev/null", "cd /workspace/web && ls", "x=$(cat a); echo \"$x\"",
	} {
		p := proposal.Proposal{ID: "a", Run: run}
		if a := AnalyzeProposal(p); len(a.Unknowns) > 0 || FindSetupNeed(p, a).Waits {
			t.Errorf("%s: needs set-up (%+v)", run, a.Unknowns)
		}
	}
	for _, run := range []string{
		"/usr/bin/time -p -o x cat a", "xargs --process-slot-var=BASH_ENV bash -c 'cat a'", "xargs --proc GIT_DIR cat", "mvn --version", "python3 --version", "pip --version", "cargo --version", "rustc -V", "ruby -c a.rb",
		"gcc -fsyntax-only *.c", "node --check *.js", "bash -n *", "find * -name x", "find -* -name x",
		"awk '{print 1,\n2 > \"b\"}' a", "awk '# \\\n{print > \"b\"}' a", "sed ':a w b' a", "sed -n -e 'a\\' -e 's/a\nw b\n/b/p' a",
		"ls node_mod*", "find . -path './node_modules*'", "ls $(go env GOMODCACHE)", "cat $(echo ~)/x", "git log $(git rev-parse -- --output=a)", "git log $(cat a)", "read b < a; git log $b", "b=$(git rev-parse HEAD); read b < a; git log $b", "git log $(git rev-parse $x)", "git config --unset a.b", "GIT_PAGER=./x git log", "PAGER=\"$x\" git log", "git config a.b -- --list", "git config -f --list a.b c",
		"ls ~", "cat < ~/a", "x=~/a; cat \"$x\"", "cat ~root/a", "cd; ls", "cd && ls",
		"awk -f x.awk a", "sed -n -f x.sed a", "gcc -fsyntax-only -fplugin=./x.so a.c",
		"HOME=.; git log", "GIT_CONFIG_COUNT=0; git log", "git -c core.fsmonitor=./x status", "git -ccore.fsmonitor=./x status", "git --config-env=core.fsmonitor=X status", "command time -o a cat b", "env -C a cat b",
		"go test ./...", "npm test", "make", "./run.sh", "bash run.sh", "sh ./a", "python3 -c 'print(1)'", "node -e 1", "node a.js", "node --check a.js -r ./b.js", "cargo check", "pytest",
		"npx eslint .", "go vet ./...", "go list ./...", "gcc -fsyntax-only -o a @x $F", "uv run cat a", "npm --version x", "go env -w A=b", "env A=b cat a", "git config a.b c", "command make", "fd -x ./a", "date -s x", "find . -ok ./x {} +",
		"sed -n 'w b' a", "awk '{print > \"b\"}' a", "awk 'BEGIN{system(\"x\")}'",
		"find . -exec ./x {} +", "git commit -m x", "git grep -Ovi x",
		"which pytest", "command -v eslint", "pnpm --version", "gcc -fsyntax-only -Inode_modules/a a.c", "cat node_modules/a/package.json", "ls node_modules", "ls target/", "grep -rn x node_modules", "grep -e y node_modules", "find node_modules -name x", "cat .venv/pyvenv.cfg", "cd node_modules && ls",
		"cat ~/.npmrc", `ls "$HOME/go/pkg/mod"`, "cat target/surefire-reports/a.txt", "x=node_modules; cat $x/a", "cat < node_modules/a",
		"./cat a", "PATH=. cat a", "GIT_EXTERNAL_DIFF=./x git diff", "export A=b; cat a", "f() { make; }; f", "x=$(make); echo $x", "cat a | xargs ./b", "timeout 5 make", "cat a; make", "source a", "eval \"$x\"",
		"while read f; do ./x $f; done < a", "bash -c 'make'", "rg --pre ./x y",
	} {
		p := proposal.Proposal{ID: "a", Run: run}
		if a := AnalyzeProposal(p); len(a.Unknowns) == 0 && len(FindSetupNeed(p, a).Touches) == 0 {
			t.Errorf("%s: needs no set-up", run)
		}
	}
	for _, run := range []string{
		"cat a > b", "git diff > /tmp/d", "sed -i s/a/b/ a", "sort -o a a", "uniq a b", "tee a", "find . -delete", "find . -fprint a", "gcc -fsyntax-only -c a.s", "gcc -fsyntax-only a.s", "gcc -fsyntax-only a.f90", "gcc -fsyntax-only -x ada a",
		"gofmt -w a.go", "gofmt -w=true a.go", "gofmt -cpuprofile=a.go b.go", "gofmt -l *", "tree -R -L 1", "git diff --output=a", "git apply a",
		"git worktree add /tmp/b", "git tag x", "git branch x", "git branch -u x", "gcc -fsyntax-only -MD -MF b a.c", "gcc -fsyntax-only -Wp,-MD,b a.c", "gcc -fsyntax-only @x", "git branch --unset-upstream", "yq -i x a.yml", "sed -ibak s/a/b/ a", "tree -o a", "{ cat a; } > b", "gcc a.c -o a", "mkdir -p /tmp/a && cp a b /tmp/a",
	} {
		p := proposal.Proposal{ID: "a", Run: run}
		if a := AnalyzeProposal(p); len(a.Unknowns) > 0 || !FindSetupNeed(p, a).Waits || len(FindSetupNeed(p, a).Touches) > 0 {
			t.Errorf("%s: %+v", run, FindSetupNeed(p, a))
		}
	}
	for _, p := range []proposal.Proposal{
		{ID: "a", Argv: []string{"cat", "a"}, Cwd: "node_modules/x"}, {ID: "a", Code: "print(1)", Language: "python"}, {ID: "a", Argv: []string{"make"}},
		{ID: "a", Run: "gcc -fsyntax-only a.c", Env: map[string]string{"COMPILER_PATH": "."}}, {ID: "a", Run: "cat a", Outputs: []string{"node_modules/b"}},
	} {
		if !FindSetupNeed(p, AnalyzeProposal(p)).Waits {
			t.Errorf("%+v: needs no set-up", p)
		}
	}
	if p := (proposal.Proposal{ID: "a", Argv: []string{"cat", "a b"}, Cwd: "web", Env: map[string]string{"NO_COLOR": "1"}}); FindSetupNeed(p, AnalyzeProposal(p)).Waits {
		t.Error("an argv of cat needs set-up")
	}
}
