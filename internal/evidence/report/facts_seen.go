// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// checkObservations checks the observations of the command id.
func (p *reportChecker) checkObservations(o proposal.Observations, id, path string) {
	c := o.Counts
	p.checkCounts(path+".counts", int64(c.Execs), int64(c.Refused), int64(c.Watched), int64(c.Exits), int64(c.Writes),
		int64(c.Connects), int64(c.Attempts), int64(c.Dropped))
	p.checkCounts(path+".counts", int64(c.Predicted), int64(c.Decided), int64(c.Unforeseen))
	p.requireThat(!o.Complete || c.Dropped == 0, path+".complete", "is set although events were dropped")
	p.checkPrograms(o, path)
	p.checkNetwork(o, path)
	refused, loaded := 0, 0
	for i, e := range o.Execs {
		at := fmt.Sprintf("%s.execs[%d]", path, i)
		p.oneOf(e.Kind, at+".kind", proposal.EventExec, proposal.EventLoad, proposal.EventRefused)
		p.requireThat(e.Exec != nil, at+".exec", "is missing")
		p.checkEvent(e, id, at)
		if e.Kind == proposal.EventLoad {
			loaded++
		}
		if e.Kind == proposal.EventRefused {
			refused++
			p.requireThat(e.Decision == nil || e.Decision.Effect != proposal.Allow, at+".decision",
				"allows a program that was refused")
		}
	}
	p.requireThat(refused <= c.Refused && loaded <= c.Watched && len(o.Execs)-refused-loaded <= c.Execs, path+".execs",
		"has more entries than were counted")
	p.requireThat(c.Predicted+c.Decided <= c.Execs && c.Unforeseen <= c.Refused, path+".counts",
		"count more decisions than programs")
	for i, e := range o.Notable {
		at := fmt.Sprintf("%s.notable[%d]", path, i)
		p.oneOf(e.Kind, at+".kind", proposal.EventWrite, proposal.EventRename, proposal.EventRemove, proposal.EventLink,
			proposal.EventMode,
			proposal.EventConnect, proposal.EventListen, proposal.EventSend, proposal.EventPrivilege)
		p.requireThat(e.Times > 0, at+".times", "is zero")
		p.checkEvent(e, id, at)
	}
	for i, f := range o.Findings {
		at := fmt.Sprintf("%s.findings[%d]", path, i)
		p.requireThat(f.Rule != "", at+".rule", "is empty")
		p.checkEvent(f.Event, id, at+".event")
	}
}

// checkRetried checks that the first run of the command id is one that is retried.
func (p *reportChecker) checkRetried(a proposal.Attempt, id, path string) {
	p.checkResult(a.Result(), path)
	p.requireThat(a.Status == proposal.Exited && a.ExitCode != 0 || a.Status == proposal.Signaled, path+".status",
		"is not that of a run that is retried")
	p.requireThat(len(a.Stdout.Head)+len(a.Stderr.Head) == 0 &&
		max(len(a.Stdout.Tail), len(a.Stderr.Tail)) <= valid.AttemptTail, path+".stdout", "is longer than the maximum")
	if a.Usage != nil {
		p.checkUsage(*a.Usage, path+".usage")
	}
	o := a.Observations
	if o == nil {
		p.requireThat(false, path+".observations", "are missing")
		return
	}
	p.checkObservations(*o, id, path+".observations")
	p.requireThat(o.Complete && o.Counts.Refused+o.Counts.NetRefused == 0 && len(o.Findings) == 0, path+".observations",
		"are not those of a run that is retried")
	p.requireThat(slices.ContainsFunc(o.Programs, func(node proposal.Program) bool {
		return node.Crashed > 0 && node.Name == a.Program && node.Signal == a.Crash &&
			node.Layer == proposal.LayerRootfs
	}), path+".program", "is not one that crashed")
}

