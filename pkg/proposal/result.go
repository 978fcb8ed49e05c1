// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"fmt"
	"time"
)

// An Execution is an allowed Proposal, ready to run: the canonical text or argv
// that was decided, and nothing else of the Proposal that could change it.
type Execution struct {
	ID   string
	Text string   // shell text, run by the fixed shell; or
	Argv []string // program and arguments
	// Launches says that Argv's program only starts the command in its own words, as
	// Command.StartsText has it.
	Launches bool
	Cwd      string // relative to the workspace
	Stdin    string
	Outputs  []string
	Grant    Grant
	// Again says that this is the second run of the same command, whose files get
	// names of their own.
	Again bool
}

// A Status says what ended a command. The zero Status vouches for nothing.
type Status int

// The statuses. All but SandboxFailed and NotRun are facts about the command;
// those two say that there is none.
const (
	SandboxFailed Status = iota // we cannot vouch for what happened
	Exited                      // see Result.ExitCode
	Signaled                    // see Result.Signal
	TimedOut
	OutOfMemory
	ProcessLimit
	DiskLimit
	OutputLimit
	NotRun // a proposal it needs did not succeed, the run's budget was spent, or the run was interrupted
)

var statusNames = [...]string{
	"sandbox failed", "exited", "signaled", "timed out", "out of memory",
	"process limit", "disk limit", "output limit", "not run",
}

func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return statusNames[SandboxFailed]
	}
	return statusNames[s]
}

