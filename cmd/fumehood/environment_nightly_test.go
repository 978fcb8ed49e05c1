// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// canary is a program that no tool may start for the value of a variable.
const canary = "canary"

// canaryValues name the canary, its path, a directory where every program is a canary, and a
// command. /workspace is the workspace.
var canaryValues = []string{canary, "/workspace/bin/" + canary, "/workspace/bin", canary + " %s"}

// runnerUses are commands whose tools documentedUses does not have, and more of some that it has:
// they run far enough to read their settings. A tool without one gets the name of a file.
var runnerUses = []string{
	"make -f Makefile all", "gmake -f Makefile", "make -n -f Makefile all", "make -f Makefile clean", "make -k -f /dev/null x.o l.c y.c f.o p.o s.o t.dvi i.info w.tex w.p cw.c m.sym x.ln 'lib.a(x.o)'", "python3 setup.py -q build_ext --force", "python3 run.py", "python3 -m pydoc os", "python3 -m unittest -h", "python3 -m webbrowser -h", "pytest -q test_x.py", "py.test --version",
	"pip3 list", "pip3 --version", "pip download --no-index x", "node run.js", "node --test run.js", "npm test", "npm run build", "npm ls", "npm help ls", "npm config list", "npm version", "npx --no-install x", "perl run.pl", "perl -MPod::Usage -e 1", "prove t.t",
	"mvn -v", "mvn -o -q validate", "java -version", "java Run.java", "javadoc --version", "jar cf x.jar a", "php run.php", "php -i", "phpunit --version", "bats t.bats", "tclsh run.tcl",
	"shellcheck evil.sh", "promtool --version", "valgrind /bin/true", "ar t x.a", "ranlib x.a", "gcov x.gcno", "go build ./...", "go help", "go vet -x ./...", "go env", "go tool", "bash -c 'ls a'", "bash run.sh", "sh run.sh", "dash run.sh",
	"env ls a", "timeout 5 ls a", "nice ls a", "nohup ls a", "xargs -a a ls", "time ls a", "find . -name a -exec ls {} ;", "tee /dev/null", "strace -o /dev/null ls a", "perf --version", "perf help", "setsid ls a", "taskset 1 ls a",
	"git log", "git -p log", "git log -p", "git diff", "git show", "git commit --allow-empty -m x", "git commit --amend --allow-empty", "git stash", "git rebase -i HEAD~1", "git help log", "git grep one", "git blame a", "git fetch", "git ls-remote", "git tag -s x -m x",
	"git difftool -y", "git mergetool", "git add -i", "git add -p", "git gc", "git submodule status", "git send-email --help", "git instaweb", "git web--browse x", "git bisect log", "git archive HEAD",
	"grep -r one .", "ls -l --color=auto", "date", "man ls", "less a", "psql --version", "sqlite3 a.db .help", "sort -o /tmp/x big", "split a", "terraform version", "terraform init", "terraform validate",
	"getent hosts localhost", "locale -a", "tput colors", "envsubst", "mktemp", "sed -n p a", "tar tzf a.tgz", "printf %s a", "chmod +x a", "cp a /tmp", "ld -o /tmp/x x.o", "install -s a.out /tmp/x", "objdump -d a.out", "lcov --version", "ps -e", "free", "uptime",
}

// notTraced are the builtins that programs of the same name are not run for, and those that do not end by themselves.
var notTraced = []string{"kill", "yes", "sleep", "["}

