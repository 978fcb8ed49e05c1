// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of the lists in a report; the log has everything. Each class has its own bounds,
// so that none of them can crowd out another, and least of all the refusals.
const (
	maxExecs     = 60
	maxRefused   = 50
	maxPerClass  = 40
	maxListBytes = 40 << 10 // of one class
	// maxFiles is how many file events of a command the log lists; later ones are only
	// counted.
	maxFiles = 20000
)

// quiet are the places that a command may write to. What it did there is in the list of
// changes, or is gone with the sandbox.
var quiet = []string{"/workspace", "/tmp", "/home/fumehood", "/home/user", "/dev/null", "/dev/tty", "/dev/pts",
	"/dev/shm", "/proc/self/fd", "/dev/fd"}

// nameCaches are the sockets of nscd, which no sandbox has. A C library tries to connect
// to them at each lookup in the user database.
var nameCaches = []string{"unix /var/run/nscd/socket", "unix /run/nscd/socket"}

// netlink is the end of the address of a socket to the kernel itself.
const netlink = " family 16"

// An eventClass is a kind of event that is listed, with its own bounds.
type eventClass int

const (
	execs eventClass = iota
	refusals
	files
	connections
	attempts
	passed // network events, allowed
	barred // network events refused, or that would have been
	none
)

func classOf(e proposal.Event) eventClass {
	switch e.Kind {
	case proposal.EventExec:
		if isObservedOnly(e) {
			return refusals
		}
		return execs
	case proposal.EventLoad:
		if isObservedOnly(e) {
			return refusals
		}
		return none
	case proposal.EventRefused:
		return refusals
	case proposal.EventWrite, proposal.EventRename, proposal.EventRemove, proposal.EventLink, proposal.EventMode:
		return files
	case proposal.EventConnect, proposal.EventListen, proposal.EventSend:
		return connections
	case proposal.EventPrivilege:
		return attempts
	}
	switch {
	case !isFlow(e.Kind) || e.Flow == nil:
		return none
	case e.Flow.Refused() || e.Flow.Decision.Observed:
		return barred
	}
	return passed
}

// RecountEvents returns the Observations that the "events" entries of one run of a command give:
// what Observer.End returned for it, except for Complete, Findings and Counts.Dropped, which
// are not in the entries. The entries may come from an untrusted log.
func RecountEvents(entries []journal.Events) proposal.Observations {
	t := newTally()
	for _, b := range entries {
		for _, e := range b.Events {
			t.addEvent(e)
		}
		t.o.Counts.Writes += int(b.More)
		if b.Flows != nil {
			b.Flows.AddTo(&t.o.Counts)
		}
	}
	return t.makeObservations()
}

// A tally turns the events of one command, in order, into Observations. It uses nothing
// else, so that a reader of the log computes the same: see RecountEvents.
type tally struct {
	o     proposal.Observations
	tree  *processTree
	seen  map[string]int // place in o.Notable
	count [none]int      // listed, by class
	bytes [none]int

	reached map[reachKey]int // place in o.Network
	firsts  []proposal.Event // of each of o.Network
	inside  map[string]bool  // places that the gateway reported
}

func newTally() *tally {
	return &tally{
		o: proposal.Observations{Execs: []proposal.Event{}, Notable: []proposal.Event{}, Findings: []proposal.Finding{},
			Network: []proposal.Reach{}},
		tree: newProcessTree(), seen: map[string]int{}, reached: map[reachKey]int{}, inside: map[string]bool{},
	}
}

// addEvent counts and lists an event that was trimmed.
func (t *tally) addEvent(e proposal.Event) {
	c := &t.o.Counts
	switch classOf(e) {
	case execs, refusals:
		t.countExec(e)
		return
	case files:
		if e.Errno == "" {
			c.Writes++
		}
		if !isQuiet(e) {
			t.listEvent(e)
		}
	case connections:
		if !isIdle(e) {
			c.Connects++
			t.listEvent(e)
		}
	case attempts:
		if !isIdle(e) {
			c.Attempts++
			t.listEvent(e)
		}
	case passed, barred:
		t.addReach(e)
	case none:
		if e.Kind == proposal.EventExit {
			c.Exits++
			t.tree.addExit(e)
		}
	}
}

