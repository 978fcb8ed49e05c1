// SPDX-License-Identifier: Apache-2.0

// Package proposal holds fumehood's data types: what an AI proposed, what was
// found in it, what policy decided and the outcome.
//
// It is the lowest layer. It imports only the standard library, does no I/O and
// makes no decisions. Every zero value is the closed one: the zero Effect denies,
// the zero Status means that the outcome is unknown, a zero Limits grants nothing.
//
// Everything in a Plan, and everything that a command printed or named, is
// untrusted text. Nothing in this package makes it safe to display; see
// pkg/report for that.
package proposal

import (
	"fmt"
	"time"
)

// PlanSchema is the value of a plan's "schema" field.
const PlanSchema = "fumehood.plan/v1"

// A Plan is an ordered list of Proposals from one proposer.
type Plan struct {
	Schema    string     `json:"schema"`
	Proposer  string     `json:"proposer,omitempty"`
	Proposals []Proposal `json:"proposals"`

	// Digest is "sha256:" and the lower-case hex SHA-256 of the document that was
	// read, byte for byte. It is set by the reader, never by the document.
	Digest string `json:"-"`
}

// A Proposal is one thing that a proposer requests to run. Exactly one of Run,
// Argv and Code is set.
type Proposal struct {
	ID       string            `json:"id"`
	Run      string            `json:"run,omitempty"`      // shell text
	Argv     []string          `json:"argv,omitempty"`     // program and arguments, no shell
	Code     string            `json:"code,omitempty"`     // a snippet in Language
	Language string            `json:"language,omitempty"` // python, javascript, bash or sh; only with Code
	Why      string            `json:"why,omitempty"`
	Cwd      string            `json:"cwd,omitempty"` // relative to the workspace
	Env      map[string]string `json:"env,omitempty"`
	Stdin    string            `json:"stdin,omitempty"`
	Timeout  Duration          `json:"timeout,omitempty"`
	Limits   *Limits           `json:"limits,omitempty"`
	Network  []string          `json:"network,omitempty"` // requested hosts: "host", "*.host", "host:port" or "registry:NAME"
	Phase    string            `json:"phase,omitempty"`   // PhaseSetup or PhaseRun, which is the default; setup comes first
	Outputs  []string          `json:"outputs,omitempty"` // workspace paths or globs to export
	Needs    []string          `json:"needs,omitempty"`   // IDs of proposals that must have succeeded before
	Expect   string            `json:"expect,omitempty"`  // what the proposer predicts, shown next to the outcome
	Fresh    bool              `json:"fresh,omitempty"`   // request a new sandbox
	Origin   string            `json:"origin,omitempty"`  // OriginSetup, OriginService, or "" for the proposer; never read from a plan
	Cache    bool              `json:"cache,omitempty"`   // request that the result of an earlier run with the same inputs is used: see Result.Cached
	Context  string            `json:"context,omitempty"` // of Code: run it with the state of earlier Code in the same context; only in sessions
	Earlier  *Earlier          `json:"earlier,omitempty"` // of Code of bash with a Context: what it was decided after; set by the session, never read from a plan
	// Sourced are the files of assignments that the text reads with source, by the name that it gives: as the workspace
	// had them when it was decided. What they assign runs in place of source. Set by the gate, never read from a plan.
	Sourced map[string]string `json:"sourced,omitempty"`
	Invalid *Invalid          `json:"invalid,omitempty"` // set by the reader of a plan: the proposal never runs
}

// Invalid is a proposal that a plan's reader refused. Of the Proposal only ID is set; the
// reader made it up if the plan gives none that is usable.
type Invalid struct {
	Problems []Problem `json:"problems"` // at least one, at most 20
	// Text is what the plan has in place of a proposal, for people: not longer than the
	// plan, and untrusted.
	Text string `json:"text"`
}

// Earlier is what the shell of a context has run. Code for that context is decided as the end
// of the script that begins with it, and only the Code runs.
type Earlier struct {
	Cells int    `json:"cells"` // at least one
	Text  string `json:"text"`  // of the cells, as they ran, each ended by a newline
}

// Words says that a cell was decided together with earlier ones; "" for nil.
func (e *Earlier) Words() string {
	switch {
	case e == nil:
		return ""
	case e.Cells == 1:
		return "after 1 earlier cell of this context"
	}
	return fmt.Sprintf("after %d earlier cells of this context", e.Cells)
}

// ruleInvalid is the rule that denies an Invalid proposal, whatever policy says.
const ruleInvalid = "plan.proposal"

// Refusal returns the decision about p if it is Invalid.
func (p Proposal) Refusal() (d Decision, refused bool) {
	if p.Invalid == nil {
		return d, false
	}
	d = Decision{Effect: Deny, Rules: []string{ruleInvalid}}
	for _, problem := range p.Invalid.Problems {
		d.Reasons = append(d.Reasons, Reason{Rule: ruleInvalid, Effect: Deny, Command: -1, Layer: "floor",
			Retry:   RetryVary,
			Message: problem.String()})
	}
	return d, true
}

// Refused returns the problems of p's Invalid proposals, in order.
func (p Plan) Refused() (list []Problem) {
	for _, one := range p.Proposals {
		if one.Invalid != nil {
			list = append(list, one.Invalid.Problems...)
		}
	}
	return list
}

// OriginSetup is the Origin of the set-up that the maintainer configured or fumehood
// detected. Policy grants it registries that it does not grant to a proposer.
const OriginSetup = "setup"

// OriginService is the Origin of a command that starts a server for the commands after it,
// as the maintainer configured. What it starts lives until its sandbox ends.
const OriginService = "service"

// Form returns how the proposal is written: "run", "argv" or "code"; "invalid" if it is
// Invalid.
func (p Proposal) Form() string {
	switch {
	case p.Invalid != nil:
		return "invalid"
	case p.Run != "":
		return "run"
	case len(p.Argv) > 0:
		return "argv"
	default:
		return "code"
	}
}

// ShellText returns the whole text that is decided: that of the earlier cells of the context,
// and the Run or Code of p.
func (p Proposal) ShellText() string {
	if p.Earlier == nil {
		return p.Run + p.Code
	}
	return p.Earlier.Text + p.Code
}

// RunsShell reports whether the sandbox's shell runs p's text.
func (p Proposal) RunsShell() bool {
	return p.Form() == "run" || p.Form() == "code" && (p.Language == "bash" || p.Language == "sh")
}

// Duration is a time.Duration in Go's notation, for example "2m0s".
type Duration time.Duration

// MarshalText formats d as time.Duration.String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText accepts what time.ParseDuration accepts, except for negative durations.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("invalid duration %q: want for example \"90s\" or \"2m\"", text)
	}
	*d = Duration(v)
	return nil
}

// Std returns d as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return time.Duration(d).String() }