// variablesWorkspace makes the files that runnerUses name, and the canaries.
func variablesWorkspace(t *testing.T, dir, ws string) {
	t.Helper()
	childWorkspace(t, ws)
	for name, text := range map[string]string{
		"Makefile": "all: a\n\tls a\nclean:\n\t$(RM) none\n", "setup.py": "from setuptools import setup, Extension\nsetup(name='x', py_modules=[], ext_modules=[Extension('e', ['x.c'])])\n",
		"l.l": "", "y.y": "", "f.f": "", "p.p": "", "s.s": "", "t.tex": "", "i.texi": "", "w.web": "", "cw.w": "", "m.def": "",
		"run.py": "import os, subprocess, tempfile, locale\nlocale.setlocale(locale.LC_ALL, '')\ntempfile.mkdtemp()\nsubprocess.run('ls', shell=True)\n", "test_x.py": "def test_x(): pass\n",
		"run.js": "require('child_process').execSync('ls')\n", "package.json": `{"name":"x","version":"1.0.0","scripts":{"test":"ls","build":"node run.js"}}`, "run.pl": "system('ls a');\n", "t.t": "print \"1..1\\nok 1\\n\";\n",
		"pom.xml":  "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version></project>",
		"Run.java": "class Run{public static void main(String[] a)throws Exception{new ProcessBuilder(\"ls\").start().waitFor();}}\n",
		"run.php":  "<?php system('ls a');", "t.bats": "@test x { ls a; }\n", "run.tcl": "exec ls a\n", "run.sh": "ls a\nbasename a\n", "main.tf": "",
	} {
		write(t, filepath.Join(ws, name), text)
	}
	started := filepath.Join(dir, "started")
	write(t, filepath.Join(ws, "bin", canary), "#!/bin/sh\n: > "+started+"\n")
	if err := os.Chmod(filepath.Join(ws, "bin", canary), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"/usr/bin/*", "/usr/lib/git-core/*", "/usr/lib/gcc/*/*/*", "/usr/local/go/bin/*"} {
		programs, _ := filepath.Glob(pattern)
		for _, program := range programs {
			if err := os.Symlink(canary, filepath.Join(ws, "bin", filepath.Base(program))); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
	}
	runCommand(t, exec.Command("bash", "-c", "cd "+ws+" && gcc -c x.c && ar rc x.a x.o && gcc --coverage -c -o x.gcno.o x.c && git init -q && git config user.name x && git config user.email x@example.com && "+
		"git add -- a b run.py && git commit -qm x && git commit -q --allow-empty -m y && echo more >> a && mkdir -p first && ln -s ../bin/"+canary+" first/"+canary))
	runCommand(t, exec.Command("chown", "-R", "65534:65534", dir))
}

// interposed is a library that writes the names of the variables that a program reads, and its first
// words, of which a path may be that of a script.
const interposed = `#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
static void note(const char *name) {
	int saved = errno, fd = open(LOG, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd >= 0) {
		dprintf(fd, "%s\n", name);
		close(fd);
	}
	errno = saved;
}
char *getenv(const char *name) {
	size_t n = strlen(name);
	note(name);
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=') return *e + n + 1;
	return NULL;
}
__attribute__((constructor)) static void start(int argc, char **argv) {
	for (int i = 0; i < argc && i < 3; i++) note(argv[i]);
	note("/");
}
char *secure_getenv(const char *name) { return getenv(name); }
char *__secure_getenv(const char *name) { return getenv(name); }
`

// hooks do the same in interpreters, which read all variables at once when they start.
var hooks = map[string]string{
	"sitecustomize.py": "import os\nclass Traced(type(os.environ)):\n  def __getitem__(self, key):\n    if isinstance(key, str):\n      with open('LOG', 'a') as f: f.write(key + '\\n')\n" +
		"    return super().__getitem__(key)\nos.environ.__class__ = Traced\n",
	"hook.js": "const fs = require('fs');\nconst log = k => { if (typeof k === 'string') try { fs.appendFileSync('LOG', k + '\\n') } catch (e) {} };\n" +
		"process.env = new Proxy(process.env, {get(o, k) { log(k); return o[k] }, has(o, k) { log(k); return k in o }});\n",
	"Traced.pm": "package Traced;\nrequire Tie::Hash;\nour @ISA = 'Tie::StdHash';\nmy %own = %ENV;\nsub note { open my $f, '>>', 'LOG' or return; print $f \"$_[0]\\n\" }\n" +
		"tie %ENV, 'Traced';\n$ENV{$_} = $own{$_} for keys %own;\nsub FETCH { note($_[1]); $_[0]{$_[1]} }\nsub EXISTS { note($_[1]); exists $_[0]{$_[1]} }\n1;\n",
}

// A variableTrace runs tools and finds the variables that they read.
type variableTrace struct {
	dir, ws, path string
	hooked        []string // the variables of a traced run
	engine        *policy.Engine
	inTable       map[string]bool // by assignment
}

func newVariableTrace(t *testing.T) *variableTrace {
	t.Helper()
	dir := t.TempDir()
	for parent := dir; len(parent) > len(os.TempDir()); parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ws, log, hook := filepath.Join(dir, "ws"), filepath.Join(dir, "log"), filepath.Join(dir, "hook")
	write(t, log, "")
	for name, text := range hooks {
		write(t, filepath.Join(hook, name), strings.ReplaceAll(text, "LOG", log))
	}
	write(t, filepath.Join(hook, "getenv.c"), interposed)
	runCommand(t, exec.Command("gcc", "-shared", "-fPIC", "-O1", "-DLOG=\""+log+"\"", "-o", filepath.Join(hook, "getenv.so"), filepath.Join(hook, "getenv.c")))
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	variablesWorkspace(t, dir, ws)
	engine, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &variableTrace{dir, ws, "/usr/local/go/bin:/usr/bin:/bin", []string{"LD_PRELOAD=" + hook + "/getenv.so", "NODE_OPTIONS=--require=" + hook + "/hook.js", "PYTHONPATH=" + hook, "PERL5LIB=" + hook, "PERL5OPT=-MTraced"},
		engine, map[string]bool{}}
}

// run runs a command without a network and privileges, and reports whether the canary started.
func (v *variableTrace) run(t *testing.T, argv, env []string) (code int, started bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, v.find(argv[0]), argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Dir = v.ws
	cmd.WaitDelay = time.Second
	cmd.Env = append([]string{"PATH=" + v.ws + "/first:" + v.path, "HOME=" + v.dir + "/tmp", "TMPDIR=" + v.dir + "/tmp", "USER=user", "LANG=C.UTF-8", "TERM=xterm", "GOTOOLCHAIN=local", "GOPROXY=off"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Setsid: true}
	_ = cmd.Run()
	mark := filepath.Join(v.dir, "started")
	_, err := os.Stat(mark)
	_ = os.Remove(mark)
	return cmd.ProcessState.ExitCode(), err == nil
}

// readNames returns the variables that the command was seen to read, with all that it starts, and those that
// are in the scripts among these. It reports whether a program was traced.
func (v *variableTrace) readNames(t *testing.T, argv []string) (names, inScripts []string, traced bool) {
	t.Helper()
	log := filepath.Join(v.dir, "log")
	if err := os.Truncate(log, 0); err != nil {
		t.Fatal(err)
	}
	v.run(t, argv, v.hooked)
	for line := range strings.Lines(string(jobtest.ReadFile(t, log))) {
		switch name := strings.TrimSuffix(line, "\n"); {
		case variableName.MatchString(name) && !slices.Contains(names, name):
			names = append(names, name)
		case strings.HasPrefix(name, "/"):
			traced = true
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() < 1<<20 && !strings.HasPrefix(name, v.dir) {
				inScripts = append(inScripts, namesInScript(jobtest.ReadFile(t, name))...)
			}
		}
	}
	slices.Sort(inScripts)
	return names, slices.Compact(inScripts), traced
}

var (
	variableName  = regexp.MustCompile(`^[A-Za-z_]\w{1,60}$`)
	scriptNames   = regexp.MustCompile(`\$\{?([A-Za-z_]\w+)|(?:getenv|environ)\W{1,6}(?:get\W{1,3})?([A-Za-z_]\w+)|\$ENV\{\W?(\w+)|process\.env\.(\w+)`)
	stringNames   = regexp.MustCompile(`([A-Z_][A-Z0-9_]{1,40})\x00`)
	goStringNames = regexp.MustCompile(`[A-Z_][A-Z0-9_]{2,400}`)
)

// stringsOf returns the names that are in a program, which may read all variables itself, as scripts,
// interpreters and static programs do. Most are not those of variables, and some are cut in the wrong place.
func stringsOf(t *testing.T, program string) []string {
	t.Helper()
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	data := jobtest.ReadFile(t, program)
	if bytes.HasPrefix(data, []byte("#!")) {
		return namesInScript(data)
	}
	names := map[string]bool{}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Logf("%s: %v", program, err)
		return nil
	}
	switch {
	case file.Section(".go.buildinfo") != nil || file.Section(".note.go.buildid") != nil:
		for _, run := range goStringNames.FindAll(data, -1) {
			// Go sorts strings by length and writes them without an end: a run is one or several.
			for n := 3; n <= min(len(run), 40); n++ {
				for i := 0; i+n <= len(run) && len(run)%n == 0; i += n {
					names[string(run[i:i+n])] = true
				}
			}
		}
	default:
		found := stringNames.FindAllSubmatch(data, -1)
		for _, match := range found {
			name := string(match[1])
			names[name] = true
			for i := 1; i+2 <= len(name) && len(name) <= 10 && len(found) < 2000; i++ { // a string may be the end of another one
				names[name[i:]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// namesInScript returns the names of variables in a script.
func namesInScript(text []byte) []string {
	names := map[string]bool{}
	if bytes.HasPrefix(text, []byte("#!")) {
		for _, found := range scriptNames.FindAllSubmatch(text, -1) {
			for _, name := range found[1:] {
				names[string(name)] = true
			}
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// isAllowed reports whether a text may give the variable this value, before a runner or for all commands
// that follow: the table of policies/lib/env.rego does not have it.
func (v *variableTrace) isAllowed(t *testing.T, name, value string) bool {
	t.Helper()
	assignment := name + "='" + value + "'"
	if _, asked := v.inTable[assignment]; !asked {
		v.inTable[assignment] = true
		for _, text := range []string{"export " + assignment + "; make", assignment + " make"} {
			p := proposal.Proposal{ID: "t", Run: text}
			d, err := v.engine.Decide(t.Context(), p, parse.Analyze(p))
			if err != nil {
				t.Fatal(err)
			}
			if d.Effect == proposal.Allow {
				v.inTable[assignment] = false
				break
			}
		}
	}
	return !v.inTable[assignment]
}

// starters returns those of names whose value makes the command start the canary. It runs the
// command with all at once, and with half of them if that changed how it ended.
func (v *variableTrace) starters(t *testing.T, argv, names []string, value string, code int) []string {
	t.Helper()
	if len(names) == 0 {
		return nil
	}
	var env []string
	for _, name := range names {
		env = append(env, name+"="+strings.ReplaceAll(value, "/workspace", v.ws))
	}
	got, started := v.run(t, argv, env)
	switch {
	case !started && (got == code || len(names) == 1):
		return nil
	case len(names) == 1:
		return names
	}
	half := len(names) / 2
	return append(v.starters(t, argv, names[:half], value, code), v.starters(t, argv, names[half:], value, code)...)
}

// allowedTools returns the programs of the sets of policies/lib/programs.rego that path has.
func (v *variableTrace) allowedTools(t *testing.T) (tools []string) {
	t.Helper()
	text, err := policies.FS.ReadFile("lib/programs.rego")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"readers", "wrappers", "runners", "changers", "judged"} {
		body := regexp.MustCompile(`(?ms)^` + set + ` := \{(.*?)^\}`).FindSubmatch(text)
		if body == nil {
			t.Fatalf("no set %s", set)
		}
		for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllSubmatch(body[1], -1) {
			if name := string(m[1]); v.find(name) != "" && !slices.Contains(tools, name) && !slices.Contains(notTraced, name) {
				tools = append(tools, name)
			}
		}
	}
	return tools
}

// find returns the path of a tool, or "".
func (v *variableTrace) find(name string) string {
	for dir := range strings.SplitSeq(v.path, ":") {
		if file, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return file
		}
	}
	return ""
}

// Each tool of the default allow-list that is installed runs as its manual describes, and is
// seen to read variables. A variable that can make it start a program must be in the table of
// policies/lib/env.rego, which says why: then no text may set it to a program.
func TestNightlyVariables(t *testing.T) {
	v := newVariableTrace(t)
	uses := map[string][][]string{}
	for _, use := range slices.Concat(documentedUses, runnerUses) {
		argv := parse.Analyze(proposal.Proposal{Run: use}).Commands[0].Argv()
		uses[argv[0]] = append(uses[argv[0]], argv)
	}
	traced, read := 0, map[string]bool{}
	for _, tool := range v.allowedTools(t) {
		if uses[tool] == nil {
			uses[tool] = [][]string{{tool, "a"}}
		}
		begin, own, isTraced := time.Now(), stringsOf(t, v.find(tool)), false
		inside := len(own)
		for _, argv := range uses[tool] {
			names, inScripts, ran := v.readNames(t, argv)
			isTraced = isTraced || ran || len(own) > 0
			inside += len(inScripts)
			for _, name := range names {
				read[name] = true
			}
			v.check(t, argv, names, slices.Concat(own, inScripts))
		}
		if isTraced {
			traced++
		} else {
			t.Errorf("%s: its reads of variables are not seen", tool)
		}
		t.Logf("%s: %d uses, %d names inside, %s", tool, len(uses[tool]), inside, time.Since(begin).Round(time.Millisecond))
	}
	t.Logf("%d tools read %d variables", traced, len(read))
	for use, name := range map[string]string{"git commit --amend --allow-empty": "EDITOR", "zgrep one a.gz": "GREP", "python3 setup.py -q build_ext --force": "CC"} { // which the table has
		if argv := strings.Fields(use); len(v.starters(t, argv, []string{name}, canary, 0)) == 0 {
			t.Errorf("%s=%s does not make %q start it: the test does not see starts", name, canary, argv)
		}
	}
	if traced < 180 || len(read) < 400 {
		t.Errorf("only %d tools were seen to read variables, %d in all", traced, len(read))
	}
}

// check fails for each variable that no rule denies and that makes the command start the canary.
func (v *variableTrace) check(t *testing.T, argv, read, inside []string) {
	t.Helper()
	code, started := v.run(t, argv, nil)
	if started {
		t.Fatalf("%q starts the canary by itself", argv)
	}
	starting := map[string]string{}
	for _, value := range canaryValues {
		allowed := func(names []string) (list []string) {
			for _, name := range names {
				// What is found in PATH is decided as one of the repository's programs when it starts.
				if name != "PATH" && v.isAllowed(t, name, value) {
					list = append(list, name)
				}
			}
			return list
		}
		found := v.starters(t, argv, allowed(inside), value, code)
		for group := range slices.Chunk(allowed(read), 16) {
			found = append(found, v.starters(t, argv, group, value, code)...)
		}
		for _, name := range found {
			starting[name] = value
		}
	}
	for name, value := range starting {
		t.Errorf("%s=%q makes %q start it: add the variable to steering in policies/lib/env.rego", name, value, argv)
	}
}
