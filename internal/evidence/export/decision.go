// SPDX-License-Identifier: Apache-2.0

package export

import (
	"time"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Schema is the value of custom.schema.
const Schema = "fumehood.decision/v1"

// The paths of decision points.
const (
	PathTrigger  = "fumehood/trigger"
	PathProposal = "fumehood/proposal"
	PathCommand  = "fumehood/command"
	PathExec     = "fumehood/exec"
	PathEgress   = "fumehood/egress"
	PathEvent    = "fumehood/event"
	PathRun      = "fumehood/run" // the last line of a run; not a decision
)

// A Decision is one line: an event of OPA's decision log.
type Decision struct {
	Labels      map[string]string   `json:"labels"` // of the run: app, id, version, mode, repository …
	DecisionID  string              `json:"decision_id"`
	TraceID     string              `json:"trace_id,omitempty"`
	SpanID      string              `json:"span_id,omitempty"`
	Bundles     map[string]Bundle   `json:"bundles"` // by layer, the one with the most authority first: "0-shipped"
	Path        string              `json:"path"`
	Input       Input               `json:"input"`
	Result      Result              `json:"result"`
	Erased      []string            `json:"erased,omitempty"` // pointers to the parts of the input that are left out
	Masked      []string            `json:"masked,omitempty"` // pointers to the parts of the input that are truncated
	RequestedBy string              `json:"requested_by,omitempty"`
	Timestamp   time.Time           `json:"timestamp"` // of the entry, or of the event
	Metrics     map[string]int64    `json:"metrics,omitempty"`
	RuleLabels  []map[string]string `json:"rule_labels,omitempty"` // one for each of result.rules
	Custom      Custom              `json:"custom"`
}

// A Bundle is the version of a policy layer.
type Bundle struct {
	Revision string `json:"revision"`
}

// Custom has the fields for which OPA's event has no equivalent.
type Custom struct {
	Schema string `json:"schema"`
	Run    string `json:"run,omitempty"`
	Entry  int64  `json:"entry"`           // of the audit log; -1 for none
	ID     string `json:"id,omitempty"`    // the proposal's
	Log    string `json:"log,omitempty"`   // how the log ends: "sealed"; "sealed-untrusted" if its key is not vouched for; "unsealed" for a run that was killed
	Again  bool   `json:"again,omitempty"` // in the second run of the command
	// Sequence counts the run's lines in this export from 1; that of the line with the path
	// fumehood/run is their number. 0 for a trigger, which belongs to no run.
	Sequence   int64  `json:"sequence,omitempty"`
	Severity   string `json:"severity"`
	Key        string `json:"key,omitempty"`        // the log's verifier key
	Checkpoint string `json:"checkpoint,omitempty"` // the log's last checkpoint, a signed note
	// Policies are the layers of bundles, with their commits and signers, in the line with the path fumehood/run.
	Policies []proposal.PolicyOrigin `json:"policies,omitempty"`
}

// An Input is the object of the decision: one of its fields, and Proposal together
// with Command.
type Input struct {
	Proposal *Proposal        `json:"proposal,omitempty"`
	Command  *Command         `json:"command,omitempty"`
	Exec     *proposal.Exec   `json:"exec,omitempty"`
	Egress   *proposal.Egress `json:"egress,omitempty"`
	Event    *Event           `json:"event,omitempty"`
	Trigger  *points.Trigger  `json:"trigger,omitempty"`
}

// A Proposal is the proposal that was decided.
type Proposal struct {
	ID       string           `json:"id"`
	Form     string           `json:"form"`
	Language string           `json:"language,omitempty"`
	Text     string           `json:"text"` // canonical: what would run
	Why      string           `json:"why,omitempty"`
	Cwd      string           `json:"cwd"`
	Env      []string         `json:"env"` // names
	Network  []string         `json:"network"`
	Phase    string           `json:"phase"`
	Needs    []string         `json:"needs,omitempty"`
	Outputs  []string         `json:"outputs,omitempty"`
	Commands int              `json:"commands"`
	Programs []string         `json:"programs"`
	Unknowns []string         `json:"unknowns,omitempty"` // codes of what could not be analyzed
	Limits   *proposal.Limits `json:"limits,omitempty"`   // as requested
}

// A Command is one simple command of a proposal.
type Command struct {
	Index   int      `json:"index"`
	Program string   `json:"program"`
	Argv    []string `json:"argv"`
	Static  bool     `json:"static"` // every word is known before the command runs
	Via     []string `json:"via,omitempty"`
}

// An Event is the event of a finding.
type Event struct {
	Kind        string `json:"kind"`
	Pid         int    `json:"pid"`
	Program     string `json:"program"`
	Path        string `json:"path,omitempty"`
	Target      string `json:"target,omitempty"`
	Address     string `json:"address,omitempty"`
	Call        string `json:"call,omitempty"`
	Errno       string `json:"errno,omitempty"`
	Destination string `json:"destination,omitempty"` // of an event seen by the gateway
}

// The effects of a Result. A finding has the effect note, which changes nothing.
const (
	Deny  = "deny"
	Ask   = "ask"
	Allow = "allow"
	Note  = "note"
)

// A Result is the decision's result.
type Result struct {
	Effect   string            `json:"effect"`
	Rules    []string          `json:"rules"`
	Reasons  []proposal.Reason `json:"reasons"`
	Grant    *Grant            `json:"grant,omitempty"`
	Approved bool              `json:"approved,omitempty"` // a person approved a command that needed approval
	Observed bool              `json:"observed,omitempty"` // it would have been refused, but was only observed
	Code     string            `json:"code,omitempty"`     // why the gateway refused or ended it; "policy" if policy did
}

// A Grant is the most that was granted.
type Grant struct {
	Limits  proposal.Limits `json:"limits"`
	Env     []string        `json:"env"` // names
	Network []string        `json:"network"`
	Phase   string          `json:"phase"`
	Fresh   bool            `json:"fresh,omitempty"`
	Exec    []string        `json:"exec,omitempty"`
}