// MarshalText writes the status in words.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes and refuses everything else.
func (s *Status) UnmarshalText(text []byte) error {
	for i, name := range statusNames {
		if name == string(text) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("invalid status %q", text)
}

// A Result is what became of one Execution.
type Result struct {
	Status   Status   `json:"status"`
	ExitCode int      `json:"exit_code"`        // when Exited; also what the process returned when a limit was met, else -1
	Signal   string   `json:"signal,omitempty"` // "SIGSEGV", when Signaled
	Limit    string   `json:"limit,omitempty"`  // the limit that was met, with its value: "wall 2m0s"
	Detail   string   `json:"detail,omitempty"` // what failed, for SandboxFailed and NotRun
	WallMS   int64    `json:"wall_ms"`
	CPUMS    int64    `json:"cpu_ms"`            // of the whole sandbox while the command ran
	PeakMem  Bytes    `json:"peak_memory_bytes"` // of the whole sandbox while the command ran
	Stdout   Stream   `json:"stdout"`
	Stderr   Stream   `json:"stderr"`
	Outputs  []Output `json:"outputs"`
	Changes  Changes  `json:"changes"`
	// NewSandbox says that the sandbox was started for this command and holds
	// nothing of earlier ones: the first command, a fresh one, or one that follows a
	// sandbox that had to be killed.
	NewSandbox bool `json:"new_sandbox"`
	// Observations are what the kernel saw the command do; nil when nothing watched.
	Observations *Observations `json:"observations,omitempty"`
	// Usage is what the command took, each figure with its source; nil when nobody
	// measured.
	Usage *Usage `json:"usage,omitempty"`
	// Leftover counts processes that the command left behind and that were killed.
	Leftover int `json:"leftover"`
	// Retried is the first run, when a runtime crashed in it; then everything else is
	// of the second, and there is no third.
	Retried *Attempt `json:"retried,omitempty"`
}

// Succeeded reports whether the command exited with 0 and met no limit.
func (r Result) Succeeded() bool { return r.Status == Exited && r.ExitCode == 0 }

// Outcome says in a few words how the command ended: "exit code 1", "SIGSEGV", or the
// status.
func (r Result) Outcome() string {
	switch {
	case r.Status == Exited:
		return fmt.Sprintf("exit code %d", r.ExitCode)
	case r.Signal != "":
		return r.Signal
	}
	return r.Status.String()
}

// Usage is what one command took. A figure without a source is not known.
type Usage struct {
	Wall       Figure `json:"wall_ms"`
	CPUUser    Figure `json:"cpu_user_ms"`
	CPUSystem  Figure `json:"cpu_system_ms"`
	PeakMemory Figure `json:"peak_memory_bytes"`
	Processes  Figure `json:"processes"` // that ended; none is left at the end
	Written    Figure `json:"written_bytes"`
}

// A Figure is a measured number.
type Figure struct {
	Value  int64  `json:"value"`
	Source string `json:"source"` // a Source constant
}

// Where a Figure comes from.
const (
	SourceUnknown = ""
	SourceClock   = "clock"   // our own
	SourceCgroup  = "cgroup"  // the host's kernel, of the whole sandbox while the command ran
	SourceSandbox = "sandbox" // gVisor's kernel
)

// A Stream is what a command wrote to stdout or stderr. All bytes are untrusted.
//
// Where something was Redacted, everything else is of what is left, its markers
// included, and nothing of what was written: its length and digest could tell a short
// secret.
type Stream struct {
	Bytes     int64  `json:"bytes"`          // all that was written
	SHA256    string `json:"sha256"`         // of all that was written, lower-case hex
	Head      []byte `json:"head"`           // the first bytes
	Tail      []byte `json:"tail"`           // the last bytes, none of them also in Head
	Truncated bool   `json:"truncated"`      // bytes between Head and Tail are not here
	File      string `json:"file,omitempty"` // file that holds the stream, up to its cap
	FileBytes int64  `json:"file_bytes,omitempty"`
	// Redacted counts what was replaced by markers, or withheld with the rest.
	Redacted []Redaction `json:"redacted,omitempty"`
	// Withheld says why nothing of it is here: then there is no digest, head, tail or file.
	Withheld string `json:"withheld,omitempty"`
}

// An Output is one declared file that was asked to be brought out.
type Output struct {
	Path    string `json:"path"` // in the workspace, or the pattern when nothing matched
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256,omitempty"`
	File    string `json:"file,omitempty"`    // where it was copied to, relative to the outputs folder
	Refused string `json:"refused,omitempty"` // why it was not copied, or was withheld
	// Redacted counts what was replaced by markers, or withheld with the rest. Bytes and
	// SHA256 are of what is left.
	Redacted []Redaction `json:"redacted,omitempty"`
}

// Changes are the workspace's files that a command added, changed or removed.
type Changes struct {
	Files []Change `json:"files"`
	// Omitted counts further changes that are not listed.
	Omitted int `json:"omitted"`
}

// A Change is one path in the workspace.
type Change struct {
	Path  string `json:"path"` // relative to the workspace; untrusted bytes
	Kind  string `json:"kind"` // "added", "changed" or "removed"
	Type  string `json:"type"` // "file", "dir", "symlink" or "other"
	Bytes int64  `json:"bytes"`
}

// A Record is the whole story of one Proposal.
type Record struct {
	Proposal Proposal `json:"proposal"`
	Analysis Analysis `json:"analysis"`
	Decision Decision `json:"decision"`
	Result   *Result  `json:"result"` // nil when nothing was started
	// Entry is the number of the audit log's entry that holds the decision; -1 when
	// there is no log (check).
	Entry int64 `json:"entry"`
	// Approval is set when policy asked and a person has approved.
	Approval *Approval `json:"approval,omitempty"`
	// Redacted counts what was replaced by markers in Proposal, Analysis and Decision. The
	// decision was made about what stood there, and what stood there ran.
	Redacted []Redaction `json:"redacted,omitempty"`
}

// Runnable reports whether r may run: policy allows it, or asked and got its answer.
func (r Record) Runnable() bool {
	return r.Decision.Effect == Allow || r.Decision.Effect == Ask && r.Approval != nil
}

// ReportSchema is the value of a report's "schema" field.
const ReportSchema = "fumehood.report/v1"

// A Report is one run: the single source for every voice.
type Report struct {
	Schema  string   `json:"schema"`
	Run     Run      `json:"run"`
	Records []Record `json:"records"`
	Totals  Totals   `json:"totals"`
	Audit   *Audit   `json:"audit,omitempty"`
	// Error is set when the run had to stop: the stable code and the message.
	Error *Failure `json:"error,omitempty"`
	// Withheld is why policy does not let the comment show what commands printed.
	Withheld *Reason `json:"withheld,omitempty"`
}

// A Run says under what a run was made.
type Run struct {
	ID         string    `json:"id"`
	Proposer   string    `json:"proposer"`
	PlanDigest string    `json:"plan_digest"`
	Workspace  string    `json:"workspace"` // name only
	HeadSHA    string    `json:"head_sha,omitempty"`
	BaseSHA    string    `json:"base_sha,omitempty"`
	PR         int       `json:"pr,omitempty"`
	Repository string    `json:"repository,omitempty"`        // owner/name that the pull request is made to
	Fork       string    `json:"fork,omitempty"`              // owner/name that its code comes from, when another
	Cwd        string    `json:"working_directory,omitempty"` // that proposals' own folders are relative to
	Mode       string    `json:"mode,omitempty"`              // "enforce", or "observe": only the built-in policy refuses
	Approval   *Approval `json:"approval,omitempty"`
	// Left names what of the commit is not in the workspace: submodules, large files,
	// refused names. Untrusted text.
	Left   []string `json:"left,omitempty"`
	Policy string   `json:"policy_digest"`
	// Policies says where each layer of the policy came from, those that may do most
	// first, the shipped one included.
	Policies   []PolicyOrigin `json:"policies,omitempty"`
	Rootfs     string         `json:"rootfs"` // kind and digest
	Runsc      string         `json:"runsc_version"`
	Version    string         `json:"fumehood_version"`
	Enforced   []string       `json:"enforced"`     // what held, in words
	Unenforced []string       `json:"not_enforced"` // what could not hold, in words; the comment shows it
	Start      time.Time      `json:"start"`
	WallMS     int64          `json:"wall_ms"`
}

// Totals count Records.
type Totals struct {
	Proposed  int `json:"proposed"`
	Allowed   int `json:"allowed"` // approved ones included
	Denied    int `json:"denied"`
	Asked     int `json:"asked"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"` // ran and did not succeed, or was allowed and did not run
}

// Total counts records.
func Total(records []Record) Totals {
	t := Totals{Proposed: len(records)}
	for _, r := range records {
		switch {
		case r.Runnable():
			t.Allowed++
			if r.Result != nil && r.Result.Succeeded() {
				t.Succeeded++
			} else {
				t.Failed++
			}
		case r.Decision.Effect == Ask:
			t.Asked++
		default:
			t.Denied++
		}
	}
	return t
}

// Audit points into the audit log that holds the run.
type Audit struct {
	Origin     string `json:"origin"`
	Key        string `json:"key"` // verifier key, as sumdb/note writes it
	Entries    int64  `json:"entries"`
	Checkpoint string `json:"checkpoint"` // the signed note
	File       string `json:"file"`
}

// A Failure is a run that stopped because fumehood could not do its work.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// A Problem is one thing wrong with a plan, and where.
type Problem struct {
	Path    string `json:"path"` // proposals[2].timeout
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Message string `json:"message"`
}
