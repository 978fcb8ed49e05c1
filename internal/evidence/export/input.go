// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func (c *cutter) proposal(p proposal.Proposal, a proposal.Analysis) *Proposal {
	c.erase("/proposal/stdin", p.Stdin != "")
	c.mask("/proposal/env", len(p.Env) > 0)
	in := &Proposal{
		ID: c.text("/proposal/id", p.ID, maxName), Form: p.Form(), Language: c.text("/proposal/language", p.Language, maxName),
		Text: c.text("/proposal/text", source(p, a), maxText), Why: c.text("/proposal/why", p.Why, maxWords),
		Cwd: c.text("/proposal/cwd", p.Cwd, maxWords), Env: c.list("/proposal/env", slices.Sorted(maps.Keys(p.Env)), maxName),
		Network: c.list("/proposal/network", p.Network, maxName), Phase: phase(p.Phase),
		Needs: c.list("/proposal/needs", p.Needs, maxName), Outputs: c.list("/proposal/outputs", p.Outputs, maxWords),
		Commands: len(a.Commands), Limits: p.Limits,
	}
	var programs, codes []string
	for _, command := range a.Commands {
		programs = append(programs, command.Program)
	}
	for _, u := range a.Unknowns {
		codes = append(codes, u.Code)
	}
	in.Programs, in.Unknowns = c.list("/proposal/programs", programs, maxName), c.list("/proposal/unknowns", codes, maxName)
	return in
}

// source returns the canonical text of a proposal, or its original text if it could
// not be analyzed.
func source(p proposal.Proposal, a proposal.Analysis) string {
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

func phase(name string) string {
	if name == proposal.PhaseSetup {
		return name
	}
	return proposal.PhaseRun
}

func (c *cutter) command(x proposal.Command) *Command {
	in := &Command{
		Index: x.Index, Program: c.text("/command/program", x.Program, maxWords), Argv: c.list("/command/argv", x.Argv(), maxWords),
		Static: true, Via: c.list("/command/via", x.Via, maxName),
	}
	for _, w := range x.Args {
		in.Static = in.Static && w.Static
	}
	return in
}

func (c *cutter) exec(x proposal.Exec) *proposal.Exec {
	x.Command, x.Path, x.Asked = c.text("/exec/command", x.Command, maxName), c.text("/exec/path", x.Path, maxWords), c.text("/exec/asked", x.Asked, maxWords)
	x.Argv, x.Env = c.list("/exec/argv", x.Argv, maxWords), c.list("/exec/env", x.Env, maxName)
	x.Cwd, x.ParentPath = c.text("/exec/cwd", x.Cwd, maxWords), c.text("/exec/parent_path", x.ParentPath, maxWords)
	x.ArgvDigest, x.Digest = c.text("/exec/argv_digest", x.ArgvDigest, maxName), c.text("/exec/digest", x.Digest, maxName)
	x.Layer, x.Script = c.text("/exec/layer", x.Layer, maxName), c.text("/exec/script", x.Script, maxWords)
	x.From = c.text("/exec/from", x.From, maxWords)
	if x.ELF != nil {
		e := *x.ELF
		e.Interpreter, e.Soname = c.text("/exec/elf/interpreter", e.Interpreter, maxWords), c.text("/exec/elf/soname", e.Soname, maxName)
		x.ELF = &e
	}
	x.Same, x.Grants = c.list("/exec/same", x.Same, maxWords), c.list("/exec/grants", x.Grants, maxName)
	x.Chain, x.Under = c.list("/exec/chain", x.Chain, maxName), c.text("/exec/under", x.Under, maxName)
	return &x
}

func (c *cutter) egress(x proposal.Egress) *proposal.Egress {
	for at, s := range map[string]*string{
		"command": &x.Command, "phase": &x.Phase, "kind": &x.Kind, "name": &x.Name, "type": &x.Type, "address": &x.Address,
		"protocol": &x.Protocol, "sni": &x.SNI, "method": &x.Method,
	} {
		*s = c.text("/egress/"+at, *s, maxName)
	}
	x.Path = c.text("/egress/path", x.Path, maxWords)
	x.Grants, x.Registries = c.list("/egress/grants", x.Grants, maxName), c.list("/egress/registries", x.Registries, maxName)
	found := x.Secrets
	x.Secrets = []proposal.EgressSecret{}
	for _, s := range found[:min(len(found), maxList)] {
		x.Secrets = append(x.Secrets, proposal.EgressSecret{Rule: Text(s.Rule, maxName), Where: Text(s.Where, maxName)})
	}
	slices.Sort(c.masked) // a map has no order
	return &x
}

func (c *cutter) event(e proposal.Event) *Event {
	in := &Event{
		Kind: c.text("/event/kind", e.Kind, maxName), Pid: e.Pid, Program: c.text("/event/program", e.Program, maxWords),
		Path: c.text("/event/path", e.Path, maxWords), Target: c.text("/event/target", e.Target, maxWords),
		Address: c.text("/event/address", e.Address, maxName), Call: c.text("/event/call", e.Call, maxName),
		Errno: c.text("/event/errno", e.Errno, maxName),
	}
	if e.Flow != nil {
		in.Destination = c.text("/event/destination", e.Flow.Egress.Destination(), maxName)
	}
	return in
}

func (c *cutter) trigger(t proposal.Trigger) *proposal.Trigger {
	t.Command, t.Event = c.text("/trigger/command", t.Command, maxName), c.text("/trigger/event", t.Event, maxName)
	t.Actor.Login, t.Actor.Type = c.text("/trigger/actor/login", t.Actor.Login, maxName), c.text("/trigger/actor/type", t.Actor.Type, maxName)
	t.Actor.Permission = c.text("/trigger/actor/permission", t.Actor.Permission, maxName)
	t.PR.State, t.PR.Head = c.text("/trigger/pr/state", t.PR.State, maxName), c.text("/trigger/pr/head", t.PR.Head, maxName)
	t.Bots = append([]int64{}, t.Bots[:min(len(t.Bots), maxList)]...)
	return &t
}
