// SPDX-License-Identifier: Apache-2.0

package order

import (
	"slices"

	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// runtimeCrashes are the signals by which language runtimes crash under gVisor
// although they work under Linux. V8 terminates itself with the last one.
var runtimeCrashes = []string{"SIGSEGV", "SIGABRT", "SIGILL", "SIGBUS", "SIGTRAP"}

// crashedRuntime returns the program whose crash allows a failed command a second run,
// if any. It must be a program of the root file system, not one that the pull
// request brought or built, because that crashes from its own bug and would do so again.
//
// It returns no program if a limit ended the command, if the record has gaps, or if policy
// refused or found anything: a command that was stopped gets no second try.
//
// The cause of a crash cannot be determined: a bug in gVisor, the program's own bug,
// and a signal from the program or another process of the command all give the same
// wait status. So a command can get a second run by crashing a shell. It gains
// nothing except for the rest of its run's time, and the report shows the second run.
func crashedRuntime(r proposal.Result) (proposal.Program, bool) {
	o := r.Observations
	ended := r.Status == proposal.Exited || r.Status == proposal.Signaled
	if !ended || r.Succeeded() || r.Limit != "" || o == nil || !o.Complete ||
		o.Counts.Refused+o.Counts.NetRefused > 0 || len(o.Findings) > 0 {
		return proposal.Program{}, false
	}
	for _, p := range o.Programs {
		if p.Crashed > 0 && p.Layer == proposal.LayerRootfs && slices.Contains(runtimeCrashes, p.Signal) {
			return p, true
		}
	}
	return proposal.Program{}, false
}

// recordAttempt logs the first run's outcome, and that there will be a second.
func (s *Session) recordAttempt(r proposal.Record, first proposal.Attempt) error {
	if _, err := s.stages.Log.Append("attempt", journal.NewAttempt(r, first)); err != nil {
		return err
	}
	_, err := s.stages.Log.Append("start", journal.NewStart(r, true))
	return err
}

// attemptOf returns what is kept of a run in which p crashed.
func attemptOf(r proposal.Result, p proposal.Program) proposal.Attempt {
	return proposal.Attempt{
		Program: p.Name, Crash: p.Signal,
		Status: r.Status, ExitCode: r.ExitCode, Signal: r.Signal, WallMS: r.WallMS, CPUMS: r.CPUMS, PeakMem: r.PeakMem,
		Stdout: lastOf(r.Stdout), Stderr: lastOf(r.Stderr), Outputs: r.Outputs, Changes: r.Changes,
		NewSandbox:   r.NewSandbox,
		Observations: r.Observations, Usage: r.Usage, Leftover: r.Leftover,
	}
}

// lastOf keeps the last bytes of a stream: the runtime's message about its crash.
func lastOf(s proposal.Stream) proposal.Stream {
	kept := s.Tail
	if !s.Truncated {
		kept = slices.Concat(s.Head, s.Tail)
	}
	s.Head, s.Tail = []byte{}, kept[max(0, len(kept)-valid.AttemptTail):]
	s.Truncated = s.Bytes > int64(len(s.Tail))
	return s
}