// countStart counts how a program that a text's process starts was judged.
func (t *tally) countStart(e proposal.Event) {
	if e.Decision == nil {
		return
	}
	switch c := &t.o.Counts; {
	case e.Kind == proposal.EventRefused && e.Decision.Start == lineage.StartRefused:
		c.Unforeseen++
	case e.Kind == proposal.EventRefused:
	case e.Decision.Start == lineage.StartPredicted:
		c.Predicted++
	case e.Decision.Start == lineage.StartDecided:
		c.Decided++
	}
}

func (t *tally) countExec(e proposal.Event) {
	switch c := &t.o.Counts; {
	case e.Kind == proposal.EventRefused:
		c.Refused++
	case e.Kind == proposal.EventLoad:
		c.Watched++
	case isObservedOnly(e):
		c.Watched++
		fallthrough
	default:
		c.Execs++
	}
	if e.Kind != proposal.EventLoad {
		t.countStart(e)
		t.tree.addStart(e)
	}
	if t.reserveRoom(e) {
		t.o.Execs = append(t.o.Execs, e)
	}
}

// listEvent lists an event, or counts it with the listed one that is like it.
func (t *tally) listEvent(e proposal.Event) {
	key := fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00%s\x00%v", e.Kind, e.Program, e.Path, e.Target, e.Address,
		e.Call, e.Errno, e.Unverified)
	if n, known := t.seen[key]; known {
		t.o.Notable[n].Times++
		return
	}
	if t.reserveRoom(e) {
		e.Times = 1
		t.seen[key] = len(t.o.Notable)
		t.o.Notable = append(t.o.Notable, e)
	}
}

// reserveRoom reports whether there is space for e, and reserves it.
func (t *tally) reserveRoom(e proposal.Event) bool {
	c, limit := classOf(e), maxPerClass
	switch c {
	case execs:
		limit = maxExecs
	case refusals:
		limit = maxRefused
	}
	size := eventSize(e)
	if t.count[c] == limit || t.bytes[c]+size > maxListBytes {
		return false
	}
	t.count[c]++
	t.bytes[c] += size
	return true
}

// makeObservations returns what was seen so far.
func (t *tally) makeObservations() proposal.Observations {
	o := t.o
	o.Programs, o.Network = t.tree.list, t.sortedReaches()
	dropped := 0
	o.Notable, dropped = t.withoutFlows(o.Notable)
	o.Counts.Connects -= dropped
	return o
}

// isQuiet reports whether a file event is in a place that commands may write to, and was not
// refused there.
func isQuiet(e proposal.Event) bool {
	return e.Errno == "" && !e.Unverified && inQuiet(e.Path) && (e.Target == "" || inQuiet(e.Target))
}

// isIdle reports whether an event of a kind of note had no effect: a query to the
// sandbox's own kernel about its network devices, as Node makes; or a process that set the
// ids that it already had, as make does before each command. Without capabilities a
// process cannot get other ids, except in its own user namespace.
func isIdle(e proposal.Event) bool {
	switch {
	case e.Unverified:
		return false
	case classOf(e) == connections:
		return e.Errno == "ENOENT" && slices.Contains(nameCaches, e.Address) || strings.HasSuffix(e.Address, netlink)
	case classOf(e) == attempts:
		return e.Errno == "" && slices.Contains(ownIDs, e.Call)
	}
	return false
}

var ownIDs = []string{"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid"}

func inQuiet(name string) bool {
	for _, place := range quiet {
		if rest, ok := strings.CutPrefix(name, place); ok && (rest == "" || rest[0] == '/') {
			return !strings.Contains(rest, "/../") && !strings.HasSuffix(rest, "/..")
		}
	}
	return false
}

// OfNote reports whether e is shown to a person who reads a log. Not shown are the exits of
// processes that succeeded, files where commands may write, and routine events without
// effect.
func OfNote(e proposal.Event) bool {
	switch {
	case classOf(e) == files:
		return !isQuiet(e)
	case classOf(e) == connections, classOf(e) == attempts:
		return !isIdle(e)
	case e.Kind == proposal.EventExit:
		return e.Status != 0
	}
	return true
}
