// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/elf"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxKept bounds the answers that are kept for a command; the kernel keeps no more.
const maxKept = 4096

// commandOf returns the command of a generation, and whether it has ended, or waits. An error means that
// it is not known.
func (m *Monitor) commandOf(generation uint32) (c *Command, ended bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.living[generation]; c != nil {
		return c, c.Waits, nil
	}
	if generation == wire.None {
		return &m.none, true, nil
	}
	if i := slices.IndexFunc(m.ended, func(c *Command) bool { return c.generation == generation }); i >= 0 {
		return m.ended[i], true, nil
	}
	return nil, false, errors.New("an event came outside the running commands")
}

// answerExec answers an exec, or records one that the kernel has answered itself.
func (m *Monitor) answerExec(seq uint64, e *wire.Exec) error {
	c, ended, err := m.commandOf(e.Generation)
	if err != nil {
		return err
	}
	switch {
	case ended:
		return m.tooLate(seq, c, e)
	case e.Fault != "":
		refused := proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{},
			Reason: &proposal.Reason{Message: "gVisor's kernel " + toValidUTF8(e.Fault)}}
		m.tellExec(c, e, c.policyQuestions(m, e)[0], refused)
		return nil
	case e.Of != 0:
		return m.recordReusedAnswer(c, e)
	}
	x, d, keep, ok := m.decideFiles(c, e)
	if keep = keep && len(c.kept) < maxKept; keep {
		c.kept[seq] = rememberedAnswer{d, string(e.AppendKey(nil))}
	}
	v := wire.Verdict{Allow: d.Effect == proposal.Allow, Keep: keep, Lineage: d.Lineage}
	if err := m.sendMessage(v.Append(nil, seq)); err != nil || !ok {
		return nil // the exec failed, and e has the reason
	}
	m.tellExec(c, e, x, d)
	return nil
}

// tooLate refuses an exec of a command that has ended. The kernel itself allows none.
func (m *Monitor) tooLate(seq uint64, c *Command, e *wire.Exec) error {
	if e.Of != 0 && e.Allowed {
		return errors.New("a program of a command that has ended was allowed")
	}
	m.tellExec(c, e, c.policyQuestions(m, e)[0], refusal)
	if e.Fault == "" && e.Of == 0 {
		_ = m.sendMessage(wire.Verdict{}.Append(nil, seq)) // if it fails, the exec did too
	}
	return nil
}

// recordReusedAnswer records an exec that was answered with an earlier answer.
func (m *Monitor) recordReusedAnswer(c *Command, e *wire.Exec) error {
	k, ok := c.kept[e.Of]
	if !ok || (k.decision.Effect == proposal.Allow) != e.Allowed || k.key != string(e.AppendKey(nil)) ||
		!e.IsReusable() {
		return errors.New("an answer was used for another exec")
	}
	execs := c.policyQuestions(m, e)
	m.tellExec(c, e, execs[programOf(e)], k.decision)
	return nil
}

// programOf returns the index in Files of the one that runs, or is loaded.
func programOf(e *wire.Exec) int {
	for last := len(e.Files) - 1; ; last-- {
		if last == 0 || !e.Files[last].Loaded {
			return last
		}
	}
}

// decideFiles asks about each file, the script first. All must be allowed: the first
// refusal is the answer. Otherwise the answer is the first that was only observed and
// would have been a refusal, or else the last.
func (m *Monitor) decideFiles(c *Command, e *wire.Exec) (x proposal.Exec, d proposal.ExecDecision, keep, ok bool) {
	keep = e.IsReusable()
	execs := c.policyQuestions(m, e)
	for i, x := range execs {
		one, ok := m.askPolicy(x)
		if keep = keep && one.Cacheable; !ok || one.Effect != proposal.Allow {
			return x, one, keep, ok
		}
		switch {
		case i == 0:
			d = one
		case !d.Observed:
			// the first file's answer sets these
			one.Start, one.Lineage, one.Chain, one.Under = d.Start, d.Lineage, d.Chain, d.Under
			d = one
		}
	}
	return execs[programOf(e)], d, keep, true
}

// DecideFirst decides the first program of c, which the kernel does not ask about because the
// supervisor starts it. It must be called between Begin and the start. If it allows the
// program, no other event is reported until started is called with the process's id, or 0
// if the program did not start.
func (m *Monitor) DecideFirst(c *Command, x proposal.Exec) (d proposal.ExecDecision, started func(pid int), err error) {
	answer := make(chan proposal.ExecDecision, 1)
	go func() {
		if d, ok := m.askPolicy(x); ok {
			answer <- d
		}
	}()
	select {
	case d = <-answer:
	case <-m.failed:
		return refusal, nil, m.err
	}
	e := proposal.Event{Kind: proposal.EventExec, Time: time.Now().UTC(), Path: x.Path, Exec: &x, Decision: &d}
	if d.Effect != proposal.Allow {
		e.Kind = proposal.EventRefused
		m.reportEvent(c, e)
		return d, nil, nil
	}
	m.telling.Lock()
	return d, func(pid int) {
		defer m.telling.Unlock()
		if e.Pid, x.Pid = pid, pid; pid != 0 {
			m.tellLocked(c, e)
		}
	}, nil
}

