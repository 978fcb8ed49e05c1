// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestLaunchesAndBuiltin lists the commands of each text with their flags in the
// analysis: L for Launches, B for Builtin, F for Function.
func TestLaunchesAndBuiltin(t *testing.T) {
	run := func(text string) proposal.Proposal { return proposal.Proposal{Run: text} }
	argv := func(words ...string) proposal.Proposal { return proposal.Proposal{Argv: words} }
	for _, test := range []struct {
		proposal proposal.Proposal
		want     string
	}{
		{run("go test ./..."), "go"},
		{run("cd x && echo a | grep b"), "cd:B echo:B grep"},
		{run("timeout 5 env A=1 go vet"), "timeout:L env:L go"},
		{run("env"), "env"},
		{run("timeout 5 echo a"), "timeout:L echo"},
		{run("xargs"), "xargs:L echo"},
		{run("find . -name x"), "find"},
		{run("find . -exec echo {} +"), "find:L echo"},
		{run("bash x.sh"), "bash"},
		{run("bash -c 'echo a; mapfile x'"), "bash:L echo:B mapfile:B"},
		{run("sh -c 'echo a; type id'"), "sh:L echo:B type:B"},
		{run("sh -c 'mapfile x'"), "sh:L mapfile"},
		{run("sh -c 'exec echo a'"), "sh:L exec:LB echo"},
		{run("sh <<<'cd x'"), "sh:L cd:B"},
		{run("command -v go; command echo a; builtin echo a; command go version"), "command:B command:LB echo:B builtin:LB echo:B command:LB go"},
		{run("exec echo a"), "exec:LB echo"},
		{run("trap 'echo a; rm x' EXIT"), "trap:LB echo:B rm"},
		{run("f() { echo a; }; f"), "echo:B f:F"},
		{run("a=1; export b=2; [ -n x ]; [[ x ]]; ((1))"), " export:B [:B  "},
		{run("echo $(date) $(echo b)"), "echo:B date echo:B"},
		{run("/bin/echo a; ./test"), "/bin/echo ./test"},
		{run("git rebase -x 'echo a' main"), "git:L sh:L echo:B"},
		{run("go tool test2json -t -p x ./x.test -test.v"), "go:L ./x.test"},
		{run("go -C sub tool test2json timeout 5 ./x.test; go tool -C nm test2json ./y; go tool test2json; go tool nm x; go test"), "go:L timeout:L ./x.test go:L ./y go go go"},
		{run("perf stat -r 5 make test"), "perf:L make"},
		{run("perf stat --version"), "perf"},
		{run("ltrace -f -o x ./a b"), "ltrace:L ./a"},
		{run("strace -c ./a"), "strace:L ./a"},
		{run("hyperfine -w 3 --prepare 'make clean' 'rg x' 'grep x y | wc'"), "hyperfine:L sh:L make sh:L rg sh:L grep wc"},
		{argv("echo", "a"), "echo"},
		{argv("test", "-n", "a"), "test"},
		{argv("command", "echo", "a"), "command:L echo"},
		{argv("timeout", "5", "bash", "-c", "echo a; go vet"), "timeout:L bash:L echo:B go"},
		{argv("nice", "echo"), "nice:L echo"},
	} {
		var got []string
		for _, c := range Analyze(test.proposal).Commands {
			got = append(got, marked(c))
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.proposal, diff)
		}
	}
}

func marked(c proposal.Command) string {
	marks := ""
	for _, mark := range []struct {
		is   bool
		text string
	}{{c.Launches, "L"}, {c.Builtin, "B"}, {c.Function, "F"}} {
		if mark.is {
			marks += mark.text
		}
	}
	if marks == "" {
		return c.Program
	}
	return c.Program + ":" + marks
}

// TestBuiltinsAreThoseOfTheShells compares the two lists with the shells themselves.
func TestBuiltinsAreThoseOfTheShells(t *testing.T) {
	lanetest.SkipShort(t)
	out, err := exec.Command("bash", "-c", "compgen -b").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(out))
	slices.Sort(want)
	if diff := cmp.Diff(want, sortedKeys(bashBuiltins)); diff != "" {
		t.Errorf("bash (-its own +ours):\n%s", diff)
	}
	for _, name := range slices.Sorted(slices.Values(append(sortedKeys(bashBuiltins), sortedKeys(dashBuiltins)...))) {
		out, _ := exec.Command("dash", "-c", "PATH=/nowhere; type "+name).CombinedOutput()
		if is := strings.Contains(string(out), "shell builtin"); is != dashBuiltins[name] {
			t.Errorf("dash says %q of %s, the list says %v", out, name, dashBuiltins[name])
		}
	}
}
