// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/fumehood/fumehood/pkg/policy/facts"
	"github.com/fumehood/fumehood/pkg/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// execInput is the input document of fumehood.exec. Every field is always there.
//
// The fields up to Env are the key of an answer: what rests on nothing else may be
// reused for the same file, command and grants (see beyond.go). Argv is what the
// program was given, and a stranger's: a rule that allows by it is no rule.
type execInput struct {
	Command string   `json:"command"` // id of the proposal
	Path    string   `json:"path"`    // of the file, links resolved
	Name    string   `json:"name"`    // the tool's plain name: /usr/bin/python3.11 is python3
	Names   []string `json:"names"`   // Name, and the names of what the file is a copy of
	Same    []string `json:"same"`    // paths of the root file system with the same content
	Many    bool     `json:"many"`    // the file is many tools in one, as busybox is, and Tool is the one asked for
	Layer   string   `json:"layer"`
	Digest  string   `json:"digest"`
	ELF     elfInput `json:"elf"` // of the content, as Digest is
	Grants  []string `json:"grants"`
	Env     []string `json:"env"` // names only

	Argv       []string `json:"argv"` // the program's own name included; may be cut
	ArgvCut    bool     `json:"argv_cut"`
	ArgvDigest string   `json:"argv_digest"`
	Tool       string   `json:"tool"`  // what Argv asks for: npm for node npm-cli.js, wget for busybox wget
	Words      []string `json:"words"` // that Tool is given
	Sub        string   `json:"sub"`   // Tool's subcommand, or its first word that is no option
	Cwd        string   `json:"cwd"`
	Parent     string   `json:"parent"` // path of the program that starts it, "" for a command's first
	From       string   `json:"from"`   // path of the program that becomes it: Parent's as a rule, or what Parent started before
	Script     string   `json:"script"` // that Path interprets, or ""
	First      bool     `json:"first"`
}

// elfInput is a proposal.ELF; Type is "" for a script, or anything else that is no
// program by itself.
type elfInput struct {
	Type        string `json:"type"`
	Interpreter string `json:"interpreter"`
	Soname      string `json:"soname"`
	Static      bool   `json:"static"`
	Loader      bool   `json:"loader"`
}

// Exec judges whether the program of x may begin. Only Allow lets it: there is
// nobody to ask, so an ask denies, and what no rule of the granting layer allows is
// denied. An error is a *proposal.StopError, as Decide's is, and then nothing may
// begin either.
//
// The answer says by Cacheable whether it holds for each Exec with the same Path,
// Digest, ELF, Layer, Command and Grants and an empty Env.
func (e *Engine) Exec(ctx context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
	return inTime(ctx, e, func(ctx context.Context) (proposal.ExecDecision, error) {
		m := newMerger(e)
		if err := e.ask(ctx, m, module.PointExec, termOf(reflect.ValueOf(e.execInput(x))).Value, whole, x.Path); err != nil {
			return proposal.ExecDecision{}, err
		}
		return m.execDecision(x), nil
	})
}

func (e *Engine) execInput(x proposal.Exec) execInput {
	in := execInput{
		Command: x.Command, Path: x.Path, Name: facts.FileName(x.Path), Same: x.Same, Layer: x.Layer, Digest: x.Digest, Grants: x.Grants, Env: x.Env,
		Argv: x.Argv, ArgvCut: x.ArgvCut, ArgvDigest: x.ArgvDigest, Cwd: x.Cwd, Parent: x.ParentPath, From: x.From, Script: x.Script, First: x.First,
	}
	if x.ELF != nil {
		in.ELF = elfInput(*x.ELF)
	}
	in.Names = []string{in.Name}
	if many := facts.ManifoldOf(x); many != "" { // its other names are its tools: Tool is the one that it would be
		in.Many, in.Names = true, append(in.Names, many)
	} else {
		for _, same := range x.Same {
			in.Names = append(in.Names, facts.FileName(same))
		}
	}
	in.Tool, in.Words = facts.AsksFor(x)
	in.Sub = e.grammars.Verb(in.Tool, in.Words)
	return in
}

var layers = []string{proposal.LayerRootfs, proposal.LayerWorkspace, proposal.LayerWritten, proposal.LayerMemory, proposal.LayerOther}

// execFloor holds whatever the layers say.
func (m *merger) execFloor(x proposal.Exec) {
	if !slices.Contains(layers, x.Layer) || x.Path == "" || x.Command == "" {
		m.reason("deny", map[string]string{"rule": "floor.exec", "message": "what was asked about is not a program of a command",
			"suggestion": "this is a defect: report it"}, whole, x.Path)
	}
	if !m.allowed[whole] && !m.denied(whole) {
		m.reason("deny", map[string]string{"rule": "exec.no-rule", "message": fmt.Sprintf("no rule of the granting policy lets %q begin", x.Path),
			"suggestion": "write allow contains {…} in package " + module.PointExec}, whole, x.Path)
	}
}

func (m *merger) execDecision(x proposal.Exec) proposal.ExecDecision {
	m.execFloor(x)
	m.observeCandidate(func(would *merger) { would.execFloor(x) })
	d := proposal.ExecDecision{Effect: m.effect(), Rules: slices.Sorted(maps.Keys(m.rules)), Cacheable: !m.beyond && len(x.Env) == 0}
	if d.Effect != proposal.Allow {
		d.Effect = proposal.Deny
	}
	d.Reason = against(m.reasons)
	d.Observed = d.Effect == proposal.Allow && d.Reason != nil
	return d
}

// against picks the reason that counts most: a deny before an ask, what holds before
// what is only observed.
func against(reasons []proposal.Reason) *proposal.Reason {
	for _, observed := range []bool{false, true} {
		for _, effect := range []proposal.Effect{proposal.Deny, proposal.Ask} {
			for i := range reasons {
				if reasons[i].Effect == effect && reasons[i].Observed == observed {
					return &reasons[i]
				}
			}
		}
	}
	return nil
}