// askPolicy returns Options.Exec's answer, or a refusal and false if it took too long. In
// that case the gate failed at the time limit, and the closed connection informed the
// kernel at once, even if Exec returns later.
func (m *Monitor) askPolicy(x proposal.Exec) (proposal.ExecDecision, bool) {
	if m.o.Exec == nil {
		return proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{}, Cacheable: true}, true
	}
	timeout := time.AfterFunc(m.o.AnswerWithin, func() {
		m.failMonitor("gate.slow", "no decision about an exec came within "+m.o.AnswerWithin.String(), nil)
	})
	d := m.o.Exec(x)
	if !timeout.Stop() || m.Err() != nil {
		return refusal, false
	}
	return d, true
}

var refusal = proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{}}

// policyQuestions returns the questions to policy: a script without its interpreter first, then
// each interpreter with it, then the loader of the last one.
func (c *Command) policyQuestions(m *Monitor, e *wire.Exec) []proposal.Exec {
	list := make([]proposal.Exec, len(e.Files))
	argv, cut := recordedWords(e.Argv)
	cut, named, from := cut || e.ArgvCut, toValidUTF8(e.Named), toValidUTF8(e.From)
	for i, f := range e.Files {
		switch {
		case f.Loaded && i > 0:
			argv, from = []string{}, list[i-1].Path
		case i > 0:
			argv, named = interpreterArgv(f, named, argv), toValidUTF8(f.Named)
		}
		key := c.answerKey(m, &e.ExecKey, i)
		if e.Fault != "" {
			key.Same = []string{}
		}
		list[i] = proposal.Exec{
			Command: key.Command, Path: key.Path, Asked: key.Asked, Loaded: key.Loaded, Digest: key.Digest,
			ELF: key.ELF, Layer: key.Layer, Same: key.Same, Grants: key.Grants,
			Argv: argv, ArgvCut: cut, Text: wire.IsText(e.Lineage), ArgvDigest: formatDigest(e.ArgvDigest),
			Env: plainAll(e.Env),
			Cwd: toValidUTF8(e.Cwd), Pid: int(e.Pid), Parent: int(e.Parent), ParentPath: toValidUTF8(e.ParentPath),
			From:  from,
			First: e.Parent == 0 && m.o.Init != "" && e.From == m.o.Init && !f.Loaded,
		}
		if e.Lineage >= wire.LineageTool {
			list[i].Lineage = e.Lineage
		}
		if f.Loaded {
			list[i].ArgvDigest, list[i].ArgvCut = "", false
		}
		if i > 0 && !f.Loaded {
			list[i].Script = list[i-1].Path
		}
	}
	if wire.IsText(e.Lineage) && e.Fault == "" && !e.IsLoad() {
		c.fillTextFacts(&list[0], e)
		for i := range list {
			list[i].Named, list[i].Variables = toValidUTF8(e.Named), namesOf(list[0].Changed)
		}
	}
	return list
}

// answerKey returns what a reusable answer about file i may depend on. It is made from the kernel's
// key, and from what is fixed for a command: nothing else may become a part of it.
func (c *Command) answerKey(m *Monitor, of *wire.ExecKey, i int) points.ExecKey {
	f := of.Files[i]
	k := points.ExecKey{Command: c.ID, Path: toValidUTF8(f.Path), Asked: toValidUTF8(of.Asked), Loaded: f.Loaded,
		Digest: formatDigest(f.Digest), ELF: ELFOf(f.ELF),
		Layer: layerNames[f.Layer], Same: []string{}, Grants: slices.Clone(c.Grants)}
	switch {
	case i > 0:
		k.Asked = toValidUTF8(f.Named)
	case f.Loaded: // by an open file
		k.Asked = k.Path
	}
	switch {
	case f.Loaded && !k.ELF.IsProgram(): // it starts nothing, so it is not a copy of a program
	case f.Layer == wire.LayerRootfs && m.o.Linked != nil:
		k.Same = append(k.Same, m.o.Linked(k.Path)...)
	case f.Layer != wire.LayerRootfs && m.o.Same != nil:
		k.Same = append(k.Same, m.o.Same(f.Size, k.Digest)...)
	}
	if k.Grants == nil {
		k.Grants = []string{}
	}
	return k
}

// fillTextFacts fills in what is decided about a process of a text: how execve was called, byte
// for byte.
func (c *Command) fillTextFacts(x *proposal.Exec, e *wire.Exec) {
	if c.base == nil && x.First {
		c.base = byName(e.Vars)
	}
	x.Lineage, x.Whole, x.Partial, x.EnvCut = e.Lineage, e.Argv, e.ArgvCut, e.VarsCut
	x.Changed, x.Renamed = c.changedVariables(e.Vars, x.Path), programOf(e) > 0
}

