// SPDX-License-Identifier: Apache-2.0

package proposal

import "time"

// An Event is one thing that gVisor's kernel saw a command do. Paths and names are a
// stranger's text.
type Event struct {
	Command string    `json:"command"` // id of the proposal
	Kind    string    `json:"kind"`    // an Event constant
	Time    time.Time `json:"time"`
	Pid     int       `json:"pid"`
	Parent  int       `json:"parent"`
	Program string    `json:"program"` // that the process last began
	Path    string    `json:"path,omitempty"`
	Target  string    `json:"target,omitempty"`  // of a rename or a link
	Address string    `json:"address,omitempty"` // of a connection: "tcp 192.0.2.1:443", "unix /run/x"
	Call    string    `json:"call,omitempty"`    // the system call, for attempts at privilege
	Status  int       `json:"status,omitempty"`  // of an exit: the wait status
	Errno   string    `json:"errno,omitempty"`   // why it failed, "" when it did not
	Exec    *Exec     `json:"exec,omitempty"`    // of an exec
	// Decision is policy's answer about Exec, where it was asked or remembered: why a
	// refused one was, and whether one that ran would have been.
	Decision *ExecDecision `json:"decision,omitempty"`
	// Unverified says that the process had changed its mounts or root: its paths are
	// what it calls them.
	Unverified bool `json:"unverified,omitempty"`
	// Times is how often the like was seen, in Observations, where it is told once.
	Times int `json:"times,omitempty"`
	// Flow is what the gateway saw, for the kinds lookup, connection, request and
	// datagram. Their Pid and Program are of the process whose call it answers, where
	// that is known.
	Flow *Flow `json:"flow,omitempty"`
}

// The kinds of Event.
const (
	EventExec      = "exec"
	EventRefused   = "refused" // an exec that policy refused
	EventExit      = "exit"
	EventWrite     = "write" // a file opened for writing, or made
	EventRename    = "rename"
	EventRemove    = "remove"
	EventLink      = "link"
	EventMode      = "mode" // chmod, chown
	EventConnect   = "connect"
	EventListen    = "listen" // bind and listen
	EventSend      = "send"   // a datagram with an address
	EventPrivilege = "privilege"

	EventLookup     = "lookup"     // a name was asked for
	EventConnection = "connection" // a connection through the gateway ended, or was refused
	EventRequest    = "request"    // an HTTP request within one
	EventDatagram   = "datagram"   // what the gateway never lets pass
)

// A Finding is what policy thinks of an Event.
type Finding struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Event   Event  `json:"event"`
}

// Observations are what was seen of one command. The sandbox says Complete and
// Counts.Dropped; the hood adds everything else from the Events that it was given.
type Observations struct {
	Programs []Program `json:"programs"` // parents before children, in order of their first start; bounded
	Execs    []Event   `json:"execs"`    // programs that began and that were refused, in order; bounded
	Notable  []Event   `json:"notable"`  // everything else that is told one by one; bounded
	Counts   Counts    `json:"counts"`
	Findings []Finding `json:"findings"`
	// Complete says that nothing was dropped and the recorder said its last word.
	Complete bool `json:"complete"`
}

// A Program is one node of a command's tree of programs: all starts of one file,
// under one name, by what another node stands for.
type Program struct {
	Parent  int    `json:"parent"` // its place in Programs, -1 for the command's first
	Path    string `json:"path"`
	Name    string `json:"name"` // last part of the script, or of the first word
	Script  string `json:"script,omitempty"`
	Layer   string `json:"layer"`
	Runs    int    `json:"runs"` // that began
	Refused int    `json:"refused,omitempty"`
	Watched int    `json:"watched,omitempty"` // of Runs, those that would have been refused
	Crashed int    `json:"crashed,omitempty"` // of Runs, those that ended by SIGSEGV or the like
	Signal  string `json:"signal,omitempty"`  // of the first crash: "SIGSEGV"
	Rule    string `json:"rule,omitempty"`    // of the first refusal
	Omitted int    `json:"omitted,omitempty"` // starts by it, or below it, that have no node
}

// Counts count Events, those that are not listed included.
type Counts struct {
	Execs    int `json:"execs"`
	Refused  int `json:"refused"`
	Watched  int `json:"watched"` // of Execs, those that would have been refused
	Exits    int `json:"exits"`
	Writes   int `json:"writes"`   // and renames, removals, links and changed modes
	Connects int `json:"connects"` // and listens and datagrams, but for those that any C library tries in vain
	Attempts int `json:"attempts"` // at privilege, but for taking on the ids that a process has
	Dropped  int `json:"dropped"`
}
