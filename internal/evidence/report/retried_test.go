// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const fatal = "#\n# Fatal error in , line 0\n# Check failed: 12 == (*__errno_location ()).\n"

// fallen returns a first run in which node crashed.
func fallen(id string) *proposal.Attempt {
	const rootfs = proposal.LayerRootfs
	stderr := stream(fatal)
	stderr.Head, stderr.Tail, stderr.File, stderr.FileBytes = []byte{}, stderr.Head, "/artifacts/"+id+".stderr", stderr.Bytes
	stdout := stream("")
	stdout.Head = []byte{}
	return &proposal.Attempt{
		Program: "node", Crash: "SIGSEGV", Status: proposal.Exited, ExitCode: 139, WallMS: 312, CPUMS: 200, PeakMem: 90 * proposal.MiB,
		Stdout: stdout, Stderr: stderr, Outputs: []proposal.Output{}, Usage: measured(),
		Changes: proposal.Changes{Files: []proposal.Change{{Path: "coverage/tmp.json", Kind: "added", Type: "file", Bytes: 12}}},
		Observations: &proposal.Observations{
			Programs: []proposal.Program{
				{Parent: -1, Path: "/usr/bin/bash", Name: "bash", Layer: rootfs, Runs: 1},
				{Parent: 0, Path: "/usr/bin/node", Name: "node", Layer: rootfs, Runs: 1, Crashed: 1, Signal: "SIGSEGV"},
			},
			Execs: []proposal.Event{}, Notable: []proposal.Event{}, Findings: []proposal.Finding{}, Network: []proposal.Reach{},
			Counts: proposal.Counts{Execs: 2, Predicted: 2, Exits: 2}, Complete: true,
		},
	}
}

// retriedRun has two commands that were run again: one succeeds, one crashes again
// in a new sandbox.
func retriedRun() proposal.Report {
	web := calling(ran("web", "node --test", proposal.Exited, 0, "# pass 12\n", ""), "node")
	well := *fallen("web").Observations
	well.Programs = slices.Clone(well.Programs)
	well.Programs[1].Crashed, well.Programs[1].Signal = 0, ""
	web.Result.Observations, web.Result.Usage, web.Result.Retried = &well, measured(), fallen("web")

	lint := calling(ran("lint", "node lint.js", proposal.Signaled, -1, "", ""), "node")
	lint.Result.Signal, lint.Result.NewSandbox, lint.Result.Retried = "SIGSEGV", true, fallen("lint")
	lint.Result.Retried.Outputs = []proposal.Output{{Path: "out/*.txt", Refused: "no such file"}}
	lint.Result.Observations = fallen("lint").Observations
	return finish(proposal.Report{Records: []proposal.Record{web, lint}})
}

// A success in the second run does not look like one in the first.
func TestRetriedAtTheTop(t *testing.T) {
	r := retriedRun()
	r.Records = r.Records[:1]
	r.Totals = proposal.Total(r.Records)
	top, _, _ := strings.Cut(Markdown(r), "</table>")
	for _, want := range []string{
		"<code>web</code> was rerun because <code>node</code> crashed under gVisor with <code>SIGSEGV</code>",
		"💥 crashed under gVisor (<code>node</code>, SIGSEGV), rerun",
	} {
		if !strings.Contains(top, want) {
			t.Errorf("the top does not say %q:\n%s", want, top)
		}
	}
	if c := (Page{Parts: []Part{{Report: r}}}).Check(); c.Conclusion != "neutral" || !strings.HasSuffix(c.Title, "(rerun after a crash)") {
		t.Errorf("check %s, %q", c.Conclusion, c.Title)
	}
}

// A program that ends itself with SIGABRT is not said to crash because of gVisor.
func TestRetriedAfterAbort(t *testing.T) {
	r := retriedRun()
	r.Records[0].Result.Retried.Crash = "SIGABRT"
	r.Records = r.Records[:1]
	for _, shown := range []string{Markdown(r), Text(r)} {
		if strings.Contains(shown, "under gVisor") || !strings.Contains(shown, "crashed (") {
			t.Errorf("it says\n%s", shown)
		}
	}
}

// TestReadRefusesRetried builds first runs that would not have been followed by a second.
func TestReadRefusesRetried(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*proposal.Attempt)
		want string
	}{
		{"a success", func(a *proposal.Attempt) { a.ExitCode = 0 }, "retried.status"},
		{"a limit met", func(a *proposal.Attempt) { a.Status = proposal.TimedOut }, "retried.status"},
		{"another program", func(a *proposal.Attempt) { a.Program = "bash" }, "retried.program"},
		{"another signal", func(a *proposal.Attempt) { a.Crash = "SIGABRT" }, "retried.program"},
		{"the pull request's program", func(a *proposal.Attempt) { a.Observations.Programs[1].Layer = proposal.LayerWorkspace }, "retried.program"},
		{"no record", func(a *proposal.Attempt) { a.Observations = nil }, "retried.observations"},
		{"a record with gaps", func(a *proposal.Attempt) { a.Observations.Complete = false }, "retried.observations"},
		{"something refused", func(a *proposal.Attempt) { a.Observations.Counts.Refused, a.Observations.Programs[0].Refused = 1, 1 }, "retried.observations"},
		{"something found", func(a *proposal.Attempt) {
			a.Observations.Findings = []proposal.Finding{{Rule: "event.x", Event: proposal.Event{Command: "web"}}}
		}, "retried.observations"},
		{"a signal without a crash", func(a *proposal.Attempt) { a.Observations.Programs[0].Signal = "SIGSEGV" }, "programs[0].signal"},
		{"no signal's name", func(a *proposal.Attempt) { a.Observations.Programs[1].Signal = "approved" }, "programs[1].signal"},
		{"too much of a stream", func(a *proposal.Attempt) { a.Stdout = stream(strings.Repeat("x", 5000)) }, "retried.stdout"},
		{"another text", func(a *proposal.Attempt) { a.Stderr.Tail = []byte("all well") }, "retried.stderr"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := retriedRun()
			tt.edit(r.Records[0].Result.Retried)
			checkRefused(t, string(document(t, r)), tt.want)
		})
	}
	r := retriedRun()
	r.Records[0].Result.Status, r.Records[0].Result.Observations = proposal.NotRun, nil
	r.Totals = proposal.Total(r.Records)
	checkRefused(t, string(document(t, r)), "retried")
}
