// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sentry

import "sync"

// lineages holds the lineage of each process of the running command. Every process
// made by a clone has an entry, with its parent's lineage until it execs. A process
// without an entry was started from outside and has the lineage of the command's
// first process. The ids are those of the root's PID namespace. A reused id is safe:
// its entry is replaced before the new task runs.
type lineages struct {
	mu    sync.Mutex
	first uint32
	by    map[int32]uint32
}

// begin forgets every process; first is the lineage that the next command starts
// with.
func (l *lineages) begin(first uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first, l.by = first, map[int32]uint32{}
}

func (l *lineages) of(pid int32) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.locked(pid)
}

func (l *lineages) locked(pid int32) uint32 {
	if lineage, ok := l.by[pid]; ok {
		return lineage
	}
	return l.first
}

// forked gives a new process the lineage of its parent.
func (l *lineages) forked(parent, child int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by != nil && parent != child { // otherwise a thread
		l.by[child] = l.locked(parent)
	}
}

// became sets the lineage of a process after an allowed exec.
func (l *lineages) became(pid int32, lineage uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by != nil {
		l.by[pid] = lineage
	}
}
