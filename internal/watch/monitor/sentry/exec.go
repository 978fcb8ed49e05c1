// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"crypto/sha256"
	"io"
	"slices"
	"strings"

	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/errors/linuxerr"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"

	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// Execve implements seccheck.Sink. gVisor calls it after the new program is loaded
// and before anything of the old one is released; an error is the execve's result.
func (g *execGate) Execve(ctx context.Context, _ seccheck.FieldSet, info *pb.ExecveInfo) error {
	t, ok := ctx.(*kernel.Task)
	if !ok || !g.askSupervisor(t, g.newExecQuestion(t, info)) {
		return linuxerr.EACCES
	}
	return nil
}

func (g *execGate) newExecQuestion(t *kernel.Task, info *pb.ExecveInfo) *wire.Exec {
	e := g.newQuestion(t)
	e.Argv, e.ArgvCut, e.ArgvDigest = recordedWords(info.Argv, e.Lineage)
	e.Env, e.Named = steeringVariables(info.Env), wire.Truncate(info.Execfn, wire.MaxPath)
	e.Asked = askedPath(t, e.Named)
	if wire.IsText(e.Lineage) {
		e.Vars, e.VarsCut = recordedVariables(info.Env)
	}
	f, err := openedExecutable(t)
	if err == nil {
		e.Files, err = g.interpreterChain(t, f, e.Unverified)
	}
	g.noteFault(t, e, err, info.BinaryPath)
	return e
}

// newQuestion returns what is known of the process of t, whatever it asks for.
func (g *execGate) newQuestion(t *kernel.Task) *wire.Exec {
	e := &wire.Exec{Time: t.Kernel().RealtimeClock().Now().Nanoseconds(), Pid: processID(t), From: programPath(t, t),
		Cwd: wire.Truncate(workingDir(t), wire.MaxPath)}
	var p *kernel.Task
	if e.Parent, p = parentProcess(t); p != nil {
		e.ParentPath = programPath(t, p)
	}
	m := g.lineages.memberOf(t.ThreadGroup())
	e.Generation, e.Lineage, e.Unverified = m.number, m.lineage, g.hasOwnFileTree(t)
	return e
}

// noteFault records in e why it is refused without a question: err, or the end of its command.
func (g *execGate) noteFault(t *kernel.Task, e *wire.Exec, err error, path string) {
	if err == nil && g.lineages.hasEnded(t.ThreadGroup()) {
		err = errEnded
	}
	if err != nil {
		e.Fault = wire.Truncate("cannot read the program: "+err.Error(), wire.MaxFault)
		e.Files = []wire.File{{Loaded: e.IsLoad(), Path: wire.Truncate(path, wire.MaxPath)}}
	}
}

// recordedWords returns as many of argv's first words as are sent for a process of this
// lineage, whether anything is missing, and the digest of all words.
func recordedWords(argv []string, lineage uint32) (first []string, short bool, sum [32]byte) {
	limit, longest, room := wire.ArgvBounds(lineage)
	hash := sha256.New()
	for i, w := range argv {
		io.WriteString(hash, w)
		hash.Write([]byte{0})
		if i >= limit || room == 0 {
			short = true
			continue
		}
		kept := wire.Truncate(w, min(longest, room))
		first, room, short = append(first, kept), room-len(kept), short || len(kept) < len(w)
	}
	return first, short, [32]byte(hash.Sum(nil))
}

// recordedVariables returns the environment, and whether anything is missing.
func recordedVariables(env []string) (vars []string, short bool) {
	room := wire.MaxEnv
	for _, v := range env {
		if len(vars) == wire.MaxVars || len(v) > min(wire.MaxVar, room) {
			return vars, true
		}
		vars, room = append(vars, v), room-len(v)
	}
	return vars, false
}

// steeringVariables returns the names of variables that can make a loader or an interpreter
// run something that its arguments do not name.
func steeringVariables(env []string) []string {
	var names []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if !wire.IsSteeringVariable(name) || slices.Contains(names, wire.Truncate(name, wire.MaxName)) {
			continue
		}
		if len(names) == wire.MaxNames {
			break
		}
		names = append(names, wire.Truncate(name, wire.MaxName))
	}
	return names
}

// TaskExit implements seccheck.Sink. It is called for each thread; a process has
// ended with its first thread's status, which is the group's.
func (g *execGate) TaskExit(ctx context.Context, _ seccheck.FieldSet, info *pb.TaskExit) error {
	t, ok := ctx.(*kernel.Task)
	if !ok || t.ThreadGroup().Leader() != t || g.init(t) {
		return nil
	}
	g.lineages.generationOf(t.ThreadGroup()).processes.Add(1)
	e := g.newEvent(t, wire.EventExit)
	e.Status = info.ExitStatus
	g.reportEvent(e)
	return nil
}

func (g *execGate) newEvent(t *kernel.Task, kind uint8) *wire.Event {
	e := &wire.Event{Event: kind, Time: t.Kernel().RealtimeClock().Now().Nanoseconds(), Pid: processID(t),
		Program: programPath(t, t), Unverified: g.hasOwnFileTree(t)}
	m := g.lineages.memberOf(t.ThreadGroup())
	e.Generation, e.Lineage = m.number, m.lineage
	e.Parent, _ = parentProcess(t)
	return e
}
