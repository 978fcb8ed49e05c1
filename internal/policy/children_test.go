// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// programSet is one of the sets of tools in policies/lib/programs.rego.
func programSet(t *testing.T, name string) []string {
	t.Helper()
	text, err := policies.FS.ReadFile("lib/programs.rego")
	if err != nil {
		t.Fatal(err)
	}
	body := regexp.MustCompile(`(?ms)^` + name + ` := \{(.*?)^\}`).FindSubmatch(text)
	if body == nil {
		t.Fatalf("no set %s", name)
	}
	var names []string
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllSubmatch(body[1], -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// Every tool that policy allows starts freely, has a list, or has options and starts nothing;
// only runners, which run the repository's code, and shells start freely.
func TestEveryToolHasChildren(t *testing.T) {
	plain := " " + strings.Join(programSet(t, "plain"), " ") + " "
	runners := " " + strings.Join(programSet(t, "runners"), " ") + " bash sh dash "
	for _, set := range []string{"readers", "wrappers", "runners", "changers", "judged"} {
		for _, name := range programSet(t, set) {
			known, free := facts.HasChildren(name)
			runs := strings.Contains(runners, " "+name+" ") && !strings.Contains(plain, " "+name+" ")
			if !known || free && !runs {
				t.Errorf("%s, one of the %s: it is known what it starts: %v, freely: %v", name, set, known, free)
			}
		}
	}
}

// What people write before runners and programs of the repository is allowed where it is harmless.
func TestHarmlessVariables(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	for _, text := range []string{
		"CC=clang make", "CXX=g++ cmake -S . -B build", "CC=gcc-12 CXX=g++-12 make test", "LD_LIBRARY_PATH=build/lib ./t", "LD_LIBRARY_PATH=build/lib pytest",
		`CC='gcc -O2' make`, `CXX="g++ -O2 -std=c++20" make`, "LD_LIBRARY_PATH=$PWD/build/lib ./t", "export LD_LIBRARY_PATH=$PWD/build/lib; ./t && echo ok",
		"LD_LIBRARY_PATH=$PWD/lib:$LD_LIBRARY_PATH ./t", `LD_LIBRARY_PATH="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ./t`, "env LD_LIBRARY_PATH=build/lib ./t",
		"PATH=./node_modules/.bin:$PATH npm test", "export PATH=$PWD/bin:$PATH; npm test", `export PATH="${PWD}/a:$(pwd)/b:${PATH}" && npm test`,
		"PATH=$PWD/bin:$PATH npm test",
		"PATH=$PWD/node_modules/.bin:$PATH npm test", `PATH="$PWD/node_modules/.bin:$PATH" jest`, "export PATH=$PWD/.venv/bin:$PATH; pytest -q",
		"GIT_TRACE=1 git status", "DATABASE_URL=sqlite:///t.db npm test", "VITE_API_MODE=mock npm run build", "FOO=bar npm test", "LC_ALL=C sort a",
		"cat --frob a", "wc --frob a", "sort --frob a", "env -i HOME=/tmp PATH=/usr/bin:/bin go version",
		"git log -Scat", "git log -S'withQuery'", "git log -S withQuery -- src", "git log --oneline -S\"func x\"", "git log -Gexec", "git log -G 'a.*b' --stat",
		"git log -n5 -SwithQuery", "git diff -SexecStart HEAD~1", "git show -GorderBy", "git log --pickaxe-regex -S'x.y' -p",
	} {
		if d := decide(t, e, text); d.Effect != proposal.Allow {
			t.Errorf("%s: refused: %s", text, whys(d))
		}
	}
	for _, text := range []string{
		"GREP='id x;:' zgrep x a.gz", "ZIP='r -T -TT id' zip a b", "PYTHONPATH=dir yq . a.yaml", "CLASSPATH=lib javac A.java", "PERL5LIB=lib shasum a",
		"HOME=/tmp npm test", "HOME=/tmp python3 -c 'print(1)'", "export HOME=/tmp; go test ./...", "env HOME=/tmp npm test",
		"LD_LIBRARY_PATH=build/lib timeout 9 npm test", "f() { ls; }; LD_LIBRARY_PATH=lib f", "LD_LIBRARY_PATH=/tmp/x ./t", "PATH=$PWD/bin:$PATH sort a", "export PATH=$PWD/bin:$PATH; npm test; ls", "cd /tmp && PATH=./bin:$PATH npm test", "PATH=$PWD:$PATH npm test", "PATH=.:$PATH npm test", "PATH=:$PATH npm test",
		"PATH=$PWD/../bin:$PATH npm test", "PATH=/tmp/bin:$PATH npm test", "PATH=$HOME/bin:$PATH npm test", "PATH=/opt/x:$PATH npm test", `PATH="$PWD/a b:$PATH" npm test`,
		"PATH=$PWD/bin:$PATH; PATH=$X npm test", "PATH=$PWD/bin${X}:$PATH npm test", "PATH=~/bin:$PATH npm test",
		"LD_LIBRARY_PATH=$PWD/lib ls", "export LD_LIBRARY_PATH=lib; ./t; ls", "export LD_LIBRARY_PATH=/tmp/x; ./t", "LD_LIBRARY_PATH=: ./t",
		"LD_LIBRARY_PATH=$PWD/lib bash -c ./t", "export LD_LIBRARY_PATH=$PWD/lib; timeout 9 ./t", "CC='gcc -fplugin=./x.so' make", "CC='gcc -O2;id' make",
		"CC='gcc -B.' make", "CC='gcc -specs=x' make", "CC='gcc ./x' make", "CC=$'gcc\\n-O2' make", "PATH=$X/node_modules/.bin:$PATH npm test",
		"PATH=$PWD/node_modules/.bin:$(id):$PATH npm test", "CC='sh -c id' make", "CC=./x make", "GIT_TRACE=/tmp/x git status", "VITE_BINARY=id npm test",
		"DATABASE_URL=sqlite:////etc/x npm test",
	} {
		if d := decide(t, e, text); d.Effect == proposal.Allow {
			t.Errorf("%s: allowed by %v", text, d.Rules)
		}
	}
}
