// SPDX-License-Identifier: Apache-2.0

package proposal

// An Attempt is the first run of a command in which a runtime crashed, so that the
// command was run a second time. It has no Limit and no Findings, and policy
// refused nothing in it: with any of them there is no second run.
type Attempt struct {
	Program  string `json:"program"` // the one that crashed, by its name in Observations.Programs
	Crash    string `json:"crash"`   // the signal that ended it: "SIGSEGV"
	Status   Status `json:"status"`  // Exited or Signaled
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	WallMS   int64  `json:"wall_ms"`
	CPUMS    int64  `json:"cpu_ms"`
	PeakMem  Bytes  `json:"peak_memory_bytes"`
	// Stdout and Stderr contain at most the last 4 KiB; their files
	// contain more.
	Stdout       Stream        `json:"stdout"`
	Stderr       Stream        `json:"stderr"`
	Outputs      []Output      `json:"outputs"`
	Changes      Changes       `json:"changes"`
	NewSandbox   bool          `json:"new_sandbox"`
	Observations *Observations `json:"observations"`
	Usage        *Usage        `json:"usage,omitempty"`
	Leftover     int           `json:"leftover"`
}

// Result returns a as the result that it would have been without a second run.
func (a Attempt) Result() Result {
	return Result{
		Status: a.Status, ExitCode: a.ExitCode, Signal: a.Signal, WallMS: a.WallMS, CPUMS: a.CPUMS, PeakMem: a.PeakMem,
		Stdout: a.Stdout, Stderr: a.Stderr, Outputs: a.Outputs, Changes: a.Changes, NewSandbox: a.NewSandbox,
		Observations: a.Observations, Usage: a.Usage, Leftover: a.Leftover,
	}
}