// ELFOf converts the facts of an ELF file to proposal's type.
func ELFOf(f elf.Facts) *proposal.ELF {
	if f.Type == elf.None {
		return nil
	}
	return &proposal.ELF{Type: elfTypes[f.Type], Interpreter: toValidUTF8(f.Interpreter), Soname: toValidUTF8(f.Soname),
		Static: f.Interpreter == "" && !f.Loader, Loader: f.Loader}
}

var elfTypes = [...]string{elf.Exec: "exec", elf.Dyn: "dyn"}

// interpreterArgv returns the argv of an interpreter: its name, the one argument that the
// script gives, the script, and the script's own arguments.
func interpreterArgv(f wire.File, script string, argv []string) []string {
	list := []string{toValidUTF8(f.Named)}
	if f.Arg != "" {
		list = append(list, toValidUTF8(f.Arg))
	}
	return append(append(list, script), argv[min(1, len(argv)):]...)
}

var layerNames = [...]string{
	wire.LayerOther: proposal.LayerOther, wire.LayerRootfs: proposal.LayerRootfs,
	wire.LayerWorkspace: proposal.LayerWorkspace,
	wire.LayerWritten:   proposal.LayerWritten, wire.LayerMemory: proposal.LayerMemory,
}

func (m *Monitor) tellExec(c *Command, e *wire.Exec, x proposal.Exec, d proposal.ExecDecision) {
	kind := proposal.EventExec
	switch {
	case d.Effect != proposal.Allow:
		kind = proposal.EventRefused
	case x.Loaded:
		kind = proposal.EventLoad
	}
	x.Chain, x.Under = d.Chain, d.Under
	m.reportEvent(c, proposal.Event{Kind: kind, Time: time.Unix(0, e.Time).UTC(), Pid: int(e.Pid),
		Parent:  int(e.Parent),
		Program: toValidUTF8(e.From), Path: x.Path, Exec: &x, Decision: &d, Unverified: e.Unverified})
}

var eventNames = [...]string{
	wire.EventExit: proposal.EventExit, wire.EventWrite: proposal.EventWrite, wire.EventRename: proposal.EventRename,
	wire.EventRemove: proposal.EventRemove, wire.EventLink: proposal.EventLink, wire.EventMode: proposal.EventMode,
	wire.EventConnect: proposal.EventConnect, wire.EventListen: proposal.EventListen,
	wire.EventSend:      proposal.EventSend,
	wire.EventPrivilege: proposal.EventPrivilege,
}

func (m *Monitor) handleEvent(e *wire.Event) error {
	c, ended, err := m.commandOf(e.Generation)
	if err != nil {
		return err
	}
	v := proposal.Event{Kind: eventNames[e.Event], Time: time.Unix(0, e.Time).UTC(), Pid: int(e.Pid),
		Parent:  int(e.Parent),
		Program: toValidUTF8(e.Program), Path: toValidUTF8(e.Path), Target: toValidUTF8(e.Target),
		Address: toValidUTF8(e.Address), Call: toValidUTF8(e.Call),
		Status: int(e.Status), Unverified: e.Unverified}
	if e.Errno != 0 {
		v.Errno = unix.ErrnoName(unix.Errno(e.Errno))
	}
	v.Text = wire.IsText(e.Lineage)
	m.reportEvent(c, v)
	if v.Text && v.Kind == proposal.EventConnect && c.Stray != nil && !ended && isNetwork(v.Address) {
		c.Stray(v)
	}
	return nil
}

// isNetwork reports whether an address is an internet address, of this machine or
// another.
func isNetwork(address string) bool {
	return strings.HasPrefix(address, "tcp ") || strings.HasPrefix(address, "udp ")
}

// reportEvent reports an event. Events beyond the budget are only counted. What comes after a
// command has ended is reported too, because its record is no longer complete.
func (m *Monitor) reportEvent(c *Command, e proposal.Event) {
	m.telling.Lock()
	defer m.telling.Unlock()
	m.tellLocked(c, e)
}

func (m *Monitor) tellLocked(c *Command, e proposal.Event) {
	if c.events++; c.events > m.o.Events {
		if c.untold++; c.untold == 1 && c.Flood != nil {
			c.Flood()
		}
		return
	}
	if e.Command = c.ID; m.o.Event != nil {
		m.o.Event(e)
	}
}

func formatDigest(d [32]byte) string { return "sha256:" + hex.EncodeToString(d[:]) }

// toValidUTF8 replaces invalid UTF-8 in untrusted bytes, so that JSON can hold the string.
func toValidUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func plainAll(words []string) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = toValidUTF8(w)
	}
	return list
}
