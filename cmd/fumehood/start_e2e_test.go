// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// The texts below hide a canary in every place that a shell may evaluate: a command
// that policy does not allow, an option that it does not know, or both. Neither
// bash nor dash may be made to start it.

// hidden is the command that no text may start. curl is installed, so that a start would be
// noticed; no policy allows it without a host that was granted.
const hidden = "curl x.example"

// specials are variables that control shells or libraries.
var specials = strings.Fields(`BASH_ENV ENV PS0 PS1 PS2 PS4 PROMPT_COMMAND RANDOM SRANDOM SECONDS LINENO OPTIND OPTARG HISTCMD EPOCHSECONDS
	BASHPID BASH_SUBSHELL BASH_ARGV0 BASH_COMMAND BASH_CMDS BASH_ALIASES BASH_REMATCH DIRSTACK FUNCNAME GROUPS PIPESTATUS COMP_WORDBREAKS
	IFS PATH CDPATH GLOBIGNORE EXECIGNORE FIGNORE HISTFILE HISTTIMEFORMAT HOSTFILE INPUTRC MAIL MAILCHECK MAILPATH TMOUT FCEDIT EDITOR PAGER
	GIT_PAGER GIT_EXTERNAL_DIFF GIT_SSH GIT_CONFIG_COUNT LESSOPEN LD_PRELOAD LD_LIBRARY_PATH PYTHONSTARTUP NODE_OPTIONS GOFLAGS REPLY MAPFILE
	COPROC UID EUID PPID SHELLOPTS BASHOPTS POSIXLY_CORRECT HOME TMPDIR x`)

// expansions expand x, whose value is the canary, in different ways.
var expansions = []string{
	`$x`, `"$x"`, `${x}`, `${x:-y}`, `${y:-$x}`, `${y:=$x}`, `${x:+$x}`, `${x#a}`, `${x%b}`, `${x/a/b}`, `${x^^}`, `${x,,}`, `${x:0:99}`, `${x:x}`, `${x@P}`,
	`${x@E}`, `${x@Q}`, `${x@A}`, `${x@K}`, `${!x}`, `${!x*}`, `${#x}`, `${a[x]}`, `${a[$x]}`, `$((x))`, `$(($x))`, `$((a[x]))`, `$[x]`, `$(echo $x)`, "`echo $x`",
	`$(<f)`, `$(cat f)`, `{$x,y}`, `~$x`, `$'$x'`, `$"$x"`, `<(echo $x)`, `*$x*`, `@($x)`, `${x[@]}`, `${x[*]}`, `$@`, `$*`, `$1`, `$_`, `$!`, `$-`,
}

// startTexts returns all of them.
func startTexts(t testing.TB) []string {
	t.Helper()
	out, err := exec.Command("bash", "-c", "compgen -b").Output()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	builtins := append(strings.Fields(string(out)), "[[", "time", "coproc", "function", "select", "!")
	for _, b := range builtins {
		for _, slot := range []string{
			hidden, "-p " + hidden, "-x " + hidden, "-- " + hidden, "'" + hidden + "'", "'" + hidden + "' EXIT", "-c '" + hidden + "' x", "-v 'a[$(" + hidden + ")]' x",
			"'a[$(" + hidden + ")]'", "x -a 'a[$(" + hidden + ")]'", "-C '" + hidden + "' x", "-F '" + hidden + "'", `"$(cat f)"`, `$(cat f)`, `-x $(cat f)`, `"$o" ` + hidden, `-n "$o" ` + hidden,
			"'a[$(" + hidden + ")]=1'", "-i 'a=b[$(" + hidden + ")]'", "-n 'a=b[$(" + hidden + ")]'", "x 'a[$(" + hidden + ")]' ]", "-eq 'a[$(" + hidden + ")]' 1 ]]", "<<< '" + hidden + "'", "< f",
		} {
			add("o=$(echo -x); %s %s", b, slot)
		}
		add("sh -c '%s %s'", b, hidden)
		add("sh -c 'o=$(cat f); %s $o'", b)
		add("echo &>/dev/null %s %s", b, hidden)
	}
	for _, v := range specials {
		for _, form := range []string{
			"%s='a[$(" + hidden + ")]'; echo $((%s))", "read -r %s < f; (( %s > 1 ))", "printf -v %s '%%s' 'a[$(" + hidden + ")]'; [[ %s -eq 1 ]]",
			"for %s in 'a[$(" + hidden + ")]'; do (( %s )); done", "export %s='$(" + hidden + ")'; set -x; ls; echo $%s", "declare -i %s='a[$(" + hidden + ")]'; echo $%s",
			"mapfile -t %s < f; (( %s ))", "declare -n %s=y; y='a[$(" + hidden + ")]'; (( %s ))", "getopts x: %s -x 'a[$(" + hidden + ")]'; (( %s ))", "%s=$(cat f) ls; ls $%s",
			"read -r %s < f; export %s; ls -l .", "set -a; read -r %s < f; ls; : $%s", "sh -c 'read -r %s < f; : $((%s))'", "sh -c 'read -r %s < f; export %s; ls'",
		} {
			add(form, v, v)
		}
	}
	for _, e := range expansions {
		for _, form := range []string{
			"x='" + hidden + "'; %s", "x='a[$(" + hidden + ")]'; echo %s", "x='a[$(" + hidden + ")]'; (( y = %s ))", "x=$(cat f); %s", "x=$(cat f); ls %s", "x=$(cat f); timeout 5 %s", "x=$(cat f); env %s",
			"x=$(cat f); find . -exec %s ';'", "x=$(cat f); echo a | xargs %s", "x=$(cat f); sh -c \"%s\"", "x=$(cat f); eval %s", "x=$(cat f); [ %s ]", "x=$(cat f); go test %s ./x", "x=$(cat f); git %s log", "x=$(cat f); cat < %s",
			"x='" + hidden + "'; sh -c 'ls %s'", "sh -c 'x=$(cat f); %s'",
		} {
			add(form, e)
		}
	}
	for _, tool := range tools() {
		for _, form := range []string{"%s $(cat o) x", "x=$(cat o); %s $x", "cat o | xargs %s", "%s *", "for f in *; do %s \"$f\"; done", "cat o | xargs timeout 5 %s x", "w=--exec=curl; %s $w x"} {
			add(form, tool)
		}
	}
	return texts
}

