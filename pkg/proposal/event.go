// SPDX-License-Identifier: Apache-2.0

package proposal

import "time"

// An Event is one operation of a command that gVisor's kernel saw. Paths and names
// are untrusted text.
type Event struct {
	Command string    `json:"command"` // ID of the proposal
	Kind    string    `json:"kind"`    // an Event constant
	Time    time.Time `json:"time"`
	Pid     int       `json:"pid"`
	Parent  int       `json:"parent"`
	Program string    `json:"program"` // that the process last executed
	Path    string    `json:"path,omitempty"`
	Target  string    `json:"target,omitempty"`  // of a rename or a link
	Address string    `json:"address,omitempty"` // of a connection: "tcp 192.0.2.1:443", "unix /run/x"
	Call    string    `json:"call,omitempty"`    // the system call, for attempts at privilege
	Status  int       `json:"status,omitempty"`  // of an exit: the wait status
	Errno   string    `json:"errno,omitempty"`   // why it failed, "" if it did not
	Exec    *Exec     `json:"exec,omitempty"`    // of an exec or a load
	// Decision is policy's decision about Exec, new or cached: why an exec was
	// refused, and whether one that ran would have been.
	Decision *ExecDecision `json:"decision,omitempty"`
	// Unverified reports that the process had changed its mounts or root: its paths
	// are as the process sees them.
	Unverified bool `json:"unverified,omitempty"`
	// Text reports that the process belonged to the decided text itself, see Exec.Text.
	Text bool `json:"text,omitempty"`
	// Times is how many equal events were seen, in Observations, which lists them once.
	Times int `json:"times,omitempty"`
	// Flow is what the gateway saw, for the kinds lookup, connection, request and
	// datagram. Pid and Program are those of the process whose call it answers, if known.
	Flow *Flow `json:"flow,omitempty"`
}

// The kinds of Event.
const (
	EventExec      = "exec"
	EventLoad      = "load"    // a file mapped as code, the first time that a command does so
	EventRefused   = "refused" // an exec or a load that policy refused
	EventExit      = "exit"
	EventWrite     = "write" // a file opened for writing, or created
	EventRename    = "rename"
	EventRemove    = "remove"
	EventLink      = "link"
	EventMode      = "mode" // chmod, chown
	EventConnect   = "connect"
	EventListen    = "listen" // bind and listen
	EventSend      = "send"   // a datagram with an address
	EventPrivilege = "privilege"

	EventLookup     = "lookup"     // a name was looked up
	EventConnection = "connection" // a connection through the gateway ended, or was refused
	EventRequest    = "request"    // an HTTP request within one
	EventDatagram   = "datagram"   // traffic that the gateway never allows
)

// A Finding is policy's assessment of an Event.
type Finding struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Event   Event  `json:"event"`
}

// Observations are what was seen of one command. The sandbox sets Complete and
// Counts.Dropped; package observe adds everything else from the Events that it received.
type Observations struct {
	Programs []Program `json:"programs"` // parents before children, in order of their first start; bounded
	Execs    []Event   `json:"execs"`    // programs started and refused, in order; bounded
	Notable  []Event   `json:"notable"`  // all other events that are listed individually; bounded
	Network  []Reach   `json:"network"`  // network activity, refusals first; bounded
	Counts   Counts    `json:"counts"`
	Findings []Finding `json:"findings"`
	// Complete reports that nothing was dropped and the recorder finished.
	Complete bool `json:"complete"`
}

// A Program is one node of a command's tree of programs: all starts of one file,
// under one name, from the same parent node.
type Program struct {
	Parent   int    `json:"parent"` // its index in Programs, -1 for the command's first
	Path     string `json:"path"`
	Name     string `json:"name"` // last part of the script, or of the first word
	Script   string `json:"script,omitempty"`
	Layer    string `json:"layer"`
	Runs     int    `json:"runs"` // successful starts
	Refused  int    `json:"refused,omitempty"`
	Watched  int    `json:"watched,omitempty"`   // of Runs, those that would have been refused
	Failed   int    `json:"failed,omitempty"`    // of Runs, those that the text's own shell started and whose process failed
	ExitCode int    `json:"exit_code,omitempty"` // of the first of Failed, as a shell has it: 128 and a signal's number
	Crashed  int    `json:"crashed,omitempty"`   // of Runs, those ended by SIGSEGV or similar
	Signal   string `json:"signal,omitempty"`    // of the first crash: "SIGSEGV"
	Rule     string `json:"rule,omitempty"`      // of the first refusal
	Omitted  int    `json:"omitted,omitempty"`   // starts by it, or below it, that have no node
}

// Counts count Events, including those that are not listed.
type Counts struct {
	Execs   int `json:"execs"`
	Refused int `json:"refused"`
	Watched int `json:"watched"` // of Execs, and of files loaded as code, those that would have been refused
	// Predicted and Decided count the Execs that a text's process started, by how they
	// were judged; programs started the others. Unforeseen counts the Refused that a
	// text's process tried.
	Predicted  int `json:"predicted"`
	Decided    int `json:"decided"`
	Unforeseen int `json:"unforeseen"`
	Exits      int `json:"exits"`
	Writes     int `json:"writes"`   // and renames, removals, links and changed modes
	Connects   int `json:"connects"` // and listens and datagrams, except for those any C library tries in vain or the gateway reports
	Attempts   int `json:"attempts"` // at privilege, except for setting IDs that a process already has
	Dropped    int `json:"dropped"`

	Lookups     int `json:"lookups"` // of names, reported by the gateway, like the next two
	Connections int `json:"connections"`
	Requests    int `json:"requests"`
	Datagrams   int `json:"datagrams"`
	NetRefused  int `json:"network_refused"` // of the last four, those that policy or the gateway refused
	NetWatched  int `json:"network_watched"` // of those allowed, those that would have been refused
}

// A Reach is what one program of a command did with one network destination, by kind
// and outcome.
type Reach struct {
	Kind     string `json:"kind"`              // EventLookup, EventConnection, EventRequest or EventDatagram
	Name     string `json:"name"`              // "" for a raw address
	Address  string `json:"address,omitempty"` // the first that represented Name, or the raw one
	Port     int    `json:"port,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	SNI      string `json:"sni,omitempty"`     // of the first, if it differs from Name
	Program  string `json:"program,omitempty"` // "" if not known
	Refused  bool   `json:"refused,omitempty"`
	Watched  bool   `json:"watched,omitempty"` // it would have been refused
	// Observed means that it was let through because nothing about the network was enforced.
	Observed bool   `json:"observed,omitempty"`
	Code     string `json:"code,omitempty"` // as in Flow
	Rule     string `json:"rule,omitempty"` // the rule that refused it, or would have
	// Message and Suggestion are from the first one's Reason.
	Message    string   `json:"message,omitempty"`
	Suggestion string   `json:"suggestion,omitempty"`
	Count      int      `json:"count"`
	Sent       int64    `json:"sent"`
	Received   int64    `json:"received"`
	Calls      []string `json:"calls,omitempty"` // of requests, "GET /a": the first distinct ones
}

// Destination returns the destination of r: "name:443", "192.0.2.1:22".
func (r Reach) Destination() string { return formatDestination(r.Name, r.Address, r.Port) }
