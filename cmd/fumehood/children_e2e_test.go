// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// marker is the program that the organization of these tests denies, and that no tool may be
// made to start.
const marker = "factor"

// documentedUses are commands whose tools start other programs, as their manuals describe.
// Each must work, and what it starts must be on the tool's list.
var documentedUses = []string{
	"zgrep one a.gz", "zgrep -e one -e two a.gz a.gz", "zcat a.gz", "gunzip -c a.gz", "tar tzf a.tgz", "tar czf /tmp/a.tgz a", "tar cJf /tmp/a.txz a",
	"tar cjf /tmp/a.tbz a", "tar xzf a.tgz -C /tmp", "zip -q -r /tmp/b.zip sub", "unzip -t a.zip", "sdiff a b", "diff3 a a a",
	"gcc -o /tmp/x x.c", "gcc -c -pipe -o /tmp/x.o x.c", "gcc -flto -o /tmp/x x.c", "gcc -flto=auto -O2 -o /tmp/x x.c y.c", "g++ -o /tmp/x x.cc", "gcc --coverage -o /tmp/x x.c",
	"ld --version", "install -m 755 a /tmp/installed", "javac -d /tmp A.java", "jar tf a.zip", "javap -version", "yq . a.yaml",
	"sqlite3 a.db 'select count(*) from t'", "patch -p0 --dry-run < p.diff", "gofmt -l x.go", "go vet ./...", "go list ./...", "go env GOOS", "go version", "go fmt ./...",
	"go tool nm -h", "go tool cover -V", "go doc fmt.Println", "go mod verify", "git --version", "file a.gz", "sort a", "awk '{print}' a", "sed -n p a", "lsb_release -a", "which ls",
	"openssl version", "pkg-config --version", "xz -k -c a", "gzip -k -c a", "find . -name a", "nm /bin/ls", "readelf -d /bin/ls", "c++filt _Z1fv", "cmp a a", "bc --version",
}

