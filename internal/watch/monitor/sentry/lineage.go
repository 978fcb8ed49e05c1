// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/sentry/kernel"

	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// A generation is the processes of one command, and what was counted of them.
type generation struct {
	number uint32
	first  uint32 // the lineage of its first process
	// control says that its processes may change the workspace's control places.
	control bool
	// ended says that its processes must not fork or exec, and gone that none is left. Both
	// are protected by lineages.mu.
	ended, gone bool

	writes, processes, bytes atomic.Uint64
}

// A member is what is known of one process: the generation and the lineage.
type member struct {
	*generation
	lineage uint32
}

// lineages holds the generation and the lineage of each process.
//
// Every process made by a clone has an entry, with its parent's, and changes its lineage
// when it execs. A process without an entry was started from outside: it belongs to the
// current generation, whose first lineage it has. The entries of a generation that lives in
// the background stay until its last process is gone; all others are forgotten when the next
// generation begins.
//
// Processes are identified by the kernel's own object, never by an id: an id that is used
// again cannot inherit anything.
type lineages struct {
	detached atomic.Int32               // number of generations in the background
	now      atomic.Pointer[generation] // the current one

	mu      sync.Mutex
	by      map[*kernel.ThreadGroup]member
	living  map[uint32]*generation // in the background
	last    uint32                 // the newest generation
	forgets int                    // the number of entries at which dead ones are looked for
}

var (
	errEnded      = errors.New("the command has ended")
	errGeneration = errors.New("not a generation that this is possible for")
)

func newLineages() *lineages {
	l := &lineages{by: map[*kernel.ThreadGroup]member{}, living: map[uint32]*generation{}, forgets: maxKept}
	l.now.Store(&generation{})
	return l
}

// memberOf returns what is known of a process.
func (l *lineages) memberOf(p *kernel.ThreadGroup) member {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.memberLocked(p)
}

func (l *lineages) memberLocked(p *kernel.ThreadGroup) member {
	if m, ok := l.by[p]; ok {
		return m
	}
	now := l.now.Load()
	return member{now, now.first}
}

// generationOf returns the generation of a process, without a lock where there is only one.
func (l *lineages) generationOf(p *kernel.ThreadGroup) *generation {
	if l.detached.Load() == 0 {
		return l.now.Load()
	}
	return l.memberOf(p).generation
}

// recordFork gives a new process the generation and the lineage of its parent. An error means
// that the parent's command has ended, so that the new process must not run.
func (l *lineages) recordFork(k *kernel.Kernel, parent, child *kernel.ThreadGroup) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.memberLocked(parent)
	if child != parent { // otherwise a thread
		l.by[child] = m
		l.forgetDead(k)
	}
	if m.ended {
		return errEnded
	}
	return nil
}

// forgetDead bounds the entries by the number of processes.
func (l *lineages) forgetDead(k *kernel.Kernel) {
	if len(l.by) < l.forgets {
		return
	}
	there := map[*kernel.ThreadGroup]bool{}
	for _, p := range k.RootPIDNamespace().ThreadGroups() {
		there[p] = true
	}
	for p := range l.by {
		if !there[p] {
			delete(l.by, p)
		}
	}
	l.forgets = 2*len(l.by) + maxKept
}

// setLineage sets the lineage of a process after an allowed exec.
func (l *lineages) setLineage(p *kernel.ThreadGroup, lineage uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by[p] = member{l.memberLocked(p).generation, lineage}
}

// hasEnded reports whether a process's command has ended.
func (l *lineages) hasEnded(p *kernel.ThreadGroup) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.memberLocked(p).ended
}

// beginGeneration makes a new generation the current one, and forgets all processes except for those
// in the background.
func (l *lineages) beginGeneration(o wire.Order) (*generation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.Generation <= l.last {
		return nil, errGeneration
	}
	l.last = o.Generation
	for number, g := range l.living {
		if g.gone {
			delete(l.living, number)
			l.detached.Add(-1)
		}
	}
	for p, m := range l.by {
		if l.living[m.number] == nil {
			delete(l.by, p)
		}
	}
	g := &generation{number: o.Generation, first: o.First, control: o.Control}
	l.now.Store(g)
	return g, nil
}

// detachGeneration lets the current generation live in the background. Until the next one begins, what
// belongs to none in the background has wire.None, and can neither fork nor exec.
func (l *lineages) detachGeneration(k *kernel.Kernel, o wire.Order) (*generation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.now.Load()
	if k == nil || o.Generation != g.number || len(l.living) >= wire.MaxGenerations {
		return nil, errGeneration
	}
	for p := range findProcesses(k, o.Pid, false) {
		if m, known := l.by[p]; !known || m.gone {
			l.by[p] = member{g, g.first}
		}
	}
	l.living[g.number] = g
	l.detached.Add(1)
	l.now.Store(&generation{number: wire.None, ended: true})
	return g, nil
}

