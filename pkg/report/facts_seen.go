// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// observations checks the observations of the command id.
func (p *prober) observations(o proposal.Observations, id, path string) {
	c := o.Counts
	p.count(path+".counts", int64(c.Execs), int64(c.Refused), int64(c.Watched), int64(c.Exits), int64(c.Writes), int64(c.Connects), int64(c.Attempts), int64(c.Dropped))
	p.count(path+".counts", int64(c.Predicted), int64(c.Decided), int64(c.Unforeseen))
	p.require(!o.Complete || c.Dropped == 0, path+".complete", "is set although events were dropped")
	p.programs(o, path)
	p.network(o, path)
	refused, loaded := 0, 0
	for i, e := range o.Execs {
		at := fmt.Sprintf("%s.execs[%d]", path, i)
		p.oneOf(e.Kind, at+".kind", proposal.EventExec, proposal.EventLoad, proposal.EventRefused)
		p.require(e.Exec != nil, at+".exec", "is missing")
		p.event(e, id, at)
		if e.Kind == proposal.EventLoad {
			loaded++
		}
		if e.Kind == proposal.EventRefused {
			refused++
			p.require(e.Decision == nil || e.Decision.Effect != proposal.Allow, at+".decision", "allows a program that was refused")
		}
	}
	p.require(refused <= c.Refused && loaded <= c.Watched && len(o.Execs)-refused-loaded <= c.Execs, path+".execs", "has more entries than were counted")
	p.require(c.Predicted+c.Decided <= c.Execs && c.Unforeseen <= c.Refused, path+".counts", "count more decisions than programs")
	for i, e := range o.Notable {
		at := fmt.Sprintf("%s.notable[%d]", path, i)
		p.oneOf(e.Kind, at+".kind", proposal.EventWrite, proposal.EventRename, proposal.EventRemove, proposal.EventLink, proposal.EventMode,
			proposal.EventConnect, proposal.EventListen, proposal.EventSend, proposal.EventPrivilege)
		p.require(e.Times > 0, at+".times", "is zero")
		p.event(e, id, at)
	}
	for i, f := range o.Findings {
		at := fmt.Sprintf("%s.findings[%d]", path, i)
		p.require(f.Rule != "", at+".rule", "is empty")
		p.event(f.Event, id, at+".event")
	}
}

// retried checks that the first run of the command id is one that is retried.
func (p *prober) retried(a proposal.Attempt, id, path string) {
	p.result(a.Result(), path)
	p.require(a.Status == proposal.Exited && a.ExitCode != 0 || a.Status == proposal.Signaled, path+".status", "is not that of a run that is retried")
	p.require(len(a.Stdout.Head)+len(a.Stderr.Head) == 0 && max(len(a.Stdout.Tail), len(a.Stderr.Tail)) <= proposal.AttemptTail, path+".stdout", "is longer than the maximum")
	if a.Usage != nil {
		p.usage(*a.Usage, path+".usage")
	}
	o := a.Observations
	if o == nil {
		p.require(false, path+".observations", "are missing")
		return
	}
	p.observations(*o, id, path+".observations")
	p.require(o.Complete && o.Counts.Refused+o.Counts.NetRefused == 0 && len(o.Findings) == 0, path+".observations", "are not those of a run that is retried")
	p.require(slices.ContainsFunc(o.Programs, func(node proposal.Program) bool {
		return node.Crashed > 0 && node.Name == a.Program && node.Signal == a.Crash && node.Layer == proposal.LayerRootfs
	}), path+".program", "is not one that crashed")
}

// programs checks that the programs form a tree and match the counts.
func (p *prober) programs(o proposal.Observations, path string) {
	began, refused, watched, omitted := 0, 0, 0, 0
	for i, node := range o.Programs {
		at := fmt.Sprintf("%s.programs[%d]", path, i)
		p.require(node.Parent >= -1 && node.Parent < i && (node.Parent >= 0 || i == 0), at+".parent", "is not the index of an earlier program")
		p.count(at, int64(node.Runs), int64(node.Refused), int64(node.Watched), int64(node.Failed), int64(node.ExitCode), int64(node.Crashed), int64(node.Omitted))
		p.require(node.Watched <= node.Runs && max(node.Failed, node.Crashed) <= node.Runs+node.Omitted, at+".runs", "are fewer than their outcomes")
		p.match(signalGrammar, node.Signal, at+".signal", true)
		p.require((node.ExitCode > 0) == (node.Failed > 0) && node.ExitCode <= 255, at+".exit_code", "is not that of a failure")
		p.require(node.Signal == "" || node.Crashed > 0, at+".signal", "is set although nothing crashed")
		p.oneOf(node.Layer, at+".layer", "", proposal.LayerRootfs, proposal.LayerWorkspace, proposal.LayerWritten, proposal.LayerMemory, proposal.LayerOther)
		began, refused, watched, omitted = began+node.Runs, refused+node.Refused, watched+node.Watched, omitted+node.Omitted
	}
	c := o.Counts
	p.require(began+refused+omitted == c.Execs+c.Refused && began <= c.Execs && refused <= c.Refused && watched <= c.Watched, path+".programs", "do not match the counts")
}

// network checks the network events.
func (p *prober) network(o proposal.Observations, path string) {
	refused, watched, all := 0, 0, 0
	for i, r := range o.Network {
		at := fmt.Sprintf("%s.network[%d]", path, i)
		p.oneOf(r.Kind, at+".kind", proposal.EventLookup, proposal.EventConnection, proposal.EventRequest, proposal.EventDatagram)
		p.require(r.Count > 0, at+".count", "is zero")
		p.require(r.Port >= 0 && r.Port < 1<<16, at+".port", "is not a port")
		p.require(!r.Refused || !r.Watched, at+".watched", "was both refused and allowed")
		p.require(!r.Observed || p.observed && !r.Refused, at+".observed", "does not match the run")
		p.count(at, int64(r.Count), r.Sent, r.Received)
		all += r.Count
		if r.Refused {
			refused += r.Count
		}
		if r.Watched {
			watched += r.Count
		}
	}
	c := o.Counts
	p.count(path+".counts", int64(c.Lookups), int64(c.Connections), int64(c.Requests), int64(c.Datagrams), int64(c.NetRefused), int64(c.NetWatched))
	p.require(refused <= c.NetRefused && watched <= c.NetWatched && all <= c.Lookups+c.Connections+c.Requests+c.Datagrams, path+".network", "has more entries than were counted")
	p.require(c.NetRefused+c.NetWatched <= c.Lookups+c.Connections+c.Requests+c.Datagrams, path+".counts", "count more refusals than events")
}

func (p *prober) event(e proposal.Event, id, path string) {
	p.require(e.Command == id, path+".command", "belongs to another command")
	p.count(path+".pid", int64(e.Pid), int64(e.Parent), int64(e.Times))
	if x := e.Exec; x != nil {
		p.match(digestGrammar, x.ArgvDigest, path+".exec.argv_digest", true)
		p.match(digestGrammar, x.Digest, path+".exec.digest", true)
	}
}

// usage checks that figures are in range and name their source.
func (p *prober) usage(u proposal.Usage, path string) {
	for _, f := range []proposal.Figure{u.Wall, u.CPUUser, u.CPUSystem, u.PeakMemory, u.Processes, u.Written} {
		p.count(path, f.Value)
		p.oneOf(f.Source, path, proposal.SourceUnknown, proposal.SourceClock, proposal.SourceCgroup, proposal.SourceSandbox)
		p.require(f.Source != proposal.SourceUnknown || f.Value == 0, path, "has a figure without a source")
	}
}