// tricks make a tool start the marker: by an option, a file of the workspace, a variable, or a
// dot file in the home directory. Text rules are off for them.
var tricks = map[string][]string{
	"option": {
		"sort --compress-program=factor -S1b big", "tar cf /tmp/t --use-compress-program=factor a", "tar cf /tmp/t -I 'factor 6' a", "tar cf /tmp/t a --checkpoint=1 --checkpoint-action=exec=factor",
		"tar xf a.tar --to-command='factor 6'", "tar cf /tmp/t --rsh-command=factor x:a", "tar cMf /tmp/t -L1 -F 'factor 6' big", "tar tf a.tgz --use-compress-program='factor 6;gzip'", "split --filter='factor 6' big", "sed '1e factor 6' a",
		"sed 's/.*/factor 6/e' a", `awk 'BEGIN{system("factor 6")}'`, `awk 'BEGIN{print 6|"factor"}'`, `awk 'BEGIN{"factor 6"|getline;print}'`, `gawk 'BEGIN{cmd="factor";print 6|&cmd}'`, "mawk 'BEGIN{system(\"factor 6\")}'",
		"zip -q /tmp/t.zip a -T -TT 'factor 6'", "zip -q /tmp/t.zip a -T --unzip-command 'factor 6'", "diff3 --diff-program=factor 6 6 6", "sdiff --diff-program=factor a b", "diff -l a b", "install -s --strip-program=factor a /tmp/i",
		"gcc -wrapper factor,6 x.c", "gcc -no-integrated-cpp -B./bin/ x.c", "gcc -specs=./evil.specs x.c", "gcc -fuse-ld=bfd -Wl,-plugin=./x.so x.c", "gcc @args",
		"sqlite3 a.db '.shell factor 6'", "sqlite3 a.db '.system factor 6'", `sqlite3 a.db "select edit('6','factor')"`, `sqlite3 a.db "select \"edit\"('6','factor')"`,
		`sqlite3 a.db "select edit/**/('6','factor')"`, `sqlite3 a.db "select [edit]('6','factor')"`, "sqlite3 a.db '.once |factor' 'select 6'", "sqlite3 a.db '.excel' 'select 6'", "gdb -batch -ex 'shell factor 6'", "gdb -batch -ex '!factor 6'",
		"gdb -batch -ex 'pipe help | factor'", `gdb -batch -ex 'python import os; os.system("factor 6")'`, `gdb -batch -ex 'p $_shell("factor 6")'`, "gdb -batch -x gdbcmds", "go tool test2json factor 6", "go tool test2json -t factor 6",
		"go vet -vettool=/usr/bin/factor ./...", "go list -toolexec=factor -export ./...", "go vet -toolexec=factor ./...", "git -c core.pager=factor -p log", "git -c alias.x='!factor 6' x", "git -c diff.external=factor diff --no-index a b",
		"git -c core.fsmonitor='factor 6' status", "git -c core.sshCommand='factor 6' ls-remote x:y", "git grep --open-files-in-pager=factor one", "git difftool -x factor --no-index a b", "git -c core.editor=factor commit --allow-empty",
		"git ls-remote ext::'factor 6'", "git -c protocol.ext.allow=always ls-remote 'ext::factor 6'", "git bisect start && git bisect run factor 6", "git submodule foreach factor 6", "git filter-branch --tree-filter 'factor 6' HEAD", "git rebase -x 'factor 6' --root",
		"patch -e -o /tmp/o a ed.script", "yq '@sh' a.yaml; yq --jq factor . a.yaml", "cpp -wrapper factor,6 x.c", "javac -processorpath . -processor P A.java", "javac -J-XX:OnError=factor A.java", "openssl s_client -connect x -engine ./x.so",
		"file -C -m a", "ldd ./fake", "date -f a", "nm --plugin ./x.so a.o", "jar cfe /tmp/j X A.java", "dc -e '!factor 6'", "bc a", "ps -ef", "tail --pid=1 -n1 a", "psql -c '\\! factor 6'", "lsb_release -a", "chromium --no-sandbox --headless --renderer-cmd-prefix=factor about:blank",
	},
	"file": {
		"sqlite3 -readonly view.db 'select * from v'", "sqlite3 view.db .dump", "sqlite3 view.db 'insert into c values(1)'", "sqlite3 view.db 'insert into d(a) values(1)'", "sqlite3 -init init.sql a.db 'select 1'", "sqlite3 a.db < init.sql",
		"awk -f run.awk a", "gawk -f run.awk a", "sed -f run.sed a", "patch -p0 < ed.patch", "patch a ed.script", "git -C repo diff", "git -C repo status", "git -C repo log -p", "git -C repo checkout .", "git -C repo show HEAD", "git -C repo blame a",
		"git -C repo stash", "git -C repo add .", "git -C repo commit --allow-empty -m x", "git -C repo merge x", "git -C repo grep --textconv one", "git -C repo archive HEAD", "git -C repo fetch", "git -C repo submodule status", "gdb -batch -iex 'add-auto-load-safe-path /' ./a.out",
		"tar xf evil.tar -C /tmp", "gcc -o /tmp/x inc.c", "javac A.java", "javac -cp lib A.java", "go vet ./cgo", "go list -m -json all", "dc run.dc", "bc run.bc", "jq -f run.jq a.yaml", "yq -f run.jq a.yaml", "find . -newerXY a", "file -m magic a",
	},
	"variable": {
		"GREP='factor 6;:' zgrep one a.gz", "export GREP='factor 6;:'; zgrep one a.gz", "GZIP='factor' zcat a.gz", "ZIP='-T -TT factor' zip -q /tmp/t.zip a", "ZIPOPT='-T -TT factor' zip -q /tmp/t.zip a", "TAR_OPTIONS='--use-compress-program=factor' tar cf /tmp/t a",
		"TAPE=x:y RSH=factor tar cf /tmp/t a", "PYTHONPATH=py yq . a.yaml", "PYTHONPATH=py gdb -batch -ex 'python print(1)'", "PYTHONSTARTUP=py/sitecustomize.py gdb -batch -ex 'python print(1)'", "env PYTHONPATH=py yq . a.yaml", "CLASSPATH=lib javac A.java",
		"JAVA_TOOL_OPTIONS=-XX:OnOutOfMemoryError=factor javac A.java", "JDK_JAVAC_OPTIONS='-processorpath . -processor P' javac A.java", "PERL5OPT=-Mevil PERL5LIB=pl shasum a", "PERL5LIB=pl shasum a", "PAGER=factor git -p log", "GIT_PAGER=factor git -p log",
		"GIT_EXTERNAL_DIFF=factor git diff --no-index a b", "GIT_SSH=factor git ls-remote x:y", "GIT_SSH_COMMAND='factor 6' git ls-remote x:y", "GIT_ASKPASS=factor git ls-remote https://127.0.0.1:1/x", "GIT_EDITOR=factor git commit --allow-empty", "EDITOR=factor git commit --allow-empty",
		"GIT_PROXY_COMMAND=factor git ls-remote git://x/y", "GIT_EXEC_PATH=bin git status", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='factor 6' git status", "GIT_TRACE2_EVENT='|factor' git status", "LESSOPEN='|factor %s' git -p log",
		"GOFLAGS=-toolexec=factor go vet ./...", "GOFLAGS=-vettool=/usr/bin/factor go vet ./...", "GOCACHEPROG='factor 6' go list ./...", "GOCACHEPROG='factor 6' go vet ./...", "CC=factor CGO_ENABLED=1 go vet ./cgo", "PKG_CONFIG=factor go vet ./cgo", "GOAUTH='factor 6' go list -m example.com/x@v1",
		"COMPILER_PATH=bin gcc x.c", "GCC_EXEC_PREFIX=bin/ gcc x.c", "COLLECT_GCC=factor gcc x.c", "SHELL=/usr/bin/factor gdb -batch -ex run ./a.out", "STARTUP_WITH_SHELL=1 SHELL=/usr/bin/factor gdb -batch -ex run /bin/true",
		"VISUAL=factor sqlite3 a.db \"select edit('6')\"", "MAKE=factor gcc -flto=2 -o /tmp/x x.c y.c", "PSQL_PAGER=factor psql -c 'select 1'", "DEBUGINFOD_URLS=http://127.0.0.1:1 gdb -batch ./a.out",
	},
	"dot file": {
		"cp -r home/. /tmp; HOME=/tmp gdb -batch ./a.out", "cp -r home/. /tmp; HOME=/tmp sqlite3 a.db 'select 1'", "cp -r home/. /tmp; HOME=/tmp yq . a.yaml", "cp -r home/. /tmp; HOME=/tmp go list ./...", "cp -r home/. /tmp; HOME=/tmp go vet ./...",
		"cp -r home/. /tmp; HOME=/tmp go version", "cp -r home/. /tmp; HOME=/tmp go env", "tar xf evil.tar -C /tmp; HOME=/tmp gdb -batch ./a.out", "cp -r home/. /tmp; HOME=/tmp git -C repo log -p", "cp -r home/. /tmp; HOME=/tmp git -p log",
		"cp -r home/. /tmp; HOME=/tmp psql -c 'select 1'", "cp -r home/. /tmp; HOME=/tmp gcc -o /tmp/x x.c", "cp -r home/. /tmp; HOME=/tmp javac A.java", "cp -r home/. /tmp; HOME=/tmp file a", "cp -r home/. /tmp; HOME=/tmp zip -q /tmp/t.zip a",
		"cp -r home/. /tmp; XDG_CONFIG_HOME=/tmp/.config go list ./...", "cp -r home/. /tmp; XDG_CONFIG_HOME=/tmp/.config gdb -batch ./a.out", "cp -r home/. /tmp; HOME=/tmp jar tf a.zip", "cp -r home/. /tmp; HOME=/tmp lsb_release -a",
	},
}

