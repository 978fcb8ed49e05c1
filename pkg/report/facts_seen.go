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
	p.hold(!o.Complete || c.Dropped == 0, path+".complete", "stands beside events that were dropped")
	p.programs(o, path)
	p.network(o, path)
	refused := 0
	for i, e := range o.Execs {
		at := fmt.Sprintf("%s.execs[%d]", path, i)
		p.oneOf(e.Kind, at+".kind", proposal.EventExec, proposal.EventRefused)
		p.hold(e.Exec != nil, at+".exec", "is missing")
		p.event(e, id, at)
		if e.Kind == proposal.EventRefused {
			refused++
			p.hold(e.Decision == nil || e.Decision.Effect != proposal.Allow, at+".decision", "allowed what was refused")
		}
	}
	p.hold(refused <= c.Refused && len(o.Execs)-refused <= c.Execs, path+".execs", "has more than were counted")
	p.hold(c.Predicted+c.Decided <= c.Execs && c.Unforeseen <= c.Refused, path+".counts", "judged more than there was")
	for i, e := range o.Notable {
		at := fmt.Sprintf("%s.notable[%d]", path, i)
		p.oneOf(e.Kind, at+".kind", proposal.EventWrite, proposal.EventRename, proposal.EventRemove, proposal.EventLink, proposal.EventMode,
			proposal.EventConnect, proposal.EventListen, proposal.EventSend, proposal.EventPrivilege)
		p.hold(e.Times > 0, at+".times", "counts nothing")
		p.event(e, id, at)
	}
	for i, f := range o.Findings {
		at := fmt.Sprintf("%s.findings[%d]", path, i)
		p.hold(f.Rule != "", at+".rule", "is empty")
		p.event(f.Event, id, at+".event")
	}
}

// retried checks that the first run of the command id is one that is followed by a
// second.
func (p *prober) retried(a proposal.Attempt, id, path string) {
	p.result(a.Result(), path)
	p.hold(a.Status == proposal.Exited && a.ExitCode != 0 || a.Status == proposal.Signaled, path+".status", "is not of a run after which there is another")
	p.hold(len(a.Stdout.Head)+len(a.Stderr.Head) == 0 && max(len(a.Stdout.Tail), len(a.Stderr.Tail)) <= proposal.AttemptTail, path+".stdout", "keeps more than is kept")
	if a.Usage != nil {
		p.usage(*a.Usage, path+".usage")
	}
	o := a.Observations
	if o == nil {
		p.hold(false, path+".observations", "are missing")
		return
	}
	p.observations(*o, id, path+".observations")
	p.hold(o.Complete && o.Counts.Refused+o.Counts.NetRefused == 0 && len(o.Findings) == 0, path+".observations", "are not of a run after which there is another")
	p.hold(slices.ContainsFunc(o.Programs, func(node proposal.Program) bool {
		return node.Crashed > 0 && node.Name == a.Program && node.Signal == a.Crash && node.Layer == proposal.LayerRootfs
	}), path+".program", "is not one that crashed")
}

// programs checks that the programs form a tree and match the counts.
func (p *prober) programs(o proposal.Observations, path string) {
	began, refused, watched, omitted := 0, 0, 0, 0
	for i, node := range o.Programs {
		at := fmt.Sprintf("%s.programs[%d]", path, i)
		p.hold(node.Parent >= -1 && node.Parent < i && (node.Parent >= 0 || i == 0), at+".parent", "is no program before it")
		p.count(at, int64(node.Runs), int64(node.Refused), int64(node.Watched), int64(node.Crashed), int64(node.Omitted))
		p.hold(node.Watched <= node.Runs && node.Crashed <= node.Runs+node.Omitted, at+".runs", "are fewer than what became of them")
		p.match(signalGrammar, node.Signal, at+".signal", true)
		p.hold(node.Signal == "" || node.Crashed > 0, at+".signal", "ended nothing")
		p.oneOf(node.Layer, at+".layer", "", proposal.LayerRootfs, proposal.LayerWorkspace, proposal.LayerWritten, proposal.LayerMemory, proposal.LayerOther)
		began, refused, watched, omitted = began+node.Runs, refused+node.Refused, watched+node.Watched, omitted+node.Omitted
	}
	c := o.Counts
	p.hold(began+refused+omitted == c.Execs+c.Refused && began <= c.Execs && refused <= c.Refused && watched <= c.Watched, path+".programs", "do not count what was counted")
}

// network checks the network events.
func (p *prober) network(o proposal.Observations, path string) {
	refused, watched, all := 0, 0, 0
	for i, r := range o.Network {
		at := fmt.Sprintf("%s.network[%d]", path, i)
		p.oneOf(r.Kind, at+".kind", proposal.EventLookup, proposal.EventConnection, proposal.EventRequest, proposal.EventDatagram)
		p.hold(r.Count > 0, at+".count", "counts nothing")
		p.hold(r.Port >= 0 && r.Port < 1<<16, at+".port", "is no port")
		p.hold(!r.Refused || !r.Watched, at+".watched", "was refused and let through")
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
	p.hold(refused <= c.NetRefused && watched <= c.NetWatched && all <= c.Lookups+c.Connections+c.Requests+c.Datagrams, path+".network", "has more than were counted")
	p.hold(c.NetRefused+c.NetWatched <= c.Lookups+c.Connections+c.Requests+c.Datagrams, path+".counts", "refused more than there was")
}

func (p *prober) event(e proposal.Event, id, path string) {
	p.hold(e.Command == id, path+".command", "is another's")
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
		p.hold(f.Source != proposal.SourceUnknown || f.Value == 0, path, "has a figure that nobody measured")
	}
}