var toolLine = regexp.MustCompile(`(?m)^([a-z][^=\n]*) = `)

// tools returns the tools of the option table.
func tools() (names []string) {
	for _, m := range toolLine.FindAllStringSubmatch(string(policies.Options), -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			if words := strings.Fields(name); len(words) == 1 {
				names = append(names, words[0])
			}
		}
	}
	return names
}

// A part of the texts is run here, whole plans in one sandbox each; the end-to-end
// tests run all.
func TestE2EStarts(t *testing.T) {
	t.Parallel()
	var some []string
	for i, text := range startTexts(t) {
		if i%53 == 0 {
			some = append(some, text)
		}
	}
	if testing.Short() {
		some = some[:20]
	}
	for chunk := range slices.Chunk(some, 100) {
		checkStarts(t, chunk)
	}
}

// checkStarts runs texts and checks each program start by a text's process: it must
// be predicted, with exactly these words, or decided, and must never be the canary's.
func checkStarts(t *testing.T, texts []string) (decided, refused int) {
	t.Helper()
	report, events := runTexts(t, texts)
	for _, r := range report.Records {
		if r.Result != nil && (r.Result.Observations == nil || !r.Result.Observations.Complete) {
			t.Errorf("%q: not recorded completely: %+v", r.Proposal.Run, r.Result)
		}
	}
	for _, e := range events {
		text, x := texts[indexOf(e.Command)], e.Exec
		if e.Kind == proposal.EventRefused {
			refused++
			continue
		}
		if strings.HasSuffix(x.Path, "/curl") {
			t.Errorf("%q started %q", text, x.Argv)
		}
		if !x.Text || x.First {
			continue
		}
		switch e.Decision.Start {
		case lineage.StartDecided:
			decided++
		case lineage.StartPredicted:
			if !x.ArgvCut && !showsStart(report.Records[indexOf(e.Command)].Analysis, *x) {
				t.Errorf("%q started %q as predicted, which it does not show", text, x.Argv)
			}
		default:
			t.Errorf("%q started %q, which was not judged: %+v", text, x.Argv, e.Decision)
		}
	}
	return decided, refused
}

// showsStart reports whether a command of a has exactly these words.
func showsStart(a proposal.Analysis, x proposal.Exec) bool {
	argv := x.Argv
	if x.Script != "" && len(argv) > 1 { // the kernel has put its interpreter before it
		argv = append([]string{filepath.Base(argv[1])}, argv[2:]...)
	}
	return slices.ContainsFunc(a.Commands, func(c proposal.Command) bool {
		return slices.Equal(c.Argv(), argv) && !slices.ContainsFunc(c.Args, func(w proposal.Word) bool { return !w.Static })
	})
}

func indexOf(id string) (n int) {
	_, _ = fmt.Sscanf(id, "t%d", &n)
	return n
}

// runTexts runs each text in one sandbox and returns the report and the started programs.
func runTexts(t *testing.T, texts []string) (proposal.Report, []proposal.Event) {
	t.Helper()
	dir := t.TempDir()
	ws := filepath.Join(dir, "ws")
	p := map[string]any{"schema": proposal.PlanSchema}
	var proposals []map[string]any
	for i, text := range texts {
		proposals = append(proposals, map[string]any{"id": fmt.Sprintf("t%d", i), "run": text, "timeout": "20s"})
	}
	p["proposals"] = proposals
	data, err := json.Marshal(p)
	if err != nil || len(texts) > 200 {
		t.Fatal(err, len(texts))
	}
	for name, text := range map[string]string{"plan.json": string(data), "ws/f": hidden + "\n", "ws/o": "-x --exec=" + hidden + " -exec=curl -c curl\n", "ws/x/x.go": "package x\n", "ws/go.mod": "module x\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0], "run", "--config", "none", "--setup", "none", "--plan", filepath.Join(dir, "plan.json"), "--workspace", ws, "--artifacts", filepath.Join(dir, "a"), "--report", filepath.Join(dir, "r.json"))
	cmd.Env = append(os.Environ(), asFumehood+"=1", "FUMEHOOD_CACHE="+jobtest.BuildCache(t))
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() >= exitUsage {
		t.Fatalf("%v: %s", err, out)
	}
	return readStarts(t, dir)
}

func readStarts(t *testing.T, dir string) (report proposal.Report, events []proposal.Event) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "a", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		var l struct {
			Entry struct {
				Kind string `json:"kind"`
				Body struct {
					Events []proposal.Event `json:"events"`
					ID     string           `json:"id"`
				} `json:"body"`
			} `json:"entry"`
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Entry.Kind == "events" {
			events = append(events, l.Entry.Body.Events...)
		}
	}
	return report, slices.DeleteFunc(events, func(e proposal.Event) bool { return e.Exec == nil })
}
