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
	// Text says that the process was one of the decided text's own, see Exec.Text.
	Text bool `json:"text,omitempty"`
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
	Network  []Reach   `json:"network"`  // what was done with the network, refusals first; bounded
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
	Execs   int `json:"execs"`
	Refused int `json:"refused"`
	Watched int `json:"watched"` // of Execs, those that would have been refused
	// Predicted and Decided are those of Execs that a text's process started, by how they
	// were judged; the others were started by programs. Unforeseen are those of Refused
	// that a text's process tried.
	Predicted  int `json:"predicted"`
	Decided    int `json:"decided"`
	Unforeseen int `json:"unforeseen"`
	Exits      int `json:"exits"`
	Writes     int `json:"writes"`   // and renames, removals, links and changed modes
	Connects   int `json:"connects"` // and listens and datagrams, but for those that any C library tries in vain or the gateway tells of
	Attempts   int `json:"attempts"` // at privilege, but for taking on the ids that a process has
	Dropped    int `json:"dropped"`

	Lookups     int `json:"lookups"` // of names, by the gateway, like the next two
	Connections int `json:"connections"`
	Requests    int `json:"requests"`
	Datagrams   int `json:"datagrams"`
	NetRefused  int `json:"network_refused"` // of the last four, those that policy or the gateway refused
	NetWatched  int `json:"network_watched"` // of those let through, those that would have been refused
}

// A Reach is what one program of a command did with one place of the network, as far
// as it is of one kind and had one outcome.
type Reach struct {
	Kind     string `json:"kind"`              // EventLookup, EventConnection, EventRequest or EventDatagram
	Name     string `json:"name"`              // "" of a raw address
	Address  string `json:"address,omitempty"` // the first that Name stood for, or the raw one
	Port     int    `json:"port,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	SNI      string `json:"sni,omitempty"`     // of the first, where it is not Name
	Program  string `json:"program,omitempty"` // "" where it is not known
	Refused  bool   `json:"refused,omitempty"`
	Watched  bool   `json:"watched,omitempty"` // it would have been refused
	Code     string `json:"code,omitempty"`    // as in Flow
	Rule     string `json:"rule,omitempty"`    // by which it was refused, or would have been
	// Message and Suggestion are the first one's Reason's.
	Message    string   `json:"message,omitempty"`
	Suggestion string   `json:"suggestion,omitempty"`
	Count      int      `json:"count"`
	Sent       int64    `json:"sent"`
	Received   int64    `json:"received"`
	Calls      []string `json:"calls,omitempty"` // of requests, "GET /a": the first different ones
}

// Destination is where r went: "name:443", "192.0.2.1:22".
func (r Reach) Destination() string { return destination(r.Name, r.Address, r.Port) }
