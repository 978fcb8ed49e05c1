// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// silent are tools that do not know --version or --help, or take it for something else.
var silent = map[string]string{
	"[[": "is syntax", "printf": "is a builtin that prints it", "hash": "is a builtin", "time": "is syntax, and would run it", "command": "is a builtin", "exec": "is a builtin",
	"unbuffer": "is refused as a launcher", "unittest --version": "it has none", "ginkgo --version": "it is a verb", "go --version": "it is a verb", "helm --version": "it is a verb",
	"tclsh": "it would read a file of that name",
}

// Every tool that policy allows may print its version and its help.
func TestToolsPrintVersionsAndHelp(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	for _, set := range []string{"readers", "wrappers", "runners", "changers", "judged"} {
		for _, name := range slices.Concat(programSet(t, set), map[string][]string{"judged": {"curl", "wget", "gdb", "nc", "redis-cli", "dig"}}[set]) {
			for _, option := range []string{"--version", "--help"} {
				if silent[name]+silent[name+" "+option] != "" {
					continue
				}
				if d := decide(t, e, name+" "+option); d.Effect != proposal.Allow {
					t.Errorf("%s %s: %s: %s", name, option, d.Reasons[0].Rule, d.Reasons[0].Message)
				}
			}
		}
	}
}

// What is refused without anything being won.
func TestHarmlessTexts(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	for _, text := range []string{
		"sqlite3 --version", "sqlite3 -version", "curl --help", "curl -V", "curl --help all", "wget --help", "make PYTHON=python3.11 test", "make PYTHON=python3 test",
		"LD_LIBRARY_PATH=. ./t", "LD_LIBRARY_PATH=./ ./t", "LD_LIBRARY_PATH=$PWD:$PWD/lib ./t", "LD_LIBRARY_PATH=$PWD ./t", "LDFLAGS=-L./lib make", "LDFLAGS='-L./lib -lfoo' make", "LDFLAGS=-lm make", "LDFLAGS=-Lbuild/lib make", "jq -r .env.PATH f.json", "jq '.env.HOME' f.json", "jq -r '.config.env | keys' f.json",
		"export PATH=$PATH:$PWD/bin; make; cat out.txt", "export PATH=$PATH:$PWD/bin && make && ls && cat out.txt", "PATH=$PATH:./bin make test", "git apply -p1 --check fix.diff", "git log -c -1", "git branch -c a b",
		"git log -Scat", "git log -S'withQuery' --oneline", "git log -Gcat", "git log -S cat -- pkg", "git log -S'-c' -1", "git show -U5 HEAD", "git clean -n", "git rm -n a.txt", "git commit -m 'x' --allow-empty",
		"go version", "go help test", "git --help", "make CC=clang-15 test", "make CFLAGS=-O2", "make V=1 test",
	} {
		if d := decide(t, e, text); d.Effect != proposal.Allow {
			t.Errorf("%s: %s: %s", text, d.Reasons[0].Rule, d.Reasons[0].Message)
		}
	}
	for _, text := range []string{
		"sqlite3 --version x", "curl --help http://x.example", "curl --version http://x.example", "bash --version -c id", "env --version id", "timeout --help 5 sudo id", "awk --version 'BEGIN{system(\"id\")}'",
		"sed --version 1e", "ldd --version ./t", "gdb --version ./t", "nc --help x.example 1", "perf --version id", "time --version", "dig --help x.example",
		"LD_LIBRARY_PATH=. ls", "LD_LIBRARY_PATH=.. ./t", "LDFLAGS=-L/tmp/x make", "LDFLAGS=-L../x make", "LDFLAGS='-L. -fplugin=./x.so' make", "LDFLAGS=-Wl,-plugin,./x.so make",
		"LDFLAGS=-L./lib/../../x make", "make PYTHON=./python test", "make PYTHON='python3 -c id' test", "yq '.a = env(TOKEN)' f",
		"export PATH=$PWD/bin:$PATH; cat out.txt", "export PATH=$PATH:/tmp/bin; make", "export PATH='$PATH:bin'; cat out.txt", "export PATH=$PWD/bin:$PATH:$PWD/lib; cat x", "PATH=$PATH:$PWD/../bin make",
		"export PATH=$PATH:$PWD/a; export PATH=$PWD/b:$PATH; cat x",
	} {
		if d := decide(t, e, text); d.Effect == proposal.Allow {
			t.Errorf("%s: allowed by %v", text, d.Rules)
		}
	}
}