// childWorkspace makes the files that documentedUses and tricks name.
func childWorkspace(t *testing.T, ws string) {
	t.Helper()
	const python = "import os\nos.system('factor 6')\n"
	evilGit := "[core]\n\tfsmonitor = factor 6\n\tpager = factor\n\teditor = factor\n\tsshCommand = factor\n\thooksPath = hooks\n[diff \"x\"]\n\ttextconv = factor\n\tcommand = factor\n[filter \"x\"]\n\tclean = factor\n\tsmudge = factor\n" +
		"[merge \"x\"]\n\tdriver = factor\n[pager]\n\tlog = factor\n[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = /usr/bin/factor\n[remote \"origin\"]\n\turl = ext::factor 6\n\tuploadpack = factor\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[user]\n\tname = a\n\temail = a@example.com\n"
	for name, text := range map[string]string{
		"a": "one\n", "b": "two\n", "big": strings.Repeat("6\n", 5000), "sub/c": "three\n", "a.yaml": "a: 1\n", "x.go": "package x\n", "go.mod": "module x\n\ngo 1.24\n", "cgo/c.go": "package c\n\n// int f(void);\nimport \"C\"\n",
		"x.c": "int f(void){return 0;}\nint main(void){return f();}\n", "y.c": "int g(void){return 1;}\n", "x.cc": "int main(){return 0;}\n", "inc.c": "#pragma GCC system_header\nint main(void){return 0;}\n",
		"A.java": "class A{}\n", "args": "-wrapper factor,6 x.c\n", "evil.specs": "*cc1:\n%(cc1) \n\n*asm:\n\n\n*linker:\nfactor\n", "gdbcmds": "shell factor 6\n",
		"init.sql": ".shell factor 6\nselect edit('6','factor');\n", "run.awk": `BEGIN{system("factor 6")}`, "run.sed": "1e factor 6\n", "run.dc": "!factor 6\n", "run.bc": "1\n", "run.jq": ".", "magic": "0 string one one\n",
		"ed.script": "1d\n!factor 6\nw\n", "ed.patch": "*** a\n1c\nnew\n.\n!factor 6\nw\nq\n", "p.diff": "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n", "evil.sh": "factor 6\n", "py/sitecustomize.py": python, "py/usercustomize.py": python,
		"pl/evil.pm": "system('factor 6'); 1;\n", "pl/strict.pm": "BEGIN{system('factor 6')} 1;\n", "bin/git-status": "#!/bin/sh\nfactor 6\n", "bin/cc1": "#!/bin/sh\nfactor 6\n", "bin/as": "#!/bin/sh\nfactor 6\n", "fake": "#!/bin/sh\nfactor 6\n",
		"P.java":        "import javax.annotation.processing.*;import java.util.*;import javax.lang.model.element.*;@SupportedAnnotationTypes(\"*\")public class P extends AbstractProcessor{public boolean process(Set<? extends TypeElement> a,RoundEnvironment r){try{new ProcessBuilder(\"factor\",\"6\").inheritIO().start().waitFor();}catch(Exception e){}return false;}}\n",
		"home/.gdbinit": "shell factor 6\n", "home/.config/gdb/gdbinit": "shell factor 6\n", "home/.sqliterc": ".shell factor 6\n", "home/.local/lib/python3.11/site-packages/usercustomize.py": python, "home/.config/go/env": "GOCACHEPROG=factor 6\nGOFLAGS=-toolexec=factor\nCC=factor\n",
		"home/.gitconfig": evilGit, "home/.psqlrc": "\\! factor 6\n", "home/.npmrc": "script-shell=/usr/bin/factor\n", "home/.magic": "0 string one one\n",
		"repo/.gitattributes": "* diff=x filter=x merge=x\n", "repo/a": "one\n", "repo/hooks/pre-commit": "#!/bin/sh\nfactor 6\n", "repo/hooks/post-checkout": "#!/bin/sh\nfactor 6\n",
	} {
		file := filepath.Join(ws, name)
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"gzip -k a", "tar czf a.tgz a", "tar cf a.tar a", "zip -q a.zip a", "gcc -o a.out x.c", "javac -proc:none -d . P.java", "mkdir -p lib/META-INF/services && cp P.class lib && echo P > lib/META-INF/services/javax.annotation.processing.Processor",
		"sqlite3 a.db 'create table t(a)'",
		`sqlite3 view.db "create view v as select edit('6','factor')"`, `sqlite3 view.db "create table c(a check(edit('6','factor')>0))"`,
		`sqlite3 view.db "create table d(a, b default (edit('6','factor')))"`,
		"cd repo && git init -q && git add -A && git -c user.name=a -c user.email=a@example.com -c core.hooksPath=/dev/null commit -qm x && git branch x && echo two >> a",
	} {
		cmd := exec.Command("bash", "-c", line)
		cmd.Dir = ws
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("%s: %v: %s", line, err, out) // the tricks that need it then start nothing
		}
	}
	config := filepath.Join(ws, "repo", ".git", "config")
	if err := os.WriteFile(config, []byte("[core]\n\trepositoryformatversion = 0\n"+evilGit), 0o644); err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(ws, "evil.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	w := tar.NewWriter(archive)
	if err := w.AddFS(os.DirFS(filepath.Join(ws, "home"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// everyText is a granting policy that allows every text and grants nothing. Its decisions about
// programs are those of the shipped policy.
func everyText(t *testing.T, dir string) {
	t.Helper()
	err := fs.WalkDir(policies.FS, ".", func(name string, d fs.DirEntry, err error) error {
		keep := strings.HasPrefix(name, "exec/") || strings.HasPrefix(name, "lib/") || strings.HasPrefix(name, "output/") || name == "proposal/limits.rego"
		if err != nil || d.IsDir() || !keep || strings.HasSuffix(name, "_test.rego") {
			return err
		}
		text, err := policies.FS.ReadFile(name)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, text, 0o644)
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "command.rego"), []byte("package fumehood.command\n\n# METADATA\n# title: Every text\n# custom: {rule: test.every}\n"+
			"allow contains {\"rule\": \"test.every\"} if true\n\n# METADATA\n# title: Kinds of programs\n# custom: {rule: test.trace}\nexec contains {\"rule\": \"test.trace\", \"kind\": \"trace\"} if input.command.program == \"gdb\"\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// runChildren runs texts in one sandbox.
func runChildren(t *testing.T, texts []string, flags ...string) (proposal.Report, []proposal.Event) {
	t.Helper()
	dir := t.TempDir()
	childWorkspace(t, filepath.Join(dir, "ws"))
	return runInWorkspace(t, dir, texts, "20s", flags...)
}

// runInWorkspace runs texts in one sandbox, whose workspace is the directory ws of dir.
func runInWorkspace(t *testing.T, dir string, texts []string, timeout string, flags ...string) (proposal.Report, []proposal.Event) {
	t.Helper()
	var proposals []map[string]any
	for i, text := range texts {
		proposals = append(proposals, map[string]any{"id": fmt.Sprintf("t%d", i), "run": text, "timeout": timeout})
	}
	data, err := json.Marshal(map[string]any{"schema": proposal.PlanSchema, "proposals": proposals})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "plan.json"), data, 0o644)
	}
	if err != nil || len(texts) > 200 {
		t.Fatal(err, len(texts))
	}
	args := append([]string{"run", "--config", "none", "--setup", "none", "--plan", filepath.Join(dir, "plan.json"), "--workspace", filepath.Join(dir, "ws"),
		"--artifacts", filepath.Join(dir, "a"), "--report", filepath.Join(dir, "r.json")}, flags...)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asFumehood+"=1", "FUMEHOOD_CACHE="+jobtest.BuildCache(t))
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() >= exitUsage {
		t.Fatalf("%v: %s", err, out)
	}
	return readStarts(t, dir)
}

// The lists of options.txt have what the tools of the real root start for their documented uses.
func TestE2EChildrenOfTools(t *testing.T) {
	t.Parallel()
	report, events := runChildren(t, documentedUses)
	for i, r := range report.Records {
		if r.Decision.Effect != proposal.Allow || r.Result == nil {
			t.Errorf("%s: %s", documentedUses[i], r.Decision.Effect)
		}
	}
	started := map[string][]string{}
	for _, e := range events {
		if e.Exec.Under == "" {
			continue
		}
		name := path.Base(e.Exec.Path)
		if e.Kind == proposal.EventRefused {
			t.Errorf("%s: %s, below %q", documentedUses[indexOf(e.Command)], e.Decision.Reason.Message, e.Exec.Chain)
		}
		if !slices.Contains(started[e.Exec.Under], name) {
			started[e.Exec.Under] = append(started[e.Exec.Under], name)
		}
	}
	for _, tool := range []string{"zgrep", "zcat", "gunzip", "tar", "gcc", "g++", "go"} {
		if len(started[tool]) == 0 {
			t.Errorf("%s was not seen to start anything", tool)
		}
	}
	t.Logf("started: %v", started)
}

// denyingPolicy is an organization's: nothing may be the marker.
func denyingPolicy(t *testing.T, dir string) {
	t.Helper()
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "acme.rego"), []byte("package fumehood.command\n\n# METADATA\n# title: Nothing is factored\n# custom:\n#   rule: acme.factor\n#   match: [factor 6]\n#   not_match: [ls]\n"+
			"deny contains {\"rule\": \"acme.factor\", \"message\": \"no factors\", \"suggestion\": \"compute\"} if input.command.program == \"factor\"\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checkRefused runs texts and fails for each that started the marker. It returns the number of
// those in which exec.child stopped a start.
func checkRefused(t *testing.T, texts []string, flags ...string) int {
	t.Helper()
	_, events := runChildren(t, texts, flags...)
	stopped := map[string]bool{}
	for _, e := range events {
		switch {
		case path.Base(e.Exec.Path) == marker && e.Kind != proposal.EventRefused:
			t.Errorf("%s: started %q below %q", texts[indexOf(e.Command)], e.Exec.Argv, e.Exec.Chain)
		case e.Kind == proposal.EventRefused && e.Decision.Rules[0] == "exec.child":
			stopped[e.Command] = true
		}
	}
	return len(stopped)
}

// Whatever an option, a file, a variable or a dot file makes a tool do, it starts no program that
// is not on its list: with every text allowed, and with the shipped policy below an organization's.
func TestE2EChildrenAreRefused(t *testing.T) {
	t.Parallel()
	every, denying := filepath.Join(t.TempDir(), "policy"), filepath.Join(t.TempDir(), "policy")
	everyText(t, every)
	denyingPolicy(t, denying)
	for kind, texts := range tricks {
		t.Run(kind, func(t *testing.T) {
			stopped := checkRefused(t, texts, "--granting", every)
			if t.Logf("%d texts, exec.child stopped a start in %d", len(texts), stopped); stopped*4 < len(texts) {
				t.Errorf("only %d of %d texts got as far as a start", stopped, len(texts))
			}
			t.Logf("with the shipped policy in %d", checkRefused(t, texts, "--policy", denying))
		})
	}
}

// A runner starts no denied program by a link or a copy, and what loads programs itself loads none. The
// repository's own programs run.
func TestE2EOtherNames(t *testing.T) {
	t.Parallel()
	denying := filepath.Join(t.TempDir(), "policy")
	denyingPolicy(t, denying)
	refused := []string{
		"valgrind -q ./l 6", "valgrind -q ./copy 6", "cp /usr/bin/facto? /tmp; valgrind -q /tmp/factor 6", "valgrind -q ./script", "prove ./l", "cp /usr/bin/factor y; prove ./y", "make -f l.mk", "./l.sh",
	}
	allowed := []string{"valgrind -q ./a.out", "valgrind -q ./python -c 'print(1)'", "prove t"}
	dir := t.TempDir()
	prepare := exec.Command("bash", "-ec", `mkdir ws; cd ws; ln -s /usr/bin/factor l; cp /usr/bin/factor copy; ln -s /usr/bin/python3 python; printf '#!/usr/bin/factor\n' > script; printf '#!/bin/sh\nexec ./l 6\n' > l.sh; chmod +x script l.sh
		printf 'all:\n\tvalgrind -q ./l 6\n' > l.mk; mkdir t; printf 'print "1..1\nok 1\n"' > t/a.t; echo 'int main(void) { return 0; }' > x.c; gcc -o a.out x.c`)
	prepare.Dir = dir
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	texts := slices.Concat(refused, allowed)
	report, events := runInWorkspace(t, dir, texts, "60s", "--policy", denying)
	for i, r := range report.Records {
		if r.Result == nil || r.Result.Succeeded() != (i >= len(refused)) {
			t.Errorf("%s: %v %+v", texts[i], r.Decision.Effect, r.Result)
		}
	}
	for _, e := range events {
		isMarker := path.Base(e.Exec.Path) == marker || slices.Contains(e.Exec.Same, "/usr/bin/"+marker)
		if isMarker && (e.Kind != proposal.EventRefused || e.Decision.Rules[0] != "acme.factor") {
			t.Errorf("%s: %s %+v", texts[indexOf(e.Command)], e.Kind, e.Decision)
		}
	}
}

// Each tool of the option table that is installed and has a list, or none, is tried with each
// of its options that start a program, and with variables, a file and a home directory that name one.
func TestE2EChildrenMatrix(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy")
	everyText(t, policy)
	var texts []string
	for _, line := range strings.Split(policies.Options, "\n") {
		if names, _, ok := strings.Cut(line, " = "); ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "\t") {
			texts = append(texts, childMatrix(t, strings.Split(names, ","), optionsThatRun(line))...)
		}
	}
	stopped := 0
	for chunk := range slices.Chunk(texts, 100) {
		stopped += checkRefused(t, chunk, "--granting", policy)
	}
	if t.Logf("%d texts, exec.child stopped a start in %d", len(texts), stopped); len(texts) < 300 {
		t.Errorf("the matrix has only %d texts", len(texts))
	}
}

// optionsThatRun returns the options of a tool's lines in options.txt with a value that are marked
// to run a program. line is the first of them.
func optionsThatRun(line string) (names []string) {
	_, rest, _ := strings.Cut(policies.Options, "\n"+line+"\n")
	for own := range strings.Lines(rest) {
		if own[0] != '\t' {
			break
		}
		for _, word := range strings.Fields(own) {
			if name, ok := strings.CutSuffix(word, ":!"); ok && !strings.Contains(name, "*") {
				names = append(names, strings.Split(name, ",")...)
			}
		}
	}
	return names
}

// endless are tools that do not end by themselves, or start what their words name, and the marker.
var endless = []string{marker, "yes", "sleep", "bash", "sh", "dash", "[", "[[", "time", "command", "exec"}

func childMatrix(t *testing.T, tools, options []string) (texts []string) {
	t.Helper()
	variables := "export PAGER=factor EDITOR=factor VISUAL=factor BROWSER=factor SHELL=/usr/bin/factor MAKE=factor LESSOPEN='|factor 6' MANPAGER=factor TAR_OPTIONS=-Ifactor GREP='factor 6;:' " +
		"PYTHONPATH=py PERL5LIB=pl PERL5OPT=-Mevil CLASSPATH=lib GCC_EXEC_PREFIX=bin/ COMPILER_PATH=bin GOFLAGS=-toolexec=factor GOCACHEPROG='factor 6' CC=factor GIT_EXTERNAL_DIFF=factor GIT_PAGER=factor GIT_SSH=factor"
	for _, name := range tools {
		words := strings.Fields(name)
		name = strings.Join(words, " ")
		_, free := facts.HasChildren(words[0])
		_, freeSub := facts.HasChildren(name)
		if free || freeSub || slices.Contains(endless, words[0]) || strings.Contains(name, "*") {
			continue
		}
		if _, err := exec.LookPath(words[0]); err != nil {
			continue
		}
		upper := strings.ToUpper(strings.NewReplacer("-", "_", "+", "X").Replace(words[0]))
		texts = append(texts, name+" ed.script", fmt.Sprintf("%s %s=factor %s_OPTIONS=factor %sOPT=factor %s_OPTS=factor; %s a", variables, upper, upper, upper, upper, name),
			"cp -r home/. /tmp; HOME=/tmp XDG_CONFIG_HOME=/tmp/.config "+name+" a")
		for _, option := range options {
			value := " factor a"
			if strings.HasPrefix(option, "--") {
				value = "='factor 6' a"
			}
			texts = append(texts, name+" "+option+value)
		}
	}
	return texts
}

// refusedWorkspace makes the files that testdata/corpus/refused.txt names, in a repository of git.
func refusedWorkspace(t *testing.T, ws string) {
	t.Helper()
	childWorkspace(t, ws)
	for _, line := range []string{
		"cp big big.txt; cp big f; cp a foo; cp a c; cp big README.md; cp x.c a.c; gcc -c -o a.o x.c; cp a.db x.db; echo '* diff=foo filter=x merge=a' > .gitattributes",
		`for p in x evil evil.sh git-evil; do printf '#!/bin/sh\nfactor 6\n' > $p; chmod +x $p; done`,
		`echo 'int plugin_is_GPL_compatible; int onload(void *tv){return 0;} int sqlite3_x_init(void){return 0;}' > plugin.c && gcc -shared -fPIC -o x.so plugin.c`,
		"git init -q -b main && git add .gitattributes a b f foo x.c && git -c user.name=a -c user.email=a@example.com commit -qm x && git branch other && echo two >> a && echo x > x.c",
	} {
		cmd := exec.Command("bash", "-c", line)
		cmd.Dir = ws
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
}

// The texts that are allowed because the kernel refuses what their tools would start, start only
// what is on their tools' lists. Only for tools that are not installed this proves nothing.
func TestE2ERefusedCorpus(t *testing.T) {
	t.Parallel()
	denying := filepath.Join(t.TempDir(), "policy")
	denyingPolicy(t, denying)
	texts := readTexts(t, "../../testdata/corpus/refused.txt")
	stopped := map[string]bool{}
	for chunk := range slices.Chunk(texts, 80) {
		dir := t.TempDir()
		refusedWorkspace(t, filepath.Join(dir, "ws"))
		report, events := runInWorkspace(t, dir, chunk, "20s", "--policy", denying)
		for i, r := range report.Records {
			if r.Decision.Effect != proposal.Allow || r.Result == nil {
				t.Errorf("%s: %v: %+v", chunk[i], r.Decision.Effect, r.Decision.Reasons)
			}
		}
		for _, e := range events {
			text := chunk[indexOf(e.Command)]
			switch {
			case e.Kind == proposal.EventRefused:
				stopped[text] = true
			case e.Exec.Under != "" && !facts.ListsProgram(e.Exec.Under, *e.Exec), path.Base(e.Exec.Path) == marker:
				t.Errorf("%s: started %q below %q", text, e.Exec.Argv, e.Exec.Chain)
			}
		}
	}
	for _, text := range texts {
		if !stopped[text] {
			t.Logf("%s: nothing was refused", text)
		}
	}
	if t.Logf("%d texts, a start was refused in %d", len(texts), len(stopped)); len(stopped) < 50 {
		t.Errorf("only %d of %d texts got as far as a start", len(stopped), len(texts))
	}
}
