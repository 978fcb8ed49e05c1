// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"path"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of the tree. A program without a node is counted as omitted in its parent's.
const (
	maxPrograms     = 256
	maxProgramBytes = 48 << 10
	maxProcesses    = 64 << 10
)

// A processTree builds the tree of programs from execs and exits.
//
// A process is known by its id until it ends. A process that forked without an exec is not
// known: a program that it starts is put below the program that the kernel reports it still
// runs, or below the command's first program if that one has no node.
type processTree struct {
	list  []proposal.Program
	bytes int
	nodes map[nodeKey]int
	last  map[string]int // by path: the newest node
	procs map[int]int    // by process: its node
	texts map[int]int    // by process that the text's own shell made: the node of the program that it started first
}

type nodeKey struct {
	parent             int
	path, name, script string
}

func newProcessTree() *processTree {
	return &processTree{list: []proposal.Program{}, nodes: map[nodeKey]int{}, last: map[string]int{},
		procs: map[int]int{}, texts: map[int]int{}}
}

// addStart adds a start, or a refused one.
func (pt *processTree) addStart(e proposal.Event) {
	x := e.Exec
	if x == nil {
		x = &proposal.Exec{Path: e.Path}
	}
	parent := pt.parentNode(e, x)
	n := pt.addNode(nodeKey{parent, x.Path, nameOf(*x), x.Script}, x.Layer)
	if n < 0 { // no room
		if parent >= 0 {
			pt.list[parent].Omitted++
			pt.setProgram(e, parent)
		}
		return
	}
	p := &pt.list[n]
	if e.Kind == proposal.EventRefused {
		p.Refused++
		if p.Rule == "" {
			p.Rule = ruleOf(e)
		}
		return
	}
	p.Runs++
	if isObservedOnly(e) {
		p.Watched++
		if p.Rule == "" {
			p.Rule = ruleOf(e)
		}
	}
	pt.setProgram(e, n)
	if _, known := pt.texts[e.Pid]; x.Text && !x.First && !known && len(pt.texts) < maxProcesses {
		pt.texts[e.Pid] = n
	}
}

// setProgram records which program a process runs now.
func (pt *processTree) setProgram(e proposal.Event, n int) {
	if _, known := pt.procs[e.Pid]; known || len(pt.procs) < maxProcesses {
		pt.procs[e.Pid] = n
	}
}

// parentNode returns the node of the program that requested the exec, -1 for the first.
func (pt *processTree) parentNode(e proposal.Event, x *proposal.Exec) int {
	if len(pt.list) == 0 {
		return -1
	}
	for _, pid := range []int{e.Pid, e.Parent, x.Parent} {
		if n, known := pt.procs[pid]; known {
			return n
		}
	}
	for _, name := range []string{e.Program, x.ParentPath} {
		if n, known := pt.last[name]; known {
			return n
		}
	}
	return 0
}

func (pt *processTree) addNode(key nodeKey, layer string) int {
	if n, known := pt.nodes[key]; known {
		return n
	}
	size := len(key.path) + len(key.name) + len(key.script) + 120
	if len(pt.list) == maxPrograms || pt.bytes+size > maxProgramBytes {
		return -1
	}
	n := len(pt.list)
	pt.list = append(pt.list, proposal.Program{Parent: key.parent, Path: key.path, Name: key.name, Script: key.script,
		Layer: layer})
	pt.bytes += size
	pt.nodes[key], pt.last[key.path] = n, n
	return n
}

// addExit adds an exit.
func (pt *processTree) addExit(e proposal.Event) {
	n, known := pt.procs[e.Pid]
	if !known {
		return
	}
	delete(pt.procs, e.Pid)
	status := syscall.WaitStatus(e.Status)
	if n, started := pt.texts[e.Pid]; started {
		delete(pt.texts, e.Pid)
		if code := exitCode(status); code != 0 {
			p := &pt.list[n]
			p.Failed++
			p.ExitCode = cmp.Or(p.ExitCode, code)
		}
	}
	p := &pt.list[n]
	if signal := crashSignal(status); signal != "" {
		p.Crashed++
		if p.Signal == "" {
			p.Signal = signal
		}
	}
}

// exitCode is the exit code of a process as a shell has it: 128 and the number of the signal that ended
// it.
func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// crashes are the signals that end a program because of its own fault, not because another
// process sent them. A program that sends itself such a signal looks the same.
var crashes = map[syscall.Signal]string{
	syscall.SIGSEGV: "SIGSEGV", syscall.SIGBUS: "SIGBUS", syscall.SIGILL: "SIGILL", syscall.SIGFPE: "SIGFPE",
	syscall.SIGABRT: "SIGABRT", syscall.SIGTRAP: "SIGTRAP", syscall.SIGSYS: "SIGSYS",
}

// crashSignal returns the signal of a crash, and "" for any other end.
func crashSignal(s syscall.WaitStatus) string {
	if !s.Signaled() {
		return ""
	}
	return crashes[s.Signal()]
}

// nameOf returns the name by which a program was called, or a script, which is its
// interpreter's first or second argument: npm, not npm-cli.js. The caller chooses argv
// freely, so the name is only shown beside the path.
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
	return clipText(path.Base(name), maxName)
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

// isObservedOnly reports whether e is a program that ran, or a file that was loaded as code, and would
// have been refused.
func isObservedOnly(e proposal.Event) bool {
	return (e.Kind == proposal.EventExec || e.Kind == proposal.EventLoad) && e.Decision != nil && e.Decision.Observed
}