// findProcesses returns the process with an id and, unless alone, what descends from it; or all if the id is 0: who
// starts the first process of a container does not learn its id, and all others have entries.
func findProcesses(k *kernel.Kernel, id int32, alone bool) map[*kernel.ThreadGroup]bool {
	found := map[*kernel.ThreadGroup]bool{}
	all := k.RootPIDNamespace()
	if p := all.ThreadGroupWithID(kernel.ThreadID(id)); p != nil {
		found[p] = true
	}
	for _, p := range all.ThreadGroups() {
		for up := p; up != nil && !alone && !found[p]; up = parentOf(up) {
			found[p] = id == 0 || found[up]
		}
	}
	maps.DeleteFunc(found, func(_ *kernel.ThreadGroup, is bool) bool { return !is })
	return found
}

// parentOf returns the parent of a process, or nil.
func parentOf(p *kernel.ThreadGroup) *kernel.ThreadGroup {
	leader := p.Leader()
	if leader == nil || leader.Parent() == nil {
		return nil
	}
	return leader.Parent().ThreadGroup()
}

// findGeneration returns a generation that is current or lives in the background.
func (l *lineages) findGeneration(o wire.Order) (*generation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.now.Load(); g.number == o.Generation {
		return g, nil
	}
	if g := l.living[o.Generation]; g != nil {
		return g, nil
	}
	return nil, errGeneration
}

// signalGeneration sends a signal to every process of a generation in the background, or only to the one that o names,
// and returns how many of them are alive. To end it, the signal is SIGKILL.
func (l *lineages) signalGeneration(k *kernel.Kernel, o wire.Order) (*generation, uint32, error) {
	l.mu.Lock()
	g := l.living[o.Generation]
	if end := o.Act == wire.ActEnd; g != nil && end {
		g.ended, o.Signal = true, int32(linux.SIGKILL)
	}
	l.mu.Unlock()
	if g == nil || k == nil || !linux.Signal(o.Signal).IsValid() {
		return nil, 0, errGeneration
	}
	alive, only := uint32(0), k.RootPIDNamespace().ThreadGroupWithID(kernel.ThreadID(o.Pid))
	for _, p := range k.RootPIDNamespace().ThreadGroups() {
		if (o.Pid == 0 || p == only) && l.memberOf(p).generation == g && hasLivingThread(p) {
			alive++
			_ = p.SendSignal(kernel.SignalInfoPriv(linux.Signal(o.Signal))) // it may have just ended
		}
	}
	if o.Pid == 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		g.gone = g.ended && alive == 0
	}
	return g, alive, nil
}

// holdGeneration kills the processes of a generation in the background, except for those that it only stops: see
// wire.ActHold. It returns how many it found alive that are not stopped, and which of these it stops.
func (l *lineages) holdGeneration(k *kernel.Kernel, o wire.Order) (g *generation, alive, stopping uint32, err error) {
	l.mu.Lock()
	g = l.living[o.Generation]
	l.mu.Unlock()
	if g == nil || k == nil {
		return nil, 0, 0, errGeneration
	}
	for range 2 { // the second time finds what a process made that stopped or ended during the first
		held := findProcesses(k, o.Pid, o.Alone)
		for _, p := range k.RootPIDNamespace().ThreadGroups() {
			signal := linux.SIGKILL
			switch {
			case l.memberOf(p).generation != g || !hasLivingThread(p) || held[p] && isStopped(p):
				continue
			case held[p]:
				signal = linux.SIGSTOP
				stopping++
			}
			alive++
			_ = p.SendSignal(kernel.SignalInfoPriv(signal)) // it may have just ended
		}
		l.mu.Lock()
		g.ended = g.ended || stopping == 0 // what is left must not go on as its own children
		l.mu.Unlock()
		if alive > 0 {
			return g, alive, stopping, nil
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g.gone = true
	return g, 0, 0, nil
}

// isStopped reports whether no thread of p that has not ended runs.
func isStopped(p *kernel.ThreadGroup) bool {
	stopped := true
	p.ForEachTask(func(t *kernel.Task) bool {
		stopped = t.ExitState() >= kernel.TaskExitZombie || t.TaskGoroutineState() == kernel.TaskGoroutineStopped
		return stopped
	})
	return stopped
}

// hasLivingThread reports whether a thread of p has not ended.
func hasLivingThread(p *kernel.ThreadGroup) (alive bool) {
	p.ForEachTask(func(t *kernel.Task) bool {
		alive = t.ExitState() < kernel.TaskExitZombie
		return !alive
	})
	return alive
}
