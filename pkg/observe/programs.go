// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"path"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of the tree. What has no node of its own is counted where it belongs.
const (
	mostPrograms  = 256
	programsBytes = 48 << 10
	mostProcesses = 64 << 10
)

// A grove grows the tree of programs from execs and exits.
//
// A process is known by its id until it ends. One that forked without an exec is
// not known; what it starts is put below the program that its kernel says it still
// runs, and below the command's first program if that has none.
type grove struct {
	list  []proposal.Program
	bytes int
	nodes map[nodeKey]int
	last  map[string]int // by path: the newest node
	procs map[int]int    // by process: its node
}

type nodeKey struct {
	parent             int
	path, name, script string
}

func newGrove() *grove {
	return &grove{list: []proposal.Program{}, nodes: map[nodeKey]int{}, last: map[string]int{}, procs: map[int]int{}}
}

// began enters a start, or a refused one.
func (g *grove) began(e proposal.Event) {
	x := e.Exec
	if x == nil {
		x = &proposal.Exec{Path: e.Path}
	}
	parent := g.parent(e, x)
	n := g.node(nodeKey{parent, x.Path, nameOf(*x), x.Script}, x.Layer)
	if n < 0 { // no room
		if parent >= 0 {
			g.list[parent].Omitted++
			g.follow(e, parent)
		}
		return
	}
	p := &g.list[n]
	if e.Kind == proposal.EventRefused {
		p.Refused++
		if p.Rule == "" {
			p.Rule = ruleOf(e)
		}
		return
	}
	p.Runs++
	if watched(e) {
		p.Watched++
		if p.Rule == "" {
			p.Rule = ruleOf(e)
		}
	}
	g.follow(e, n)
}

// follow notes which program a process runs now.
func (g *grove) follow(e proposal.Event, n int) {
	if _, known := g.procs[e.Pid]; known || len(g.procs) < mostProcesses {
		g.procs[e.Pid] = n
	}
}

// parent returns the node of what asked for the exec, -1 for the first.
func (g *grove) parent(e proposal.Event, x *proposal.Exec) int {
	if len(g.list) == 0 {
		return -1
	}
	for _, pid := range []int{e.Pid, e.Parent, x.Parent} {
		if n, known := g.procs[pid]; known {
			return n
		}
	}
	for _, name := range []string{e.Program, x.ParentPath} {
		if n, known := g.last[name]; known {
			return n
		}
	}
	return 0
}

func (g *grove) node(key nodeKey, layer string) int {
	if n, known := g.nodes[key]; known {
		return n
	}
	size := len(key.path) + len(key.name) + len(key.script) + 120
	if len(g.list) == mostPrograms || g.bytes+size > programsBytes {
		return -1
	}
	n := len(g.list)
	g.list = append(g.list, proposal.Program{Parent: key.parent, Path: key.path, Name: key.name, Script: key.script, Layer: layer})
	g.bytes += size
	g.nodes[key], g.last[key.path] = n, n
	return n
}

// ended enters an exit.
func (g *grove) ended(e proposal.Event) {
	n, known := g.procs[e.Pid]
	if !known {
		return
	}
	delete(g.procs, e.Pid)
	if signal := crashed(syscall.WaitStatus(e.Status)); signal != "" {
		p := &g.list[n]
		p.Crashed++
		if p.Signal == "" {
			p.Signal = signal
		}
	}
}

// crashes are the signals by which a program dies of itself, as against those that
// are sent. One that sends itself such a signal looks the same.
var crashes = map[syscall.Signal]string{
	syscall.SIGSEGV: "SIGSEGV", syscall.SIGBUS: "SIGBUS", syscall.SIGILL: "SIGILL", syscall.SIGFPE: "SIGFPE",
	syscall.SIGABRT: "SIGABRT", syscall.SIGTRAP: "SIGTRAP", syscall.SIGSYS: "SIGSYS",
}

// crashed names the signal of a crash, and nothing for another end.
func crashed(s syscall.WaitStatus) string {
	if !s.Signaled() {
		return ""
	}
	return crashes[s.Signal()]
}

// nameOf is what a program was called by, or a script, which its interpreter has as
// its first or second argument: npm, not npm-cli.js. Words may lie, and are shown
// beside the path.
func nameOf(x proposal.Exec) string {
	name, words := x.Path, x.Argv
	switch {
	case x.Script != "":
		name = x.Script
		for _, word := range words[min(1, len(words)):min(3, len(words))] {
			if strings.Contains(word, "/") && word[0] != '-' {
				name = word
				break
			}
		}
	case len(words) > 0 && words[0] != "":
		name = strings.TrimPrefix(words[0], "-")
	}
	return cut(path.Base(name), mostName)
}

func ruleOf(e proposal.Event) string {
	switch {
	case e.Decision == nil:
		return ""
	case e.Decision.Reason != nil && e.Decision.Reason.Rule != "":
		return e.Decision.Reason.Rule
	case len(e.Decision.Rules) > 0:
		return e.Decision.Rules[0]
	}
	return ""
}

// watched reports whether a program ran that would have been refused.
func watched(e proposal.Event) bool {
	return e.Kind == proposal.EventExec && e.Decision != nil && e.Decision.Observed
}
