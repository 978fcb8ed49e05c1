// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func (c *inputTruncator) cutProposal(p proposal.Proposal, a proposal.Analysis) *Proposal {
	c.recordErased("/proposal/stdin", p.Stdin != "")
	c.recordMasked("/proposal/env", len(p.Env) > 0)
	in := &Proposal{
		ID: c.cutText("/proposal/id", p.ID, maxName), Form: p.Form(),
		Language: c.cutText("/proposal/language", p.Language, maxName),
		Text:     c.cutText("/proposal/text", proposalText(p, a), maxText),
		Why:      c.cutText("/proposal/why", p.Why, maxWords),
		Cwd:      c.cutText("/proposal/cwd", p.Cwd, maxWords),
		Env:      c.cutList("/proposal/env", slices.Sorted(maps.Keys(p.Env)), maxName),
		Network:  c.cutList("/proposal/network", p.Network, maxName), Phase: phaseOrRun(p.Phase),
		Needs:    c.cutList("/proposal/needs", p.Needs, maxName),
		Outputs:  c.cutList("/proposal/outputs", p.Outputs, maxWords),
		Commands: len(a.Commands), Limits: p.Limits,
	}
	var programs, codes []string
	for _, command := range a.Commands {
		programs = append(programs, command.Program)
	}
	for _, u := range a.Unknowns {
		codes = append(codes, u.Code)
	}
	in.Programs, in.Unknowns = c.cutList("/proposal/programs", programs, maxName),
		c.cutList("/proposal/unknowns", codes, maxName)
	return in
}

// proposalText returns the canonical text of a proposal, or its original text if it could
// not be analyzed.
func proposalText(p proposal.Proposal, a proposal.Analysis) string {
	switch {
	case p.Invalid != nil:
		return p.Invalid.Text
	case p.Code != "" && (a.Canonical == "" || p.Language != "bash" && p.Language != "sh"):
		return p.Code
	case a.Canonical != "":
		return a.Canonical
	}
	return p.Run
}

func phaseOrRun(name string) string {
	if name == proposal.PhaseSetup {
		return name
	}
	return proposal.PhaseRun
}

func (c *inputTruncator) cutCommand(x proposal.Command) *Command {
	in := &Command{
		Index: x.Index, Program: c.cutText("/command/program", x.Program, maxWords),
		Argv:   c.cutList("/command/argv", x.Argv(), maxWords),
		Static: true, Via: c.cutList("/command/via", x.Via, maxName),
	}
	for _, w := range x.Args {
		in.Static = in.Static && w.Static
	}
	return in
}

func (c *inputTruncator) cutExec(x proposal.Exec) *proposal.Exec {
	x.Command, x.Path, x.Asked = c.cutText("/exec/command", x.Command, maxName),
		c.cutText("/exec/path", x.Path, maxWords), c.cutText("/exec/asked", x.Asked, maxWords)
	x.Argv, x.Env = c.cutList("/exec/argv", x.Argv, maxWords), c.cutList("/exec/env", x.Env, maxName)
	x.Cwd, x.ParentPath = c.cutText("/exec/cwd", x.Cwd, maxWords),
		c.cutText("/exec/parent_path", x.ParentPath, maxWords)
	x.ArgvDigest, x.Digest = c.cutText("/exec/argv_digest", x.ArgvDigest, maxName),
		c.cutText("/exec/digest", x.Digest, maxName)
	x.Layer, x.Script = c.cutText("/exec/layer", x.Layer, maxName), c.cutText("/exec/script", x.Script, maxWords)
	x.From = c.cutText("/exec/from", x.From, maxWords)
	if x.ELF != nil {
		e := *x.ELF
		e.Interpreter, e.Soname = c.cutText("/exec/elf/interpreter", e.Interpreter, maxWords),
			c.cutText("/exec/elf/soname", e.Soname, maxName)
		x.ELF = &e
	}
	x.Same, x.Grants = c.cutList("/exec/same", x.Same, maxWords), c.cutList("/exec/grants", x.Grants, maxName)
	x.Chain, x.Under = c.cutList("/exec/chain", x.Chain, maxName), c.cutText("/exec/under", x.Under, maxName)
	return &x
}

func (c *inputTruncator) cutEgress(x proposal.Egress) *proposal.Egress {
	for at, s := range map[string]*string{
		"command": &x.Command, "phase": &x.Phase, "kind": &x.Kind, "name": &x.Name, "type": &x.Type, "address": &x.Address,
		"protocol": &x.Protocol, "sni": &x.SNI, "method": &x.Method,
	} {
		*s = c.cutText("/egress/"+at, *s, maxName)
	}
	x.Path = c.cutText("/egress/path", x.Path, maxWords)
	x.Grants, x.Registries = c.cutList("/egress/grants", x.Grants, maxName),
		c.cutList("/egress/registries", x.Registries, maxName)
	found := x.Secrets
	x.Secrets = []proposal.EgressSecret{}
	for _, s := range found[:min(len(found), maxList)] {
		x.Secrets = append(x.Secrets, proposal.EgressSecret{Rule: TruncateText(s.Rule, maxName),
			Where: TruncateText(s.Where, maxName)})
	}
	slices.Sort(c.masked) // a map has no order
	return &x
}

func (c *inputTruncator) cutEvent(e proposal.Event) *Event {
	in := &Event{
		Kind: c.cutText("/event/kind", e.Kind, maxName), Pid: e.Pid,
		Program: c.cutText("/event/program", e.Program, maxWords),
		Path:    c.cutText("/event/path", e.Path, maxWords), Target: c.cutText("/event/target", e.Target, maxWords),
		Address: c.cutText("/event/address", e.Address, maxName), Call: c.cutText("/event/call", e.Call, maxName),
		Errno: c.cutText("/event/errno", e.Errno, maxName),
	}
	if e.Flow != nil {
		in.Destination = c.cutText("/event/destination", e.Flow.Egress.Destination(), maxName)
	}
	return in
}

func (c *inputTruncator) cutTrigger(t points.Trigger) *points.Trigger {
	t.Command, t.Event = c.cutText("/trigger/command", t.Command, maxName),
		c.cutText("/trigger/event", t.Event, maxName)
	t.Actor.Login, t.Actor.Type = c.cutText("/trigger/actor/login", t.Actor.Login, maxName),
		c.cutText("/trigger/actor/type", t.Actor.Type, maxName)
	t.Actor.Permission = c.cutText("/trigger/actor/permission", t.Actor.Permission, maxName)
	t.PR.State, t.PR.Head = c.cutText("/trigger/pr/state", t.PR.State, maxName),
		c.cutText("/trigger/pr/head", t.PR.Head, maxName)
	t.Bots = append([]int64{}, t.Bots[:min(len(t.Bots), maxList)]...)
	return &t
}
