// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The streams of a Chunk.
const (
	ChunkStdout  = "stdout"
	ChunkStderr  = "stderr"
	ChunkDisplay = "display"
)

// A Chunk is a part of what a running command prints or a cell shows.
type Chunk struct {
	Stream string // a Chunk constant
	Data   []byte // of stdout or stderr: any part of it, not only whole lines
	// Display is what a cell showed, for ChunkDisplay.
	Display *Display
	// Dropped is how many bytes, or displays, of the stream came before this chunk and were
	// not passed on, because the receiver was too slow. The command's Result has them.
	Dropped int64
	// Withheld is why nothing of the stream is passed on from here: the rule and its message.
	Withheld string
}

// A Display is something that a cell showed, or the value of its last expression, in
// several forms.
type Display struct {
	Value bool              `json:"value"` // of the last expression
	Forms map[string]string `json:"forms"` // by MIME type: text, or base64 of bytes
	// Omitted are the sizes of forms that were too large.
	Omitted map[string]int64 `json:"omitted,omitempty"`
}

// Digests returns displays with "sha256:" and the lower-case hex SHA-256 in place of each form.
func Digests(displays []Display) []Display {
	short := slices.Clone(displays)
	for i, d := range short {
		short[i].Forms = map[string]string{}
		for mime, form := range d.Forms {
			short[i].Forms[mime] = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(form)))
		}
	}
	return short
}

// An Exception is how a cell failed, in its language's own words.
type Exception struct {
	Name      string `json:"name"` // "ZeroDivisionError"
	Value     string `json:"value"`
	Traceback string `json:"traceback"`
}

// A Status is what ended a command. The zero Status means that the outcome is unknown.
type Status int

