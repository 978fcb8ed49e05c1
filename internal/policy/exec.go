// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// execInput is the input document of fumehood.exec. Every field is always present.
//
// The fields up to Env are the key of an answer: they are made from a points.ExecKey, and an
// answer that depends on nothing else may be reused for it (see module/cachekey.go). Argv is
// untrusted: a rule must not allow because of it. Chain, Under and Listed are empty in each
// answer that is reused.
type execInput struct {
	Command string   `json:"command"`              // id of the proposal
	Path    string   `json:"path" form:"path"`     // of the file, links resolved
	Asked   string   `json:"asked" form:"path"`    // the path as it was given, absolute and cleaned, links not resolved
	Loaded  bool     `json:"loaded"`               // nothing starts: the program from loads the file as code, as a library or a plugin
	Name    string   `json:"name" form:"name"`     // the tool's plain name: /usr/bin/python3.11 is python3
	Names   []string `json:"names"`                // Name, and the names of what the file is a copy of
	Same    []string `json:"same"`                 // paths of the root file system with the same content
	Many    bool     `json:"many"`                 // the file is many tools in one, as busybox is, and Tool is the requested one
	Layer   string   `json:"layer" enum:"layer"`   // where the file is; workspace is unchanged, written is written in the sandbox
	Digest  string   `json:"digest" form:"digest"` // of the file's content: sha256: and hexadecimal digits
	ELF     elfInput `json:"elf"`                  // of the content, as Digest is
	Grants  []string `json:"grants"`               // what the command was granted: built lets it start programs that it built
	Env     []string `json:"env"`                  // names only
	Chain   []string `json:"chain"`                // the tools between the text and the start, the text's command first, if policies/options.txt lists what they start
	Under   string   `json:"under"`                // the tool of Chain whose list applies, such as tar or "go tool"; "" without one
	Listed  bool     `json:"listed"`               // the list of Under has the program

	Argv       []string `json:"argv"`             // includes the program's own name; may be cut
	ArgvCut    bool     `json:"argv_cut"`         // argv lacks words or parts of them
	ArgvDigest string   `json:"argv_digest"`      // of the whole argv
	Tool       string   `json:"tool" form:"name"` // the tool that Argv selects: npm for node npm-cli.js, wget for busybox wget
	Words      []string `json:"words"`            // the arguments of Tool
	Sub        string   `json:"sub"`              // Tool's subcommand, or its first word that is not an option
	Cwd        string   `json:"cwd"`              // working directory
	Parent     string   `json:"parent"`           // path of the program that starts it, "" for the first of a command
	From       string   `json:"from"`             // path of the program that it replaces: usually Parent, or a program that Parent started
	Script     string   `json:"script"`           // the script that Path interprets, or ""
	First      bool     `json:"first"`            // it is the first process of a command
}

// elfInput is a proposal.ELF; Type is "" for a script, or for anything else that is not an
// ELF program.
type elfInput struct {
	Type        string `json:"type" enum:"elf"` // of an ELF program
	Interpreter string `json:"interpreter"`     // the dynamic loader that the kernel starts with it
	Soname      string `json:"soname"`          // its name as a library
	Static      bool   `json:"static"`          // it needs no loader, and is not one
	Loader      bool   `json:"loader"`          // it is a library that can be started, as a loader can
}

// Exec decides whether the program of x may start. Only Allow lets it start: no person can
// be asked, so an ask denies, and a program that no rule of the granting layer allows is
// denied. An error is a *proposal.StopError, as for Decide, and then nothing may start
// either.
//
// Cacheable means that the answer is the same for each Exec with the same ExecKey and an
// empty Env.
func (e *Engine) Exec(ctx context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
	return inTime(ctx, e, func(ctx context.Context) (proposal.ExecDecision, error) {
		m := newMerger(e)
		if err := e.askLayers(ctx, m, module.PointExec, e.newDocument(e.execInput(x)), whole,
			x.Path); err != nil {
			return proposal.ExecDecision{}, err
		}
		return m.execDecision(x), nil
	})
}

func (e *Engine) execInput(x proposal.Exec) execInput {
	in := keyInput(points.KeyOf(x))
	in.Argv, in.ArgvCut, in.ArgvDigest, in.Cwd = x.Argv, x.ArgvCut, x.ArgvDigest, x.Cwd
	in.Parent, in.From, in.Script, in.First = x.ParentPath, x.From, x.Script, x.First
	if !x.Loaded {
		in.Tool, in.Words = facts.AsksFor(x)
		in.Sub = e.grammars.SubcommandOf(in.Tool, in.Words)
		in.Chain, in.Under, in.Listed = x.Chain, x.Under, x.Under != "" && facts.ListsProgram(x.Under, x)
	}
	return in
}

// keyInput is the input's part on which a reusable answer may depend: the fields of
// module.KeyFields, and no others.
func keyInput(k points.ExecKey) execInput {
	in := execInput{
		Command: k.Command, Path: k.Path, Asked: cmp.Or(k.Asked, k.Path), Loaded: k.Loaded,
		Name: facts.FileName(k.Path), Same: k.Same,
		Layer: k.Layer, Digest: k.Digest, Grants: k.Grants, Env: k.Env,
	}
	if k.ELF != nil {
		in.ELF = elfInput(*k.ELF)
	}
	in.Names = []string{in.Name}
	if k.Loaded {
		return in
	}
	if many := facts.ManifoldOf(k); many != "" { // its other names are its tools; Tool is the selected one
		in.Many, in.Names = true, append(in.Names, many)
		return in
	}
	for _, same := range k.Same {
		in.Names = append(in.Names, facts.FileName(same))
	}
	return in
}

// Confine is what lineage.Gate needs to know of tools. It depends on no policy.
func Confine(x proposal.Exec, names []string) (name, under string) { return facts.Confine(x, names) }

var layers = []string{proposal.LayerRootfs, proposal.LayerWorkspace, proposal.LayerWritten, proposal.LayerMemory,
	proposal.LayerOther}

// execFloor applies whatever the layers say.
func (m *merger) execFloor(x proposal.Exec) {
	if !slices.Contains(layers, x.Layer) || x.Path == "" || x.Command == "" {
		m.addReason("deny", map[string]string{"rule": "floor.exec",
			"message":    "the request is not about a program of a command",
			"suggestion": "this is a defect: report it"}, whole, x.Path)
	}
	if !m.allowed[whole] && !m.isDenied(whole) {
		m.addReason("deny", map[string]string{"rule": "exec.no-rule",
			"message":    fmt.Sprintf("no rule of the granting policy allows %q to %s", x.Path, execVerb(x)),
			"suggestion": "write allow contains {…} in package " + module.PointExec}, whole, x.Path)
	}
}

func execVerb(x proposal.Exec) string {
	if x.Loaded {
		return "be loaded as code"
	}
	return "start"
}

func (m *merger) execDecision(x proposal.Exec) proposal.ExecDecision {
	m.execFloor(x)
	m.observeCandidate(func(would *merger) { would.execFloor(x) })
	d := proposal.ExecDecision{Effect: m.strictestEffect(), Rules: slices.Sorted(maps.Keys(m.rules)),
		Cacheable: !m.beyond && len(x.Env) == 0 && x.Under == ""}
	if d.Effect != proposal.Allow {
		d.Effect = proposal.Deny
	}
	d.Reason = mostImportantReason(m.reasons)
	d.Observed = d.Effect == proposal.Allow && d.Reason != nil
	return d
}

// mostImportantReason picks the most important reason: a deny before an ask, an effective one before
// one that is only observed.
func mostImportantReason(reasons []proposal.Reason) *proposal.Reason {
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
