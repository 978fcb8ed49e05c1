// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func tallied(events ...proposal.Event) proposal.Observations {
	t := newTally()
	for _, e := range events {
		t.addEvent(trimEvent(e))
	}
	return t.makeObservations()
}

// drawn formats the tree as text: one line per node, indented below its parent.
func drawn(o proposal.Observations) string {
	var b strings.Builder
	depth := map[int]int{-1: -1}
	for i, p := range o.Programs {
		depth[i] = depth[p.Parent] + 1
		fmt.Fprintf(&b, "%s%s %s", strings.Repeat(" ", depth[i]), p.Name, p.Path)
		for _, n := range []struct {
			name string
			n    int
		}{{"runs", p.Runs}, {"refused", p.Refused}, {"watched", p.Watched}, {"crashed", p.Crashed}, {"omitted", p.Omitted}} {
			if n.n > 0 {
				fmt.Fprintf(&b, " %s=%d", n.name, n.n)
			}
		}
		if p.Rule != "" {
			b.WriteString(" " + p.Rule)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestPrograms(t *testing.T) {
	script := started(3, 2, "/usr/bin/dash", "sh", "./run.sh")
	script.Exec.Script = "/workspace/run.sh"
	linked := started(3, 2, "/usr/bin/env", "/usr/bin/env", "node", "/usr/bin/npm", "a/b")
	linked.Exec.Script = "/usr/share/nodejs/npm/bin/npm-cli.js"
	orphan := started(9, 1, "/usr/bin/sleep", "sleep")
	orphan.Exec.ParentPath = "/.fumehood/init"
	forked := started(8, 77, "/usr/bin/cc1", "cc1")
	forked.Program = "/usr/bin/make"
	gone := started(8, 1, "/usr/bin/cc1", "cc1")
	gone.Program, gone.Exec.ParentPath = "/usr/bin/true", "/usr/bin/make"
	would := started(4, 2, "/usr/bin/nc", "nc")
	would.Decision = &proposal.ExecDecision{Effect: proposal.Allow, Observed: true, Rules: []string{"exec.net"}}
	shell := started(2, 1, "/usr/bin/bash", "/bin/bash", "-c", "x")
	for name, test := range map[string]struct {
		events []proposal.Event
		want   string
	}{
		"one command": {
			[]proposal.Event{shell, started(3, 2, "/usr/bin/make", "make"), started(4, 3, "/usr/bin/gcc", "cc"), exited(4, 0), started(5, 3, "/usr/bin/gcc", "cc")},
			"bash /usr/bin/bash runs=1\n make /usr/bin/make runs=1\n  cc /usr/bin/gcc runs=2\n",
		},
		"a shell that becomes its command": {
			[]proposal.Event{shell, started(2, 1, "/usr/bin/go", "go")},
			"bash /usr/bin/bash runs=1\n go /usr/bin/go runs=1\n",
		},
		"refused": {
			[]proposal.Event{shell, refusal(3, 2, "/usr/bin/curl", "exec.net"), refusal(4, 2, "/usr/bin/curl", "exec.other")},
			"bash /usr/bin/bash runs=1\n curl /usr/bin/curl refused=2 exec.net\n",
		},
		"a refused exec leaves the process what it was": {
			[]proposal.Event{shell, started(3, 2, "/usr/bin/env", "env"), refusal(3, 2, "/usr/bin/curl", "exec.net"), started(4, 3, "/bin/ls", "ls")},
			"bash /usr/bin/bash runs=1\n env /usr/bin/env runs=1\n  curl /usr/bin/curl refused=1 exec.net\n  ls /bin/ls runs=1\n",
		},
		"only watched": {
			[]proposal.Event{shell, would},
			"bash /usr/bin/bash runs=1\n nc /usr/bin/nc runs=1 watched=1 exec.net\n",
		},
		"script": {
			[]proposal.Event{shell, script},
			"bash /usr/bin/bash runs=1\n run.sh /usr/bin/dash runs=1\n",
		},
		"script by a link": {
			[]proposal.Event{shell, linked},
			"bash /usr/bin/bash runs=1\n npm /usr/bin/env runs=1\n",
		},
		"crash and kill": {
			[]proposal.Event{shell, started(3, 2, "/usr/bin/node", "node"), exited(3, 11|0x80), started(4, 2, "/usr/bin/node", "node"), exited(4, 9), exited(4, 11)},
			"bash /usr/bin/bash runs=1\n node /usr/bin/node runs=2 crashed=1\n",
		},
		"whose parent forked without an exec": {
			[]proposal.Event{shell, started(3, 2, "/usr/bin/make", "make"), forked},
			"bash /usr/bin/bash runs=1\n make /usr/bin/make runs=1\n  cc1 /usr/bin/cc1 runs=1\n",
		},
		"whose parent forked from what has become another": {
			[]proposal.Event{shell, started(3, 2, "/usr/bin/make", "make"), gone},
			"bash /usr/bin/bash runs=1\n make /usr/bin/make runs=1\n  cc1 /usr/bin/cc1 runs=1\n",
		},
		"whose parent has ended": {
			[]proposal.Event{shell, orphan},
			"bash /usr/bin/bash runs=1\n sleep /usr/bin/sleep runs=1\n",
		},
		"a process id that is used again": {
			[]proposal.Event{shell, started(3, 2, "/usr/bin/make", "make"), exited(3, 0), started(3, 2, "/bin/ls", "ls")},
			"bash /usr/bin/bash runs=1\n make /usr/bin/make runs=1\n ls /bin/ls runs=1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, drawn(tallied(test.events...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A command that starts ever new programs cannot grow the tree or the lists
// without limit or hide a refusal, and every start is counted once.
func TestBounds(t *testing.T) {
	lanetest.SkipShort(t)
	tl := newTally()
	tl.addEvent(trimEvent(started(2, 1, "/usr/bin/bash", "bash")))
	for i := range 20000 {
		e := started(10+i, 9+i, fmt.Sprintf("/tmp/%s%d", strings.Repeat("x", 300), i), "x")
		tl.addEvent(trimEvent(e))
		c := event(proposal.EventConnect, "")
		c.Address = fmt.Sprintf("tcp 10.0.0.1:%d", i)
		tl.addEvent(trimEvent(c))
	}
	tl.addEvent(trimEvent(refusal(5, 2, "/usr/bin/curl", "exec.net")))
	attempt := event(proposal.EventPrivilege, "")
	attempt.Call = "mount"
	tl.addEvent(trimEvent(attempt))
	o := tl.makeObservations()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 300<<10 || len(o.Programs) > maxPrograms || len(tl.tree.procs) > maxProcesses {
		t.Errorf("%d bytes, %d programs, %d processes", len(data), len(o.Programs), len(tl.tree.procs))
	}
	counted := 0
	for _, p := range o.Programs {
		counted += p.Runs + p.Refused + p.Omitted
	}
	if counted != 20002 || o.Counts.Execs != 20001 || o.Counts.Refused != 1 {
		t.Errorf("%d starts in the tree, counts %+v", counted, o.Counts)
	}
	if last := o.Execs[len(o.Execs)-1]; last.Kind != proposal.EventRefused {
		t.Errorf("the refusal is not listed: %+v", last)
	}
	if last := o.Notable[len(o.Notable)-1]; last.Call != "mount" {
		t.Errorf("the attempt is not listed: %+v", last)
	}
}

func called(call, errno string) proposal.Event {
	e := event(proposal.EventPrivilege, "")
	e.Call, e.Errno = call, errno
	return e
}

func reached(address, errno string) proposal.Event {
	e := event(proposal.EventConnect, "")
	e.Address, e.Errno, e.Call = address, errno, "connect"
	return e
}

func TestQuiet(t *testing.T) {
	moved := event(proposal.EventRename, "/workspace/a")
	moved.Target = "/etc/b"
	unverified := event(proposal.EventWrite, "/tmp/x")
	unverified.Unverified = true
	for name, test := range map[string]struct {
		e     proposal.Event
		noted bool
	}{
		"in the workspace":      {event(proposal.EventWrite, "/workspace/a.go"), false},
		"the workspace":         {event(proposal.EventMode, "/workspace"), false},
		"a neighbour":           {event(proposal.EventWrite, "/workspace2/x"), true},
		"a way out":             {event(proposal.EventWrite, "/tmp/../etc/passwd"), true},
		"a way up":              {event(proposal.EventRemove, "/tmp/.."), true},
		"a home":                {event(proposal.EventWrite, "/home/fumehood/.cache/x"), false},
		"nowhere":               {event(proposal.EventWrite, "/dev/null"), false},
		"the system":            {event(proposal.EventRemove, "/usr/bin/go"), true},
		"no path":               {event(proposal.EventWrite, ""), true},
		"out of the workspace":  {moved, true},
		"after a mount":         {unverified, true},
		"a connection":          {event(proposal.EventConnect, ""), true},
		"an attempt":            {event(proposal.EventPrivilege, ""), true},
		"ids that it had":       {called("setresuid", ""), false},
		"ids that it had not":   {called("setresuid", "EPERM"), true},
		"a mount":               {called("mount", ""), true},
		"the name cache":        {reached("unix /var/run/nscd/socket", "ENOENT"), false},
		"a name cache there":    {reached("unix /var/run/nscd/socket", ""), true},
		"the kernel":            {reached("raw family 16", ""), false},
		"a raw socket":          {reached("raw family 17", ""), true},
		"docker":                {reached("unix /var/run/docker.sock", "ENOENT"), true},
		"something of no kind":  {event("other", "/etc/x"), false},
		"an exit":               {exited(3, 0), false},
		"a program that is run": {started(3, 2, "/bin/true"), false},
	} {
		if got := len(tallied(test.e).Notable) == 1; got != test.noted {
			t.Errorf("%s: told one by one is %v, want %v", name, got, test.noted)
		}
	}
}

// File events beyond the limit are counted, in the log as in the report.
func TestManyFiles(t *testing.T) {
	lanetest.SkipShort(t)
	var events []proposal.Event
	for range maxFiles + 700 {
		events = append(events, event(proposal.EventWrite, "/workspace/x"))
	}
	o, k := watching(t, noFindings, whole(), append(events, started(3, 1, "/bin/true"))...)
	if c := o.Counts; c.Writes != len(events) || c.Execs != 1 {
		t.Errorf("counts %+v", c)
	}
	if logged := len(k.events()); logged != maxFiles+1 {
		t.Errorf("%d events in the log one by one, want %d", logged, maxFiles+1)
	}
}
