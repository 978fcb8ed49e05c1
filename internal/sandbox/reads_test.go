// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// watchedOptions allow every program: the kernel's record needs a gate.
func watchedOptions(t *testing.T) Options {
	t.Helper()
	o := testOptions(t)
	o.Exec, o.Event, o.UnwatchedUnsafe = allow, func(proposal.Event) {}, false
	return o
}

// readTree makes a workspace with one file of each kind.
func readTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a": "a", "b": "b\n", "sub/deep/c": "c", "sub/d": "d", "list/one": "1", "list/two": "2", "run.sh": "#!/bin/sh\nread x < b\n", "script.sh": "cat sub/d\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": "sub/deep/c", "far": "sub", "sub/up": "../far/d", "out": "/etc/hostname"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readsOf runs text with a record, and returns the paths: those of which the content was read
// with a * behind.
func readsOf(t *testing.T, o Options, text string) []string {
	t.Helper()
	o.Recorded = true
	r := testRunner(t, o)
	if out, got := play(t, r, text, points.ExecBuilt); !got.Succeeded() { // with what set-up has
		t.Fatalf("%s: %s", text, out)
	}
	list, err := r.Reads(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, read := range list {
		if read.Content {
			read.Path += "*"
		}
		if read.Path != "." {
			names = append(names, read.Path)
		}
	}
	slices.Sort(names)
	return names
}

// The kernel's record has every file of the workspace that a command learns something of,
// whatever it uses, by the path of the file itself, and nothing that the command has written.
func TestReads(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "true", ""},
		{"a file", "cat a", "a*"},
		{"what is there", "[ -f a ] && stat a >/dev/null", "a"},
		{"nothing there", "[ ! -e missing ] && ! cat sub/none", "missing sub sub/none"},
		{"below nothing", "! cat no/such/file", "no"},
		{"below a file", "! cat a/b", "a"},
		{"a list", "ls list", "list*"},
		{"a link", "cat link", "link* sub sub/deep sub/deep/c*"},
		{"links to links", "cat sub/up", "far* sub sub/d* sub/up*"},
		{"the text of a link", "readlink far", "far*"},
		{"a link out", "! cat out", "out*"},
		{"dots", "cat sub/../list/../a", "a* list sub"},
		{"from elsewhere", "cd / && cat /proc/self/root/workspace/a", "a*"},
		{"a descriptor", "exec 3<a && cat /proc/self/fd/3 <&3", "a*"},
		{"a program", "./run.sh", "b* run.sh*"},
		{"a script", "sh script.sh", "script.sh* sub sub/d*"},
		{"a copy", "cp a new && cat new", "a* new"},
		{"what was written", "mkdir made && echo x >made/x && cat made/x && ls made", "made"},
		{"a change", "echo more >>a", "a*"},
		{"a replacement", "echo new >a", "a*"},
		{"another name", "ln a list/a2 && mv b list/b2", "a* b* list list/a2 list/b2"},
		{"a mode", "chmod 700 sub/d", "sub sub/d*"},
		{"attributes", "cp -a sub copy", "copy sub* sub/d* sub/deep* sub/deep/c* sub/up*"},
	}
	o := watchedOptions(t)
	o.Workspace = readTree(t)
	for i, x := range tests {
		o.ImageFrom = []int{math.MaxInt, 1}[i%2] // a directory of the host, or an image
		t.Run(x.name, func(t *testing.T) {
			if got := strings.Join(readsOf(t, o, x.text), " "); got != x.want {
				t.Errorf("%s\ngot  %s\nwant %s", x.text, got, x.want)
			}
		})
	}
}

// What is read first by a command and those after it is optional, and a record ends once it is
// taken.
func TestReadsBefore(t *testing.T) {
	o := watchedOptions(t)
	o.Workspace, o.Recorded = readTree(t), true
	r := testRunner(t, o)
	for id, text := range []string{"cat a; stat b", "cat b", "ls list"} {
		x := Execution{ID: fmt.Sprint(id), Text: text, Grant: proposal.Grant{Limits: testLimits()}}
		if got, err := r.Run(t.Context(), x); err != nil || !got.Succeeded() {
			t.Fatal(got, err)
		}
	}
	list, err := r.Reads(t.Context(), "1")
	slices.SortFunc(list, func(a, b Read) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(fmt.Sprint(a.Optional), fmt.Sprint(b.Optional)))
	})
	if want := []Read{{Path: "."}, {Path: "a", Content: true}, {Path: "b"}, {"b", true, true}, {"list", true, true}}; err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %v", list, err)
	}
	if list, err = r.Reads(t.Context(), "2"); !errors.Is(err, ErrNoLayer) {
		t.Errorf("again: %v, %v", list, err)
	}
}

// Too many paths, and a path that is too long, are said and not left out.
func TestReadsTooMany(t *testing.T) {
	o := watchedOptions(t)
	o.Workspace, o.Recorded = readTree(t), true
	r := testRunner(t, o)
	got := runText(t, r, `i=0; while [ $i -le 20000 ]; do [ -e n$i ]; i=$((i+1)); done; true`)
	if _, err := r.Reads(t.Context(), ""); !errors.Is(err, ErrReads) {
		t.Errorf("%v, %+v", err, got)
	}
	if got := runText(t, r, "true"); !got.Succeeded() {
		t.Errorf("afterwards: %+v", got)
	}
	if _, err := testRunner(t, testOptions(t)).Reads(t.Context(), ""); !errors.Is(err, ErrNoLayer) {
		t.Errorf("without a record: %v", err)
	}
}

// A command cannot mount the file system that records or the one that lists, nor reach the tree below it.
func TestReadsAreInits(t *testing.T) {
	o := watchedOptions(t)
	o.Workspace, o.Recorded = readTree(t), true
	r := testRunner(t, o)
	got := runText(t, r, `unshare -rm sh -c 'mkdir /tmp/m; for t in recorded listing; do mount -t fumehood-$t /workspace /tmp/m && echo mounted; done; mount -t tmpfs t /tmp/m && echo works'; ls /.fumehood/private`)
	if strings.Contains(string(got.Stdout.Head), "mounted") || !strings.Contains(string(got.Stdout.Head), "works") {
		t.Errorf("%q %q", got.Stdout.Head, got.Stderr.Head)
	}
}
