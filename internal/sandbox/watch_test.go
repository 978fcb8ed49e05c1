// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// seen reports whether the tricks program caused an event of a kind with these words.
func seen(rec *recorder, kind string, words ...string) bool {
	return slices.ContainsFunc(rec.kind(kind), func(e proposal.Event) bool {
		line := strings.Join([]string{e.Path, e.Target, e.Address, e.Call, e.Errno}, " ")
		return e.Program == tricks && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	rec.reset(allow)
	play(t, r, "/opt/bin/tricks files; /opt/bin/tricks network; /opt/bin/tricks privileges; sh -c 'exit 7'; sh -c 'kill -9 $$'; true")
	for _, want := range [][]string{
		{proposal.EventWrite, "/tmp/made"},
		{proposal.EventRename, "/tmp/made", "/tmp/renamed"},
		{proposal.EventMode, "/tmp/renamed"},
		{proposal.EventLink, "/tmp/renamed", "/tmp/linked"},
		{proposal.EventLink, "/tmp/symlinked", "/etc/passwd"},
		{proposal.EventRemove, "/tmp/linked"},
		{proposal.EventWrite, "/tmp/folder"},
		{proposal.EventListen, "tcp 127.0.0.1:4321", "bind"},
		{proposal.EventListen, "tcp 127.0.0.1:4321", "listen"},
		{proposal.EventConnect, "tcp 127.0.0.1:4321"},
		{proposal.EventConnect, "tcp 169.254.169.254:80", "ENETUNREACH"},
		{proposal.EventConnect, "unix /run/absent", "ENOENT"},
		{proposal.EventSend, "udp 192.0.2.9:53"},
		{proposal.EventSend, "udp 192.0.2.9:54"},
		{proposal.EventPrivilege, "setuid", "EPERM"},
		{proposal.EventPrivilege, "unshare", "EPERM"},
		{proposal.EventPrivilege, "mount", "EPERM"},
		{proposal.EventPrivilege, "chroot", "EPERM"},
		{proposal.EventPrivilege, "memfd_create"},
		{proposal.EventPrivilege, "io_uring_setup"},
		{proposal.EventPrivilege, "bpf"},
		{proposal.EventPrivilege, "ptrace"},
	} {
		if !seen(rec, want[0], want[1:]...) {
			t.Errorf("not seen: %q", want)
		}
	}
	for _, kind := range []string{proposal.EventWrite, proposal.EventRename} {
		if seen(rec, kind, "/workspace/") {
			t.Errorf("%s inside the workspace is reported one by one", kind)
		}
	}
	var statuses []int
	for _, e := range rec.kind(proposal.EventExit) {
		statuses = append(statuses, e.Status)
	}
	if !slices.Contains(statuses, 7<<8) || !slices.Contains(statuses, 9) {
		t.Errorf("exits %v", statuses)
	}
	for _, e := range rec.events {
		if e.Command != "x" || e.Pid == 0 || time.Since(e.Time) > time.Hour || time.Since(e.Time) < 0 || e.Unverified {
			t.Fatalf("event %+v", e)
		}
	}
}

// After a process has made its own mounts, its names may refer to anything.
func TestUnverified(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	rec.reset(allow)
	play(t, r, "/opt/bin/tricks userns /usr/bin/touch /usr/bin/true; unshare -Ur true")
	var marked bool
	for _, e := range rec.events {
		marked = marked || e.Unverified && e.Kind == proposal.EventExec
	}
	if !marked {
		t.Error("an exec with own mounts is not marked")
	}
	if !seen(rec, proposal.EventPrivilege, "clone") || !seen(rec, proposal.EventPrivilege, "mount") {
		t.Errorf("attempts %+v", rec.kind(proposal.EventPrivilege))
	}
}

// Many consecutive programs cause as many events, and the kernel's count matches what
// was reported.
func TestManyExecs(t *testing.T) {
	t.Parallel()
	n := sample.Rounds(t, 1000, 30, 30)
	r, rec := gated(t)
	for _, cacheable := range []bool{false, true} {
		rec.reset(func(x proposal.Exec) proposal.ExecDecision {
			d := allow(x)
			d.Cacheable = cacheable
			return d
		})
		_, result := play(t, r, fmt.Sprintf("/opt/bin/tricks many %d /usr/bin/true", n))
		execs := 0
		for _, e := range rec.kind(proposal.EventExec) {
			if e.Path == "/usr/bin/true" {
				execs++
			}
		}
		exits := len(rec.kind(proposal.EventExit))
		if execs != n || int64(exits) != result.Usage.Processes.Value {
			t.Errorf("cacheable %v: %d execs, %d exits, %d counted", cacheable, execs, exits, result.Usage.Processes.Value)
		}
		if cacheable && len(rec.asked) > 20 {
			t.Errorf("asked %d times although the answer could be kept", len(rec.asked))
		}
	}
}

// Nothing is watched, and nothing is slower, unless requested.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	r := testRunner(t, testOptions(t))
	if result := runText(t, r, "id"); result.Observations != nil || r.current.gate != nil {
		t.Errorf("observations %+v", result.Observations)
	}
}

// The gate does not change how the end of a command or a sandbox is reported.
func TestStatusesWatched(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	rec.reset(allow)
	for _, test := range []struct {
		name, text string
		want       proposal.Status
		complete   bool
		change     func(*proposal.Limits)
	}{
		{name: "zero", text: "true", want: proposal.Exited, complete: true},
		{name: "signal", text: "kill -SEGV $$", want: proposal.Signaled, complete: true},
		{name: "processes", text: forks(40), want: proposal.ProcessLimit, complete: true, change: func(l *proposal.Limits) { l.Pids = 20 }},
		{name: "disk", text: "head -c 70000000 /dev/zero > big; rm big; exit 1", want: proposal.DiskLimit, complete: true},
		{name: "wall", text: "sleep 1000 & sleep 1000", want: proposal.TimedOut, complete: true, change: func(l *proposal.Limits) { l.Wall = proposal.Duration(500 * time.Millisecond) }},
		{name: "memory", text: "/opt/bin/testprogram alloc 400", want: proposal.OutOfMemory, change: func(l *proposal.Limits) { l.Memory = 160 * proposal.MiB }},
		{name: "after it", text: "true", want: proposal.Exited, complete: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := testLimits()
			if test.change != nil {
				test.change(&l)
			}
			result, err := r.Run(t.Context(), Execution{ID: test.name, Text: test.text, Grant: proposal.Grant{Limits: l}})
			if err != nil || result.Status != test.want {
				t.Fatalf("status %s, %v; want %s", result.Status, err, test.want)
			}
			if result.Observations == nil || !r.dead() && result.Observations.Complete != test.complete {
				t.Errorf("observations %+v", result.Observations)
			}
		})
	}
}

// dead reports whether the sandbox is gone.
func (r *Runner) dead() bool { return r.current == nil || r.current.isDead() }
