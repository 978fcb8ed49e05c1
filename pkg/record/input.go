// SPDX-License-Identifier: Apache-2.0

package record

import (
	"maps"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func (c *cutter) proposal(p proposal.Proposal, a proposal.Analysis) *Proposal {
	c.erase("/proposal/stdin", p.Stdin != "")
	c.mask("/proposal/env", len(p.Env) > 0)
	in := &Proposal{
		ID: c.text("/proposal/id", p.ID, mostName), Form: p.Form(), Language: c.text("/proposal/language", p.Language, mostName),
		Text: c.text("/proposal/text", source(p, a), mostText), Why: c.text("/proposal/why", p.Why, mostWords),
		Cwd: c.text("/proposal/cwd", p.Cwd, mostWords), Env: c.list("/proposal/env", slices.Sorted(maps.Keys(p.Env)), mostName),
		Network: c.list("/proposal/network", p.Network, mostName), Phase: phase(p.Phase),
		Needs: c.list("/proposal/needs", p.Needs, mostName), Outputs: c.list("/proposal/outputs", p.Outputs, mostWords),
		Commands: len(a.Commands), Limits: p.Limits,
	}
	var programs, codes []string
	for _, command := range a.Commands {
		programs = append(programs, command.Program)
	}
	for _, u := range a.Unknowns {
		codes = append(codes, u.Code)
	}
	in.Programs, in.Unknowns = c.list("/proposal/programs", programs, mostName), c.list("/proposal/unknowns", codes, mostName)
	return in
}

// source returns the canonical text of a proposal, or its original text if it could
// not be analyzed.
func source(p proposal.Proposal, a proposal.Analysis) string {
	switch {
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
		Index: x.Index, Program: c.text("/command/program", x.Program, mostWords), Argv: c.list("/command/argv", x.Argv(), mostWords),
		Static: true, Via: c.list("/command/via", x.Via, mostName),
	}
	for _, w := range x.Args {
		in.Static = in.Static && w.Static
	}
	return in
}

func (c *cutter) exec(x proposal.Exec) *proposal.Exec {
	x.Command, x.Path = c.text("/exec/command", x.Command, mostName), c.text("/exec/path", x.Path, mostWords)
	x.Argv, x.Env = c.list("/exec/argv", x.Argv, mostWords), c.list("/exec/env", x.Env, mostName)
	x.Cwd, x.ParentPath = c.text("/exec/cwd", x.Cwd, mostWords), c.text("/exec/parent_path", x.ParentPath, mostWords)
	x.ArgvDigest, x.Digest = c.text("/exec/argv_digest", x.ArgvDigest, mostName), c.text("/exec/digest", x.Digest, mostName)
	x.Layer, x.Script = c.text("/exec/layer", x.Layer, mostName), c.text("/exec/script", x.Script, mostWords)
	x.From = c.text("/exec/from", x.From, mostWords)
	if x.ELF != nil {
		e := *x.ELF
		e.Interpreter, e.Soname = c.text("/exec/elf/interpreter", e.Interpreter, mostWords), c.text("/exec/elf/soname", e.Soname, mostName)
		x.ELF = &e
	}
	x.Same, x.Grants = c.list("/exec/same", x.Same, mostWords), c.list("/exec/grants", x.Grants, mostName)
	return &x
}

func (c *cutter) egress(x proposal.Egress) *proposal.Egress {
	for at, s := range map[string]*string{
		"command": &x.Command, "phase": &x.Phase, "kind": &x.Kind, "name": &x.Name, "type": &x.Type, "address": &x.Address,
		"protocol": &x.Protocol, "sni": &x.SNI, "method": &x.Method,
	} {
		*s = c.text("/egress/"+at, *s, mostName)
	}
	x.Path = c.text("/egress/path", x.Path, mostWords)
	x.Grants, x.Registries = c.list("/egress/grants", x.Grants, mostName), c.list("/egress/registries", x.Registries, mostName)
	found := x.Secrets
	x.Secrets = []proposal.EgressSecret{}
	for _, s := range found[:min(len(found), mostList)] {
		x.Secrets = append(x.Secrets, proposal.EgressSecret{Rule: Text(s.Rule, mostName), Where: Text(s.Where, mostName)})
	}
	slices.Sort(c.masked) // a map has no order
	return &x
}

func (c *cutter) event(e proposal.Event) *Event {
	in := &Event{
		Kind: c.text("/event/kind", e.Kind, mostName), Pid: e.Pid, Program: c.text("/event/program", e.Program, mostWords),
		Path: c.text("/event/path", e.Path, mostWords), Target: c.text("/event/target", e.Target, mostWords),
		Address: c.text("/event/address", e.Address, mostName), Call: c.text("/event/call", e.Call, mostName),
		Errno: c.text("/event/errno", e.Errno, mostName),
	}
	if e.Flow != nil {
		in.Destination = c.text("/event/destination", e.Flow.Egress.Destination(), mostName)
	}
	return in
}

func (c *cutter) trigger(t proposal.Trigger) *proposal.Trigger {
	t.Command, t.Event = c.text("/trigger/command", t.Command, mostName), c.text("/trigger/event", t.Event, mostName)
	t.Actor.Login, t.Actor.Type = c.text("/trigger/actor/login", t.Actor.Login, mostName), c.text("/trigger/actor/type", t.Actor.Type, mostName)
	t.Actor.Permission = c.text("/trigger/actor/permission", t.Actor.Permission, mostName)
	t.PR.State, t.PR.Head = c.text("/trigger/pr/state", t.PR.State, mostName), c.text("/trigger/pr/head", t.PR.Head, mostName)
	t.Bots = append([]int64{}, t.Bots[:min(len(t.Bots), mostList)]...)
	return &t
}
