// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// busybox fetches the distribution's busybox, nearly three hundred tools in one
// file, as bin/busybox below the desk's directory "unpacked".
func busybox(t *testing.T, d desk) string {
	t.Helper()
	debianPackage("busybox-static", "usr/share/doc/busybox-static")(t, d)
	path := d.path("unpacked/bin/busybox")
	if _, err := os.Stat(path); err != nil {
		path = d.path("unpacked/usr/bin/busybox")
	}
	return path
}

// THREATS 33: the tools of a busybox in the pull request are identified, whether
// selected by the first argument, by a link, or by renaming the file.
func TestE2EBusyboxOfThePullRequest(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	runCommand(t, exec.Command("cp", busybox(t, d), d.path("ws/busybox")))
	d.write(t, "ws/tricks.py", busyboxTricks)
	d.plan(t, "python3 tricks.py", "1m")
	_, report := d.run(t, "bb", "--rootfs", "host")
	r := result(t, report)
	if diff := cmp.Diff(busyboxTricksWant, string(r.Stdout.Head)); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, r.Stderr.Head)
	}
	wantRefused(t, d, r, []string{"exec.network", "exec.privilege"}, "./busybox nc -h", "./busybox wget -h", "./busybox su -h", "./nc -h", "wget -h")
	d.checkSealed(t, "bb")
}

// A copy under a name of its own cannot be identified. It is treated as the pull
// request's own program: it is recorded with its digest, and has no network.
const busyboxTricks = `
import os, shutil, subprocess

def attempt(name, *argv, path=None):
    try:
        code = subprocess.run(argv, executable=path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        # A shell that may not start its own tool looks for another, and finds none.
        print(name + ": refused inside" if code in (126, 127) else name + ": ran")
    except PermissionError:
        print(name + ": refused")

for tool in "nc", "wget", "su":
    attempt("busybox " + tool, "./busybox", tool, "-h")
    attempt("sh -c " + tool, "./busybox", "sh", "-c", tool + " -h")
attempt("env", "./busybox", "env", "nc", "-h")
os.symlink("busybox", "nc")
attempt("symbolic link", "./nc", "-h")
attempt("first word", "nc", "-h", path="./busybox")
os.link("busybox", "wget")
attempt("hard link", "./wget", "-h")
shutil.copy("busybox", "/tmp/busybox-copy")
attempt("copy with its name", "/tmp/busybox-copy", "nc", "-h")
attempt("ls", "./busybox", "ls")
shutil.copy("busybox", "/tmp/own")
attempt("copy with a name of its own", "nc", "-h", path="/tmp/own")
`

const busyboxTricksWant = `busybox nc: refused
sh -c nc: refused inside
busybox wget: refused
sh -c wget: refused inside
busybox su: refused
sh -c su: refused inside
env: refused
symbolic link: refused
first word: refused
hard link: refused
copy with its name: refused
ls: ran
copy with a name of its own: ran
`

// In a root file system made of busybox, with symbolic links like Alpine's or hard
// links like busybox's own image, a copy is also identified by its content.
func TestE2EBusyboxRoot(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]func(old, new string) error{
		"symbolic links": func(_, new string) error { return os.Symlink("busybox", new) },
		"hard links":     os.Link,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			root := d.path("root")
			busyboxRoot(t, busybox(t, d), root, link)
			d.write(t, "ws/tricks.sh", busyboxShell)
			d.write(t, "plan.yaml", "schema: fumehood.plan/v1\nproposals:\n  - {id: it, argv: [sh, tricks.sh]}\n")
			_, report := d.run(t, "bb", "--rootfs", "dir:"+root)
			r := result(t, report)
			if diff := cmp.Diff(busyboxShellWant, string(r.Stdout.Head)); diff != "" {
				t.Errorf("-want +got:\n%s\n%s", diff, r.Stderr.Head)
			}
			wantRefused(t, d, r, []string{"exec.network"}, "busybox nc -h", "wget -h", "/tmp/nc -h", "/tmp/busybox2 nc -h", "/tmp/wget -h")
			d.checkSealed(t, "bb")
		})
	}
}

func busyboxRoot(t *testing.T, binary, root string, link func(old, new string) error) {
	t.Helper()
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	box := filepath.Join(bin, "busybox")
	runCommand(t, exec.Command("cp", binary, box))
	for tool := range strings.Lines(string(runCommand(t, exec.Command(binary, "--list")))) {
		if tool = strings.TrimSpace(tool); tool == "busybox" {
			continue
		}
		if err := link(box, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
}

const busyboxShell = `
attempt() {
	name=$1; shift
	"$@" </dev/null >/dev/null 2>&1
	case $? in 126) echo "$name: refused";; *) echo "$name: ran";; esac
}
attempt "by word" busybox nc -h
attempt "by link" /bin/nc -h
attempt "by shell" sh -c 'wget -h'
attempt "by env" env nc -h
echo -h | xargs nc >/dev/null 2>&1; echo "by xargs: $?"
cp /bin/busybox /tmp/tool
ln -s tool /tmp/nc
attempt "link to a copy" /tmp/nc -h
ln /tmp/tool /tmp/wget
attempt "hard link of a copy" /tmp/wget -h
cp /bin/busybox /tmp/busybox2
attempt "copy with its name" /tmp/busybox2 nc -h
attempt "word of a copy" /tmp/tool nc -h
attempt "ls" busybox ls
`

const busyboxShellWant = `by word: refused
by link: refused
by shell: refused
by env: refused
by xargs: 126
link to a copy: refused
hard link of a copy: refused
copy with its name: refused
word of a copy: refused
ls: ran
`

// wantRefused checks that exactly these rules refused programs, that all refusals
// are recorded, and that the comment shows each command line.
func wantRefused(t *testing.T, d desk, r *proposal.Result, rules []string, words ...string) {
	t.Helper()
	o := r.Observations
	if o == nil || !o.Complete {
		t.Fatalf("recorded %+v", o)
	}
	var got []string
	for _, e := range o.Execs {
		if e.Kind == proposal.EventRefused && !slices.Contains(got, e.Decision.Reason.Rule) {
			got = append(got, e.Decision.Reason.Rule)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(rules, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	comment, err := os.ReadFile(d.path("bb.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range append(words, "tried to start programs that policy refused") {
		if !strings.Contains(string(comment), w) {
			t.Errorf("the comment does not name %q", w)
		}
	}
	t.Logf("%d programs, %d refused", o.Counts.Execs, o.Counts.Refused)
}
