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
	// Unverified says that the process had changed its mounts or root: its paths are
	// what it calls them.
	Unverified bool `json:"unverified,omitempty"`
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
)

// A Finding is what policy thinks of an Event.
type Finding struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Event   Event  `json:"event"`
}

// Observations are what was seen of one command.
type Observations struct {
	Execs    []Event   `json:"execs"`   // programs that began and that were refused, in order; bounded
	Notable  []Event   `json:"notable"` // everything else that is told one by one; bounded
	Counts   Counts    `json:"counts"`
	Findings []Finding `json:"findings"`
	// Complete says that nothing was dropped and the recorder said its last word.
	Complete bool `json:"complete"`
}

// Counts count Events, those that are not listed included.
type Counts struct {
	Execs    int `json:"execs"`
	Refused  int `json:"refused"`
	Writes   int `json:"writes"`
	Connects int `json:"connects"`
	Attempts int `json:"attempts"` // at privilege
	Dropped  int `json:"dropped"`
}
