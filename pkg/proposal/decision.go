// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"cmp"
	"fmt"
)

// An Effect is policy's answer. The zero Effect denies.
type Effect int

// The effects, strongest first: deny wins over ask, ask over allow.
const (
	Deny  Effect = iota
	Ask          // a person must approve
	Allow        //
)

var effectNames = [...]string{"deny", "ask", "allow"}

func (e Effect) String() string {
	if e < 0 || int(e) >= len(effectNames) {
		return "deny"
	}
	return effectNames[e]
}

// MarshalText writes "deny", "ask" or "allow".
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what MarshalText writes and refuses everything else.
func (e *Effect) UnmarshalText(text []byte) error {
	for i, name := range effectNames {
		if name == string(text) {
			*e = Effect(i)
			return nil
		}
	}
	return fmt.Errorf("invalid effect %q", text)
}

// A Decision is policy's answer to one Proposal.
type Decision struct {
	Effect  Effect   `json:"effect"`
	Rules   []string `json:"rules"`           // ids of all rules that spoke, sorted, without repetition
	Reasons []Reason `json:"reasons"`         // why it is denied or asked; empty for allow
	Grant   *Grant   `json:"grant,omitempty"` // with Allow; with Ask, what an approval gives
}

// A Reason is one rule's ground for a deny or an ask.
type Reason struct {
	Rule       string `json:"rule"` // stable id, for example "go.exec-flag"
	Effect     Effect `json:"effect"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"` // what would be allowed instead
	Command    int    `json:"command"`    // index into Analysis.Commands; -1 for the whole proposal
	Text       string `json:"text"`       // the words of the proposal it speaks of; untrusted
	// Observed means that its layer is only observed: it would have had Effect, and
	// had none.
	Observed bool `json:"observed,omitempty"`

	// What follows is for who proposed it, an agent mostly. A refusal of a program that
	// began, or of a connection, has none of it.

	// Layer is the policy that the rule stands in: "default", or how it was named
	// ("policy", "hosts", "organisation", "granting", with "#2" for a second one);
	// "floor" for what holds whatever policies say.
	Layer string `json:"layer,omitempty"`
	// Span is the place in the proposal's own text, where it is known. An argv has the
	// text that it is shown as.
	Span *Span `json:"span,omitempty"`
	// Retry says whether to try again, and how.
	Retry Retry `json:"retry,omitempty"`
	// Alternatives are commands that policy allows when one is proposed by itself, at
	// most MaxAlternatives, the nearest first. They may repeat words of the proposal:
	// untrusted.
	Alternatives []string `json:"alternatives,omitempty"`
}

// The most that a Reason has of alternatives, and the most bytes of one.
const (
	MaxAlternatives = 3
	MaxAlternative  = 300
)

// A Retry says to who was refused what to do next.
type Retry string

// What may be done next.
const (
	RetryVary      Retry = "vary"      // propose it otherwise
	RetryNever     Retry = "never"     // nothing of the kind is allowed, however it is written
	RetryApproval  Retry = "approval"  // wait for a person
	RetryTransient Retry = "transient" // propose the same later
)

// Retries are all values that a Reason's Retry has.
var Retries = []Retry{RetryVary, RetryNever, RetryApproval, RetryTransient}

// Denied returns a Decision that denies for one reason.
func Denied(rule, message, suggestion string) Decision {
	return Decision{
		Effect:  Deny,
		Rules:   []string{rule},
		Reasons: []Reason{{Rule: rule, Effect: Deny, Message: message, Suggestion: suggestion, Command: -1}},
	}
}

// A Grant is what an allow carries: the most that the sandbox may give.
type Grant struct {
	Limits  Limits            `json:"limits"`
	Env     map[string]string `json:"env"`     // the proposal's own variables that policy lets in
	Network []string          `json:"network"` // entries as in Proposal.Network; empty is no network at all
	Phase   string            `json:"phase"`   // PhaseSetup or PhaseRun
	Fresh   bool              `json:"fresh"`
	// Exec are kinds of programs that it may start beside the root file system's:
	// "built" for those that it builds itself.
	Exec []string `json:"exec,omitempty"`
}

// ExecBuilt is the kind of Grant.Exec for commands that run the repository's code.
const ExecBuilt = "built"

// Limits bound one command, or in a plan say what is asked for. In a plan a zero
// field asks for the default; in a Grant every field is set and a zero grants
// nothing.
type Limits struct {
	Wall   Duration `json:"wall,omitempty"`   // from start to the last process gone
	CPUs   float64  `json:"cpus,omitempty"`   // processors' worth of time a second
	Memory Bytes    `json:"memory,omitempty"` // of the whole sandbox
	Pids   int      `json:"pids,omitempty"`   // processes and threads
	Disk   Bytes    `json:"disk,omitempty"`   // everything written: workspace, HOME and /tmp
	Files  int      `json:"files,omitempty"`  // open files of one process
	Output Bytes    `json:"output,omitempty"` // stdout and stderr together; more ends the command
}

// Open reports whether a limit is missing.
func (l Limits) Open() bool {
	return l.Wall <= 0 || l.CPUs <= 0 || l.Memory <= 0 || l.Pids <= 0 || l.Disk <= 0 || l.Files <= 0 || l.Output <= 0
}

// Under returns l with no field above ceiling's; a field that is zero there bounds nothing.
func (l Limits) Under(ceiling Limits) Limits {
	return Limits{
		Wall: under(l.Wall, ceiling.Wall), CPUs: under(l.CPUs, ceiling.CPUs), Memory: under(l.Memory, ceiling.Memory), Pids: under(l.Pids, ceiling.Pids),
		Disk: under(l.Disk, ceiling.Disk), Files: under(l.Files, ceiling.Files), Output: under(l.Output, ceiling.Output),
	}
}

func under[T ~int | ~int64 | ~float64](limit, ceiling T) T {
	if ceiling > 0 {
		return min(limit, ceiling)
	}
	return limit
}

// Or returns l with the fields of other where l has none.
func (l Limits) Or(other Limits) Limits {
	return Limits{
		Wall: cmp.Or(l.Wall, other.Wall), CPUs: cmp.Or(l.CPUs, other.CPUs), Memory: cmp.Or(l.Memory, other.Memory), Pids: cmp.Or(l.Pids, other.Pids),
		Disk: cmp.Or(l.Disk, other.Disk), Files: cmp.Or(l.Files, other.Files), Output: cmp.Or(l.Output, other.Output),
	}
}

// Bytes is a size in bytes. JSON has it as a number.
type Bytes int64

// The sizes that limits are spoken of in.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// String writes b in the largest unit that divides it: "2 GiB", "1536 KiB".
func (b Bytes) String() string {
	switch {
	case b != 0 && b%GiB == 0:
		return fmt.Sprintf("%d GiB", b/GiB)
	case b != 0 && b%MiB == 0:
		return fmt.Sprintf("%d MiB", b/MiB)
	case b != 0 && b%KiB == 0:
		return fmt.Sprintf("%d KiB", b/KiB)
	}
	return fmt.Sprintf("%d B", int64(b))
}