// The statuses. All except for SandboxFailed and NotRun are facts about the command;
// those two mean that nothing is known about it.
const (
	SandboxFailed Status = iota // the outcome is unknown
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

// MarshalText encodes the status in words.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText accepts only what MarshalText writes.
func (s *Status) UnmarshalText(text []byte) error {
	for i, name := range statusNames {
		if name == string(text) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("invalid status %q", text)
}

// A Result is the outcome of a command.
type Result struct {
	Status   Status `json:"status"`
	ExitCode int    `json:"exit_code"`        // if Exited; also the exit code if a limit was reached, else -1
	Signal   string `json:"signal,omitempty"` // "SIGSEGV", if Signaled
	Limit    string `json:"limit,omitempty"`  // the limit reached, with its value: "wall 2m0s"
	Detail   string `json:"detail,omitempty"` // what failed, for SandboxFailed and NotRun
	// Killed is who ended the command, if it was not the command itself, a signal or its own
	// limit: a Killed constant.
	Killed  string `json:"killed,omitempty"`
	WallMS  int64  `json:"wall_ms"`
	CPUMS   int64  `json:"cpu_ms"`            // of the whole sandbox while the command ran
	PeakMem Bytes  `json:"peak_memory_bytes"` // of the whole sandbox while the command ran
	Stdout  Stream `json:"stdout"`
	Stderr  Stream `json:"stderr"`
	// TestResults is what the files that the command's test runners wrote, as JUnit XML or TAP, say
	// of the tests that failed: see package failure. It is empty if the command succeeded. It adds
	// names, messages and places, and never decides whether a command failed.
	TestResults Stream `json:"test_results,omitzero"`
	// Failures are what the output and TestResults report as the cause, if the command failed: see package
	// failure. They are computed when a document is written, and ignored when it is read.
	Failures Diagnostics `json:"failures,omitempty"`
	Outputs  []Output    `json:"outputs"`
	Changes  Changes     `json:"changes"`
	// NewSandbox reports that the sandbox was started for this command and contains
	// nothing of earlier ones: for the first command, a fresh one, or one after a
	// sandbox that had to be killed.
	NewSandbox bool `json:"new_sandbox"`
	// Observations are what the kernel saw the command do; nil if nothing was watched.
	Observations *Observations `json:"observations,omitempty"`
	// Usage is the command's resource usage, each figure with its source; nil if it was
	// not measured.
	Usage *Usage `json:"usage,omitempty"`
	// Leftover counts processes that the command left behind and that were killed.
	Leftover int `json:"leftover"`
	// Displays are what a cell showed, in order. DisplaysOmitted counts those beyond the
	// limit.
	Displays        []Display `json:"displays,omitempty"`
	DisplaysOmitted int       `json:"displays_omitted,omitempty"`
	// Exception is why a cell failed; its ExitCode is then 1.
	Exception *Exception `json:"exception,omitempty"`
	// Layer is what the commands of set-up left, if it was kept: either this command did not run
	// because an earlier run's layer has its effects, or it was the last of set-up and Layer.Kept
	// is true. nil for all other commands.
	Layer *Layer `json:"layer,omitempty"`
	// Retried is the first run, if a runtime crashed in it. Everything else is then
	// from the second run, and there is no third.
	Retried *Attempt `json:"retried,omitempty"`
	// CacheKey is the digest of the inputs that a kept result is found by; "" if no result may
	// be kept or used.
	CacheKey string `json:"cache_key,omitempty"`
	// Cached is the earlier run that the result is from, in which case the command did not run
	// in this one. Everything else is that run's, except for Observations and Usage, which are
	// nil, and files.
	Cached *Cached `json:"cached,omitempty"`
}

// Cached is the origin of a result that was kept. The proof binds it to the log of its run.
type Cached struct {
	Run   string `json:"run"`     // id
	Log   string `json:"log"`     // origin of the run's audit log
	Key   string `json:"log_key"` // verifier key of that log
	Entry int64  `json:"entry"`   // number of the result's entry in that log
	// Proof is a C2SP tlog-proof that the entry is in that log.
	Proof string `json:"proof"`
}

// RunID returns the id of the run that a result is from, "" for nil.
func (c *Cached) RunID() string {
	if c == nil {
		return ""
	}
	return c.Run
}

// A Layer is what the commands of set-up left, kept from run to run.
type Layer struct {
	Key    string    `json:"key"`    // "sha256:…" of everything that decides what set-up leaves
	Digest string    `json:"digest"` // "sha256:…" of the image
	Run    string    `json:"run"`    // the id of the run that made it
	Made   time.Time `json:"made"`
	// Kept means that this run made it. New sandboxes of the run may begin with it.
	Kept bool `json:"kept,omitempty"`
	// Private means that it ends with the run that made it, or with that run's review.
	Private bool `json:"private,omitempty"`
}

// Kind returns "layer" or "private layer".
func (l Layer) Kind() string {
	if l.Private {
		return "private layer"
	}
	return "layer"
}

// FromLayer reports whether the command did not run because a layer has its effects.
func (r Result) FromLayer() bool { return r.Layer != nil && !r.Layer.Kept }

// Who ended a command: see Result.Killed.
const (
	KilledInterrupted = "interrupted" // the run, or the call that waited for the command
	KilledCaller      = "caller"      // the caller of the session
	KilledIdle        = "idle"        // the session, which was idle for too long
	KilledClosed      = "closed"      // the session, which was closed
	KilledBudget      = "budget"      // the time for all commands together; the Status is TimedOut
	KilledConnect     = "connect"     // the command's own shell connected to the network
	KilledRegistry    = "registry"    // fumehood: no registry answered that the command may use
	KilledSandbox     = "sandbox"     // the sandbox, which had to be ended because of another command
	KilledRun         = "run"         // the run or session, which had to stop: its error says why
)

// details are what a Result's Detail says about who killed the command.
var details = map[string]string{
	KilledInterrupted: "the run was interrupted", KilledCaller: "killed by the session's caller",
	KilledIdle:   "the session was idle for too long",
	KilledClosed: "the session was closed", KilledSandbox: "its sandbox was ended because of another command",
	KilledRegistry: "no registry that it may use answered",
	KilledRun:      "the run stopped",
}

// KilledDetail returns what Detail says about r.Killed.
func (r Result) KilledDetail() string { return details[r.Killed] }

// Ended says what ended the command, with one stable name: "exit", "signal", "time",
// "memory", "processes", "disk", "output", "events", "not-run", "unknown" if fumehood or the
// sandbox failed, or who killed it: a Killed constant.
func (r Result) Ended() string {
	switch {
	case r.Killed != "":
		return r.Killed
	case r.Status == OutputLimit && strings.HasPrefix(r.Limit, "events "):
		return "events"
	}
	name := map[Status]string{Exited: "exit", Signaled: "signal", TimedOut: "time", OutOfMemory: "memory",
		ProcessLimit: "processes", DiskLimit: "disk", OutputLimit: "output", NotRun: "not-run"}[r.Status]
	return cmp.Or(name, "unknown")
}

// Succeeded reports whether the command exited with 0 within its limits.
func (r Result) Succeeded() bool { return r.Status == Exited && r.ExitCode == 0 }

// Outcome says in a few words how the command ended: "exit code 1", "SIGSEGV", or the
// status.
func (r Result) Outcome() string {
	switch {
	case r.FromLayer():
		return fmt.Sprintf("from %s %.19s of run %s", r.Layer.Kind(), r.Layer.Digest, r.Layer.Run)
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
	PeakMemory Figure `json:"peak_memory_bytes"` // over what the sandbox held before, such as files in /tmp
	Processes  Figure `json:"processes"`         // that ended; none remains at the end
	Written    Figure `json:"written_bytes"`
}

// A Figure is a measured number.
type Figure struct {
	Value int64 `json:"value"`
	// Source is who measured it: "clock", our own; "cgroup", the host's kernel, of the whole
	// sandbox while the command ran; "sandbox", gVisor's kernel; or "" if it is not known.
	Source string `json:"source"`
}

// A Stream is what a command wrote to stdout or stderr. All bytes are untrusted.
//
// If something was Redacted, all other fields describe what is left, including its markers,
// and not what was written: the original's length and digest could reveal a short secret.
type Stream struct {
	Bytes     int64  `json:"bytes"`          // number of bytes written
	SHA256    string `json:"sha256"`         // of everything written, lower-case hex
	Head      []byte `json:"head"`           // the first bytes
	Tail      []byte `json:"tail"`           // the last bytes, none of them also in Head
	Truncated bool   `json:"truncated"`      // bytes between Head and Tail are omitted
	File      string `json:"file,omitempty"` // file that contains the stream, up to its limit
	FileBytes int64  `json:"file_bytes,omitempty"`
	// Redacted counts what was replaced by markers, or withheld with the rest.
	Redacted []Redaction `json:"redacted,omitempty"`
	// Withheld is why the stream is omitted: there is then no digest, head, tail or file.
	Withheld string `json:"withheld,omitempty"`
	// Text is Head and Tail as text, for readers of the JSON document: set if they are all
	// that was written, and valid UTF-8. Long reports omit it.
	Text Copy `json:"text,omitempty"`
}

// A Copy repeats other fields in a more readable form. Decoding ignores its value, so a
// document cannot contradict itself.
type Copy string

// UnmarshalJSON accepts a string and leaves c unchanged.
func (c *Copy) UnmarshalJSON(data []byte) error {
	var s string
	return json.Unmarshal(data, &s)
}

// An Output is one declared file to export.
type Output struct {
	Path    string `json:"path"` // in the workspace, or the pattern if nothing matched
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256,omitempty"`
	File    string `json:"file,omitempty"`    // its copy, relative to the outputs directory
	Refused string `json:"refused,omitempty"` // why it was not copied, or was withheld
	// Redacted counts what was replaced by markers, or withheld with the rest. Bytes
	// and SHA256 describe what is left.
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

// A Record is everything about one Proposal.
type Record struct {
	Proposal Proposal `json:"proposal"`
	Analysis Analysis `json:"analysis"`
	Decision Decision `json:"decision"`
	Result   *Result  `json:"result"` // nil if nothing was started
	// Entry is the number of the audit log entry with the decision; -1 if there is no
	// log (check).
	Entry int64 `json:"entry"`
	// Approval is set if policy asked and a person has approved.
	Approval *Approval `json:"approval,omitempty"`
	// ClientApproval is set if policy asked and the program that uses the session has
	// approved, which does not prove that a person did.
	ClientApproval *ClientApproval `json:"client_approval,omitempty"`
	// Cause is why the command could not run, if that is not the pull request's fault:
	// see package diagnose.
	Cause *Cause `json:"cause,omitempty"`
	// Base is what the base of the pull request shows about a command that failed; nil if it
	// was not asked: see package baseline.
	Base *Comparison `json:"base,omitempty"`
	// Background says that the command was proposed to run beside others, in a session.
	Background bool `json:"background,omitempty"`
	// Redacted counts what was replaced by markers in Proposal, Analysis and Decision.
	// The original text was decided, and it ran.
	Redacted []Redaction `json:"redacted,omitempty"`
}

// Runnable reports whether r may run: policy allows it, or asked and it was approved.
func (r Record) Runnable() bool {
	return r.Decision.Effect == Allow || r.Decision.Effect == Ask && r.Approved()
}

// Approved reports whether a person or the session's client has approved r.
func (r Record) Approved() bool { return r.Approval != nil || r.ClientApproval != nil }

// ReportSchema is the value of a report's "schema" field.
const ReportSchema = "fumehood.report/v1"

// A Report describes one run: the single source for every output format.
type Report struct {
	Schema  string   `json:"schema"`
	Run     Run      `json:"run"`
	Records []Record `json:"records"`
	Totals  Totals   `json:"totals"`
	Audit   *Audit   `json:"audit,omitempty"`
	// Error is set if the run had to stop: the stable code and the message.
	Error *Failure `json:"error,omitempty"`
	// Withheld is why policy does not allow the comment to show what commands printed.
	Withheld *Reason `json:"withheld,omitempty"`
	// Hosts are the destinations of Records, for readers of the JSON document.
	Hosts *Hosts `json:"hosts,omitempty"`
	// Transfers are the files that the caller of a session moved into and out of the workspace.
	Transfers []Transfer `json:"transfers,omitempty"`
	// Differences are how the commands of a plan left the workspace, nil if they changed no
	// file, or the run stopped. A session's report has none: see Transfers.
	Differences *Differences `json:"differences,omitempty"`
	// Base is what ran on the base of the pull request; nil if nothing had to.
	Base *BaseRun `json:"base,omitempty"`
}

// A Transfer is a file that went in or out between two commands of a session, or a list
// of names or a Diff that went out; or the session was paused, resumed or saved.
type Transfer struct {
	// Kind is "put", "take", "list", "diff", "pause", "resume" or "snapshot".
	Kind  string `json:"kind"`
	After int    `json:"after"` // number of earlier proposals
	// Output is the file. For a list, its Path is the pattern, and for a snapshot its name.
	// For a Diff it is Diff.Patch,
	// whose Path are the paths that were asked for. For a file that was put,
	// SHA256 is empty if it looks as if it contains a secret, or has more than 1 MiB.
	Output Output `json:"output"`
	Names  int    `json:"names,omitempty"` // number of names in a list, or of files in a Diff
}

// A Run describes the conditions of a run.
type Run struct {
	ID         string `json:"id"`
	Proposer   string `json:"proposer"`
	PlanDigest string `json:"plan_digest"`
	Workspace  string `json:"workspace"` // name only
	HeadSHA    string `json:"head_sha,omitempty"`
	BaseSHA    string `json:"base_sha,omitempty"`
	PR         int    `json:"pr,omitempty"`
	Repository string `json:"repository,omitempty"`        // owner/name of the pull request's target
	Fork       string `json:"fork,omitempty"`              // owner/name of the code's repository, if different
	Cwd        string `json:"working_directory,omitempty"` // to which proposals' own directories are relative
	Mode       string `json:"mode,omitempty"`              // "enforce", or "observe": only the built-in policy refuses
	// NetworkObserved means that commands could connect to any public address: what policy says
	// of the network was recorded and not enforced.
	NetworkObserved bool `json:"network_observed,omitempty"`
	Session         bool `json:"session,omitempty"` // each proposal was decided after earlier ones had run
	// From is the snapshot that a session began with; nil if it began with nothing.
	From     *SnapshotOrigin `json:"from,omitempty"`
	Approval *Approval       `json:"approval,omitempty"`
	// Context is input.context of policy's rules; nil if it is not recorded, as by earlier versions.
	Context *Context `json:"context,omitempty"`
	// Left names the parts of the commit that are not in the workspace: submodules,
	// large files, refused names. Untrusted text.
	Left   []string `json:"left,omitempty"`
	Policy string   `json:"policy_digest"`
	// Policies lists the origin of each layer of the policy, the most powerful first,
	// including the shipped one.
	Policies []PolicyOrigin `json:"policies,omitempty"`
	Rootfs   string         `json:"rootfs"` // kind and digest
	Runsc    string         `json:"runsc_version"`
	Version  string         `json:"fumehood_version"`
	// Toolchains are the compilers and interpreters in PATH inside.
	Toolchains []Toolchain `json:"toolchains,omitempty"`
	// Unmet are the toolchains that are older than the repository asks for, or absent.
	Unmet []Unmet `json:"unmet_toolchains,omitempty"`
	// GoModules are the Go modules of the workspace, at most 100.
	GoModules  []GoModule `json:"go_modules,omitempty"`
	Enforced   []string   `json:"enforced"`     // what was enforced, in words
	Unenforced []string   `json:"not_enforced"` // what was not enforced, in words; the comment shows it
	Start      time.Time  `json:"start"`
	WallMS     int64      `json:"wall_ms"`
}

// A SnapshotOrigin says where a session's sandbox comes from: another session's, as its log says.
type SnapshotOrigin struct {
	Run      string `json:"run"`      // of the other session
	Snapshot string `json:"snapshot"` // name of the snapshot
	// Checkpoint is that of the other session's log after the entry about the snapshot: what had run in the sandbox
	// is before it.
	Checkpoint string `json:"checkpoint"`
}

// NetworkMode returns "observe" if nothing about the network was enforced, or "".
func (r Run) NetworkMode() string {
	if r.NetworkObserved {
		return "observe"
	}
	return ""
}

// A Toolchain is a compiler or interpreter that commands find in PATH.
type Toolchain struct {
	Name    string `json:"name"`              // "python3"
	Version string `json:"version,omitempty"` // "" if it is not known
	Path    string `json:"path"`              // inside
}

// Totals count Records by their Outcome, each once: Proposed is Allowed, Denied and Asked
// together, and Allowed is Succeeded, Failed, CouldNotRun, FailedBefore and NotRun.
type Totals struct {
	Proposed  int `json:"proposed"`
	Allowed   int `json:"allowed"` // including approved ones
	Denied    int `json:"denied"`
	Asked     int `json:"asked"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"` // including cancelled ones
	// CouldNotRun counts those that could not run for a reason that is not the pull request's.
	CouldNotRun int `json:"could_not_run,omitempty"`
	// FailedBefore counts those that fail on the base of the pull request in the same way.
	FailedBefore int `json:"failed_before,omitempty"`
	NotRun       int `json:"not_run,omitempty"` // allowed and not started
	// AsExpected counts those of Succeeded that failed, as their proposals say.
	AsExpected int `json:"as_expected,omitempty"`
	// Cached counts those of Succeeded that did not run: see Result.Cached.
	Cached int `json:"cached,omitempty"`
}

// Add returns the sums of t and other.
func (t Totals) Add(other Totals) Totals {
	return Totals{
		Proposed: t.Proposed + other.Proposed, Allowed: t.Allowed + other.Allowed, Denied: t.Denied + other.Denied,
		Asked:     t.Asked + other.Asked,
		Succeeded: t.Succeeded + other.Succeeded, Failed: t.Failed + other.Failed,
		CouldNotRun:  t.CouldNotRun + other.CouldNotRun,
		FailedBefore: t.FailedBefore + other.FailedBefore, NotRun: t.NotRun + other.NotRun,
		AsExpected: t.AsExpected + other.AsExpected, Cached: t.Cached + other.Cached,
	}
}

// Neutral counts the commands that did not succeed for a reason that is not the pull request's.
func (t Totals) Neutral() int { return t.CouldNotRun + t.FailedBefore }

// Unsuccessful counts the allowed commands that did not succeed for any other reason.
func (t Totals) Unsuccessful() int { return t.Failed + t.NotRun }

// Others counts in words, each after a comma, the allowed commands that neither succeeded nor
// failed: ", 1 could not run, 2 failed before", or "".
func (t Totals) Others() string {
	s := ""
	for _, other := range []struct {
		n       int
		outcome Outcome
	}{{t.CouldNotRun, OutcomeCouldNotRun}, {t.FailedBefore, OutcomeFailedBefore}, {t.NotRun, OutcomeNotRun}} {
		if other.n > 0 {
			s += fmt.Sprintf(", %d %s", other.n, other.outcome)
		}
	}
	return s
}

// Total counts records.
func Total(records []Record) Totals {
	t := Totals{Proposed: len(records)}
	for _, r := range records {
		outcome := r.Outcome()
		if r.Runnable() {
			t.Allowed++
		}
		switch outcome {
		case OutcomeDenied:
			t.Denied++
		case OutcomeAsked:
			t.Asked++
		case OutcomeCouldNotRun:
			t.CouldNotRun++
		case OutcomeFailedBefore:
			t.FailedBefore++
		case OutcomeNotRun:
			t.NotRun++
		case OutcomeSucceeded:
			t.Succeeded++
			if r.Result.Cached != nil {
				t.Cached++
			}
			if !r.Result.Succeeded() {
				t.AsExpected++
			}
		default:
			t.Failed++
		}
	}
	return t
}

// Audit refers to the audit log of the run.
type Audit struct {
	Origin     string `json:"origin"`
	Key        string `json:"key"` // verifier key, as sumdb/note writes it
	Entries    int64  `json:"entries"`
	Checkpoint string `json:"checkpoint"` // the signed note
	File       string `json:"file"`
}

// A Failure describes a run that stopped because fumehood could not do its work.
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

// String returns p as "proposals[2].timeout (line 7, column 5): …".
func (p Problem) String() string {
	return fmt.Sprintf("%s (line %d, column %d): %s", p.Path, p.Line, p.Col, p.Message)
}
