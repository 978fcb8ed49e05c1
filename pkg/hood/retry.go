// SPDX-License-Identifier: Apache-2.0

package hood

import (
	"slices"

	"github.com/fumehood/fumehood/pkg/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// runtimeCrashes are the signals by which language runtimes die under gVisor where
// they live under Linux. V8 ends itself by the last.
var runtimeCrashes = []string{"SIGSEGV", "SIGABRT", "SIGILL", "SIGBUS", "SIGTRAP"}

// crashedRuntime returns the program whose crash lets a command that failed be run
// once more, if there is one: a program of the root file system, not one that the
// pull request brought or built, because that crashes by its own bug and would again.
//
// There is none where a limit ended the command, where the record has gaps, and where
// policy refused or found anything: what was stopped once gets no second try.
//
// Whether a program died of a bug in gVisor, of its own, or because it or another
// process of the command sent it the signal, cannot be told apart: the kernel reports
// the same wait status for all of them. So a command can have itself run once more by
// crashing a shell; it gets nothing by it but the rest of its run's time, and the
// report says that it was.
func crashedRuntime(r proposal.Result) (proposal.Program, bool) {
	o := r.Observations
	ended := r.Status == proposal.Exited || r.Status == proposal.Signaled
	if !ended || r.Succeeded() || r.Limit != "" || o == nil || !o.Complete || o.Counts.Refused+o.Counts.NetRefused > 0 || len(o.Findings) > 0 {
		return proposal.Program{}, false
	}
	for _, p := range o.Programs {
		if p.Crashed > 0 && p.Layer == proposal.LayerRootfs && slices.Contains(runtimeCrashes, p.Signal) {
			return p, true
		}
	}
	return proposal.Program{}, false
}

// announce writes the first run's outcome, and that there will be a second.
func (h *Hood) announce(r proposal.Record, first proposal.Attempt) error {
	if _, err := h.p.Log.Append("attempt", journal.NewAttempt(r, first)); err != nil {
		return err
	}
	_, err := h.p.Log.Append("start", journal.NewStart(r, true))
	return err
}

// attempt is what is kept of a run in which p crashed.
func attempt(r proposal.Result, p proposal.Program) proposal.Attempt {
	return proposal.Attempt{
		Program: p.Name, Crash: p.Signal,
		Status: r.Status, ExitCode: r.ExitCode, Signal: r.Signal, WallMS: r.WallMS, CPUMS: r.CPUMS, PeakMem: r.PeakMem,
		Stdout: lastOf(r.Stdout), Stderr: lastOf(r.Stderr), Outputs: r.Outputs, Changes: r.Changes, NewSandbox: r.NewSandbox,
		Observations: r.Observations, Usage: r.Usage, Leftover: r.Leftover,
	}
}

// lastOf keeps the last bytes of a stream: what a runtime says of its crash.
func lastOf(s proposal.Stream) proposal.Stream {
	kept := s.Tail
	if !s.Truncated {
		kept = slices.Concat(s.Head, s.Tail)
	}
	s.Head, s.Tail = []byte{}, kept[max(0, len(kept)-proposal.AttemptTail):]
	s.Truncated = s.Bytes > int64(len(s.Tail))
	return s
}
