// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"testing"

	"github.com/fumehood/fumehood/internal/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Every tool that policy allows may print its version and its help.
func TestToolsPrintVersionsAndHelp(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	for _, set := range []string{"readers", "wrappers", "runners", "changers", "judged"} {
		for _, name := range slices.Concat(programSet(t, set), map[string][]string{"judged": {"curl", "wget", "gdb", "nc", "redis-cli", "dig"}}[set]) {
			for _, option := range []string{"--version", "--help"} {
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
		"sqlite3 --version", "sqlite3 -version", "curl --help", "curl -V", "curl --help all", "wget --help", "make PYTHON=python3.11 test", "make PYTHON=python3 test", "make PYTHON=.venv/bin/python test",
		"LD_LIBRARY_PATH=. ./t", "LD_LIBRARY_PATH=$PWD ./t", "LDFLAGS=-L./lib make", "LDFLAGS='-L./lib -lfoo' make", "LDFLAGS=-lm make", "jq -r .env.PATH f.json", "jq '.env.HOME' f.json", "jq -r '.config.env | keys' f.json",
		"export PATH=$PATH:$PWD/bin; make; cat out.txt", "export PATH=$PATH:$PWD/bin && make && ls && cat out.txt", "PATH=$PATH:./bin make test", "git apply -p1 --check fix.diff", "git log -c -1", "git branch -c a b",
		"git log -Scat", "git log -S'withQuery' --oneline", "git log -Gcat", "git log -S cat -- pkg", "git log -S'-c' -1", "git show -U5 HEAD", "git clean -n", "git rm -n a.txt", "git commit -m 'x' --allow-empty",
		"go version", "go help test", "git --help", "make CC=clang-15 test", "make CFLAGS=-O2", "make V=1 test",
	} {
		if d := decide(t, e, text); d.Effect != proposal.Allow {
			t.Errorf("%s: %s: %s", text, d.Reasons[0].Rule, d.Reasons[0].Message)
		}
	}
}
