// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sentry

import "sync"

// lineages knows the lineage of each process of the command that runs. Every process
// that a clone made has an entry, its parent's until it execs; what has none was
// started from outside, and has the lineage of the command's first process. The ids
// are those of the root's PID namespace, where a number that is used again has been
// entered again first, since the entry is made before the new task runs.
type lineages struct {
	mu    sync.Mutex
	first uint32
	by    map[int32]uint32
}

// begin forgets every process; first is what the next command begins with.
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

// forked gives a new process the lineage of the one that made it.
func (l *lineages) forked(parent, child int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by != nil && parent != child { // else a thread
		l.by[child] = l.locked(parent)
	}
}

// became notes what an allowed exec made of a process.
func (l *lineages) became(pid int32, lineage uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by != nil {
		l.by[pid] = lineage
	}
}
