// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"cmp"
	"fmt"
)

// An Effect is the effect of a policy decision. The zero Effect denies.
type Effect int

// The effects, strongest first: deny takes precedence over ask, and ask over allow.
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

// MarshalText encodes the effect as "deny", "ask" or "allow".
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText accepts only what MarshalText writes.
func (e *Effect) UnmarshalText(text []byte) error {
	for i, name := range effectNames {
		if name == string(text) {
			*e = Effect(i)
			return nil
		}
	}
	return fmt.Errorf("invalid effect %q", text)
}

// A Decision is policy's decision about one Proposal.
type Decision struct {
	Effect  Effect   `json:"effect"`
	Rules   []string `json:"rules"`           // of all rules that applied, sorted, no duplicates
	Reasons []Reason `json:"reasons"`         // why it is denied or asked; empty for allow
	Grant   *Grant   `json:"grant,omitempty"` // with Allow; with Ask, what an approval grants
}

// A Reason is one rule's reason for a deny or an ask.
type Reason struct {
	Rule       string `json:"rule"` // stable ID, for example "go.exec-flag"
	Effect     Effect `json:"effect"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"` // what would be allowed instead
	Command    int    `json:"command"`    // index into Analysis.Commands; -1 for the whole proposal
	Text       string `json:"text"`       // the words of the proposal that it concerns; untrusted
	// Observed means that the rule, or its layer, is only observed: it would have had Effect,
	// but did not.
	Observed bool `json:"observed,omitempty"`
	// Revision of an observed rule is "sha256:" and twelve digits of the digest of its text,
	// or of its policy if the rule is not known.
	Revision string `json:"revision,omitempty"`
	// Severity is "critical", "high", "medium" or "low", and Category is one word, as the rule's
	// author classified it. "" means not classified; nothing follows from it.
	Severity string `json:"severity,omitempty"`
	Category string `json:"category,omitempty"`

	// The following fields are for the proposer, usually an agent. They are not set for the
	// refusal of a program start or of a connection.

	// Layer is the policy that contains the rule: "default", or its given name
	// ("policy", "hosts", "granting" and so on, with "#2" for a second one); "floor"
	// for rules that apply regardless of policies.
	Layer string `json:"layer,omitempty"`
	// Span is the position in the proposal's own text, if known. For an argv it refers to
	// the displayed text.
	Span *Span `json:"span,omitempty"`
	// Retry says whether to try again, and how.
	Retry Retry `json:"retry,omitempty"`
	// Alternatives are commands that do the same and that policy allows if proposed alone, at
	// most three. They repeat words of the proposal: untrusted.
	Alternatives []string `json:"alternatives,omitempty"`
}

// A Retry is the next step for a proposer after a refusal.
type Retry string

// The values of Retry.
const (
	RetryVary      Retry = "vary"      // propose a variation
	RetryNever     Retry = "never"     // nothing of this kind is allowed, however it is written
	RetryApproval  Retry = "approval"  // wait for a person's approval
	RetryTransient Retry = "transient" // propose the same later
)

// A Grant is part of an allow: the maximum that the sandbox may provide.
type Grant struct {
	Limits  Limits            `json:"limits"`
	Env     map[string]string `json:"env"`     // the proposal's own variables that policy allows
	Network []string          `json:"network"` // entries as in Proposal.Network; empty means no network
	Phase   string            `json:"phase"`   // PhaseSetup or PhaseRun
	Fresh   bool              `json:"fresh"`
	// Exec are the kinds of programs that it may start in addition to those of the root
	// file system: "built" for those that it builds itself.
	Exec []string `json:"exec,omitempty"`
	// Cache means that the proposal requested it and policy calls every command of it
	// deterministic: its result may be kept, and a kept one used.
	Cache bool `json:"cache,omitempty"`
}

// Limits bound one command, or in a plan are the requested limits. In a plan a zero
// field requests the default; in a Grant every field is set and a zero grants nothing.
type Limits struct {
	Wall   Duration `json:"wall,omitempty"`   // from the start to the end of the last process
	CPUs   float64  `json:"cpus,omitempty"`   // processor seconds per second
	Memory Bytes    `json:"memory,omitempty"` // of the whole sandbox
	Pids   int      `json:"pids,omitempty"`   // processes and threads
	Disk   Bytes    `json:"disk,omitempty"`   // everything written: workspace, HOME and /tmp
	Files  int      `json:"files,omitempty"`  // open files of one process
	Output Bytes    `json:"output,omitempty"` // stdout and stderr; more ends the command
}

// Open reports whether a limit is missing.
func (l Limits) Open() bool {
	return l.Wall <= 0 || l.CPUs <= 0 || l.Memory <= 0 || l.Pids <= 0 || l.Disk <= 0 || l.Files <= 0 || l.Output <= 0
}

// Under returns l with no field above ceiling's; a zero field of ceiling means no limit.
func (l Limits) Under(ceiling Limits) Limits {
	return Limits{
		Wall: limitTo(l.Wall, ceiling.Wall), CPUs: limitTo(l.CPUs, ceiling.CPUs),
		Memory: limitTo(l.Memory, ceiling.Memory),
		Pids:   limitTo(l.Pids, ceiling.Pids),
		Disk:   limitTo(l.Disk, ceiling.Disk), Files: limitTo(l.Files, ceiling.Files),
		Output: limitTo(l.Output, ceiling.Output),
	}
}

func limitTo[T ~int | ~int64 | ~float64](limit, ceiling T) T {
	if ceiling > 0 {
		return min(limit, ceiling)
	}
	return limit
}

// Or returns l with its zero fields taken from other.
func (l Limits) Or(other Limits) Limits {
	return Limits{
		Wall: cmp.Or(l.Wall, other.Wall), CPUs: cmp.Or(l.CPUs, other.CPUs), Memory: cmp.Or(l.Memory, other.Memory),
		Pids: cmp.Or(l.Pids, other.Pids),
		Disk: cmp.Or(l.Disk, other.Disk), Files: cmp.Or(l.Files, other.Files), Output: cmp.Or(l.Output, other.Output),
	}
}

// Bytes is a size in bytes. In JSON it is a number.
type Bytes int64

// The units of limits.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// String formats b in the largest unit that divides it: "2 GiB", "1536 KiB".
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
