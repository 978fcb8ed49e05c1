// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// plainExec is what the shipped policy lets begin without any grant: git, from the
// root file system.
func plainExec() proposal.Exec {
	return proposal.Exec{
		Command: "t", Path: "/usr/bin/git", Argv: []string{"git", "status"}, Cwd: "/workspace", Pid: 7, Parent: 5,
		ParentPath: "/usr/bin/bash", Digest: "sha256:00", Layer: proposal.LayerRootfs,
	}
}

func judge(t testing.TB, e *policy.Engine, x proposal.Exec) proposal.ExecDecision {
	t.Helper()
	d, err := e.Exec(t.Context(), x)
	if err != nil {
		t.Fatalf("cannot decide %+v: %v", x, err)
	}
	return d
}

// TestExecTogether holds that a busy gate gets the answers of an idle one.
func TestExecTogether(t *testing.T) {
	e := shipped(t)
	paths := []string{"/usr/bin/git", "/usr/bin/curl", "/usr/bin/node", "/etc/x"}
	var want []proposal.ExecDecision
	for _, p := range paths {
		want = append(want, judge(t, e, execOf(p, proposal.LayerRootfs, "x")))
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 100 {
				at := (i + n) % len(paths)
				got, err := e.Exec(t.Context(), execOf(paths[at], proposal.LayerRootfs, "x"))
				if diff := cmp.Diff(want[at], got); err != nil || diff != "" {
					t.Errorf("%s: %v\n%s", paths[at], err, diff)
				}
			}
		})
	}
	group.Wait()
}

// TestExecStops holds that a late answer is an error.
func TestExecStops(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := e.Exec(ctx, plainExec()); codeOf(err) != "policy.deadline" || d.Effect != proposal.Deny {
		t.Errorf("%+v %v", d, err)
	}
	slow := hurried(t, folder(t, "a.rego", `package fumehood.exec

deny contains {"rule": "x", "message": "m", "suggestion": "s"} if {
	some a in numbers.range(1, 100000)
	some b in numbers.range(1, 100000)
	a * b == 0
}
`))
	if d, err := slow.Exec(t.Context(), plainExec()); codeOf(err) != "policy.deadline" || d.Effect != proposal.Deny {
		t.Errorf("%+v %v", d, err)
	}
}

// FuzzExec gives Exec a stranger's bytes. Whatever they are there is an answer, and
// none lets a program of memory or of an unknown place begin.
func FuzzExec(f *testing.F) {
	for _, path := range []string{"/usr/bin/git", "/usr/bin/nc.openbsd", "", "/", "x.js", "/usr/bin/busybox", "/usr/bin/python3.11", "/a\xff"} {
		for _, argv := range []string{"", "busybox\x00wget", "python3\x00-m\x00twine\x00upload", "node\x00npm-cli.js\x00publish", "-\x00--\x00\xff", "cargo\x00+x\x00-p\x00login"} {
			f.Add(path, argv, "rootfs", "LD_PRELOAD")
			f.Add(path, argv, "memory", "")
		}
	}
	e := shipped(f)
	f.Fuzz(func(t *testing.T, path, argv, layer, env string) {
		x := plainExec()
		x.Path, x.Argv, x.Layer, x.Grants = path, strings.Split(argv, "\x00"), layer, []string{"built"}
		if env != "" {
			x.Env = []string{env}
		}
		d := judge(t, e, x)
		known := layer == proposal.LayerRootfs || layer == proposal.LayerWorkspace || layer == proposal.LayerWritten
		if d.Effect == proposal.Allow && (!known || path == "" || strings.HasSuffix(path, ".so")) {
			t.Errorf("%q %q begins: %+v", path, layer, d)
		}
		if (d.Effect == proposal.Allow) != (d.Reason == nil) || d.Cacheable && env != "" {
			t.Errorf("%+v", d)
		}
	})
}

// A program of many tools is the one that its file is named after, if that is one; what follows is
// its first argument.
func TestConfineApplets(t *testing.T) {
	for _, test := range []struct {
		path        string
		argv        []string
		name, under string
	}{
		{"/bin/sh", []string{"sh", "look.sh"}, "sh", ""},
		{"/bin/sh", []string{"-sh", "tar"}, "sh", ""},
		{"/bin/sh", []string{"wc", "-l"}, "wc", "wc"}, // of /proc/self/exe
		{"/bin/tar", []string{"tar", "sh"}, "tar", "tar"},
		{"/bin/busybox", []string{"busybox", "tar", "xf", "a"}, "tar", "tar"},
		{"/bin/busybox", []string{"tar", "sh"}, "tar", "tar"},
		{"/bin/other", []string{"other", "tar"}, "tar", "tar"},
	} {
		x := proposal.Exec{Path: test.path, Argv: test.argv, Layer: proposal.LayerRootfs, Same: []string{"/bin/busybox"}}
		if name, under := policy.Confine(x, nil); name != test.name || under != test.under {
			t.Errorf("%s %q: %s under %q, want %s under %q", test.path, test.argv, name, under, test.name, test.under)
		}
	}
}
