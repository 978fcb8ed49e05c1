// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// If the decider stops for longer than the kernel waits, which is a minute, no
// further program is ever started: every start is refused, and the run ends with
// the gate's code. TestDeciderStalls of pkg/sandbox waits for a second.
func TestE2EDeciderStalled(t *testing.T) {
	t.Parallel()
	r, from := stoppedEarly(t, "", syscall.SIGSTOP)
	wait(t, "the end of the kernel's patience", func() bool { return r.marks.has(refusedMark) })
	r.goOn(t)
	code, report := r.end(t)
	if n, all := between(r.marks.times(), from, time.Now()), len(r.marks.times()); n > 1 || all > starts*3/4 {
		t.Errorf("of %d programs %d began after the decider stood still", all, n)
	}
	if code != exitStopped || report.Error == nil || report.Error.Code != "gate.slow" {
		t.Errorf("exit %d, error %+v", code, report.Error)
	}
	first, after := report.Records[0].Result, report.Records[1].Result
	if first.Status != proposal.SandboxFailed || first.Observations == nil || first.Observations.Complete {
		t.Errorf("the command is %s, and what was recorded of it %+v", first.Status, first.Observations)
	}
	if out := string(first.Stdout.Head); strings.Count(out, "refused") < 3 || !strings.HasPrefix(out, "ran 000\n") {
		t.Errorf("it printed %q", out)
	}
	if after.Status != proposal.NotRun {
		t.Errorf("the next command is %s", after.Status)
	}
	times, kinds, summary := r.asked(t)
	if n := between(times, from, time.Now()); n > 1 || kinds["start"] != 1 || kinds["end"] != 1 || summary.State != audit.Sealed {
		t.Errorf("%d programs in the log after the decider stood still; entries %v; %s", n, kinds, summary.State)
	}
	checkNothingRuns(t, r.dir)
}

// A program that was allowed for this command by a cacheable decision needs no
// decider: it starts in the meantime, and is still in the log.
func TestE2EDeciderStoppedAfterItsAnswer(t *testing.T) {
	t.Parallel()
	r, from := stoppedEarly(t, "the-same", syscall.SIGSTOP)
	before := len(r.marks.times())
	wait(t, "programs that need no decider", func() bool { return len(r.marks.times()) > before+10 })
	until := r.goOn(t)
	code, report := r.end(t)
	r.wantAll(t, code, report)
	times, _, summary := r.asked(t)
	marks := r.marks.times()
	began := between(marks, from, until)
	if began == 0 || len(times) < starts || summary.State != audit.Sealed {
		t.Errorf("%d programs began meanwhile, the log has %d in all; %s", began, len(times), summary.State)
	}
	for i, mark := range marks { // a program opens its mark a while after the kernel has seen it start
		if seen := between(times, time.Time{}, mark.Add(50*time.Millisecond)); seen <= i {
			t.Fatalf("%d programs had left their mark when the log had %d", i+1, seen)
		}
	}
	t.Logf("%d programs began meanwhile", began)
	checkNothingRuns(t, r.dir)
}