// checkPrograms checks that the programs form a tree and match the counts.
func (p *reportChecker) checkPrograms(o proposal.Observations, path string) {
	began, refused, watched, omitted := 0, 0, 0, 0
	for i, node := range o.Programs {
		at := fmt.Sprintf("%s.programs[%d]", path, i)
		p.requireThat(node.Parent >= -1 && node.Parent < i && (node.Parent >= 0 || i == 0), at+".parent",
			"is not the index of an earlier program")
		p.checkCounts(at, int64(node.Runs), int64(node.Refused), int64(node.Watched), int64(node.Failed),
			int64(node.ExitCode), int64(node.Crashed), int64(node.Omitted))
		p.requireThat(node.Watched <= node.Runs && max(node.Failed, node.Crashed) <= node.Runs+node.Omitted, at+".runs",
			"are fewer than their outcomes")
		p.matchGrammar(signalGrammar, node.Signal, at+".signal", true)
		p.requireThat((node.ExitCode > 0) == (node.Failed > 0) && node.ExitCode <= 255, at+".exit_code",
			"is not that of a failure")
		p.requireThat(node.Signal == "" || node.Crashed > 0, at+".signal", "is set although nothing crashed")
		p.oneOf(node.Layer, at+".layer", "", proposal.LayerRootfs, proposal.LayerWorkspace, proposal.LayerWritten,
			proposal.LayerMemory, proposal.LayerOther)
		began, refused, watched, omitted = began+node.Runs, refused+node.Refused, watched+node.Watched,
			omitted+node.Omitted
	}
	c := o.Counts
	p.requireThat(began+refused+omitted == c.Execs+c.Refused && began <= c.Execs && refused <= c.Refused &&
		watched <= c.Watched, path+".programs", "do not match the counts")
}

// checkNetwork checks the network events.
func (p *reportChecker) checkNetwork(o proposal.Observations, path string) {
	refused, watched, all := 0, 0, 0
	for i, r := range o.Network {
		at := fmt.Sprintf("%s.network[%d]", path, i)
		p.oneOf(r.Kind, at+".kind", proposal.EventLookup, proposal.EventConnection, proposal.EventRequest,
			proposal.EventDatagram)
		p.requireThat(r.Count > 0, at+".count", "is zero")
		p.requireThat(r.Port >= 0 && r.Port < 1<<16, at+".port", "is not a port")
		p.requireThat(!r.Refused || !r.Watched, at+".watched", "was both refused and allowed")
		p.requireThat(!r.Observed || p.observed && !r.Refused, at+".observed", "does not match the run")
		p.checkCounts(at, int64(r.Count), r.Sent, r.Received)
		all += r.Count
		if r.Refused {
			refused += r.Count
		}
		if r.Watched {
			watched += r.Count
		}
	}
	c := o.Counts
	p.checkCounts(path+".counts", int64(c.Lookups), int64(c.Connections), int64(c.Requests), int64(c.Datagrams),
		int64(c.NetRefused), int64(c.NetWatched))
	p.requireThat(refused <= c.NetRefused && watched <= c.NetWatched && all <= c.Lookups+c.Connections+c.Requests+
		c.Datagrams, path+".network", "has more entries than were counted")
	p.requireThat(c.NetRefused+c.NetWatched <= c.Lookups+c.Connections+c.Requests+c.Datagrams, path+".counts",
		"count more refusals than events")
}

func (p *reportChecker) checkEvent(e proposal.Event, id, path string) {
	p.requireThat(e.Command == id, path+".command", "belongs to another command")
	p.checkCounts(path+".pid", int64(e.Pid), int64(e.Parent), int64(e.Times))
	if x := e.Exec; x != nil {
		p.matchGrammar(digestGrammar, x.ArgvDigest, path+".exec.argv_digest", true)
		p.matchGrammar(digestGrammar, x.Digest, path+".exec.digest", true)
	}
}

// checkUsage checks that figures are in range and name their source.
func (p *reportChecker) checkUsage(u proposal.Usage, path string) {
	for _, f := range []proposal.Figure{u.Wall, u.CPUUser, u.CPUSystem, u.PeakMemory, u.Processes, u.Written} {
		p.checkCounts(path, f.Value)
		p.requireThat(f.Source == "" || sources[f.Source] != "", path, "is not one of the allowed values")
		p.requireThat(f.Source != "" || f.Value == 0, path, "has a figure without a source")
	}
}
