// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// whole, in place of a command's index, is the proposal or trigger itself.
const whole = -1

func (e *Engine) decideProposal(
	ctx context.Context, p proposal.Proposal, a proposal.Analysis,
) (proposal.Decision, error) {
	m := newMerger(e)
	m.suggests = true
	in := input{Workspace: e.workspace.Path, Proposal: e.proposalInput(p, a)}
	shared := termOf(reflect.ValueOf(in.Proposal))
	if err := e.askLayers(ctx, m, module.PointProposal, e.commandDocument(shared, in.Command), whole, ""); err != nil {
		return proposal.Decision{}, err
	}
	if err := e.askCommands(ctx, m, shared, p, a); err != nil {
		return proposal.Decision{}, err
	}
	return m.buildDecision(p, a)
}

// askCommands asks about each command of p and the code that they carry; shared is the
// proposal's part of the input.
func (e *Engine) askCommands(
	ctx context.Context, m *merger, shared *ast.Term, p proposal.Proposal, a proposal.Analysis,
) error {
	for written, ci := range e.describeCommands(p, a) {
		err := e.askLayers(ctx, m, module.PointCommand, e.commandDocument(shared, ci), ci.Index, textOf(written))
		if err != nil {
			return err
		}
		if !m.allowed[ci.Index] && !m.isDenied(ci.Index) { // else a rule has a better message
			m.noRule(ci, textOf(written), e.suggestConfiguration(ctx, m, shared, p, a, ci))
		}
		if would := m.would; would != nil && !would.allowed[ci.Index] && !would.isDenied(ci.Index) {
			would.noRule(ci, textOf(written), "")
		}
	}
	return e.askSnippets(ctx, m, shared, a)
}

// suggestConfiguration says what to write if policy would allow the command c of p, had the configuration named its
// program as a tool that reads. It is "" for all but the first such command: the trial costs as much as a decision.
func (e *Engine) suggestConfiguration(
	ctx context.Context, m *merger, shared *ast.Term, p proposal.Proposal, a proposal.Analysis, c commandInput,
) string {
	if !m.suggests || c.Place != "lookup" || e.grammars[c.Program] != nil {
		return ""
	}
	m.suggests = false
	other := &Engine{sharedState: e.sharedState, context: e.context, contextTerm: e.contextTerm}
	other.grammars, other.tools, other.onRule = e.grammars.AddInspectors([]string{c.Program}), []string{c.Program}, nil
	trial := emptyMerger(other)
	for _, ci := range other.describeCommands(p, a) {
		if ci.Index != c.Index {
			continue
		}
		document := other.commandDocument(shared, ci)
		err := other.askLayers(ctx, trial, module.PointCommand, document, ci.Index, "")
		if err == nil && trial.allowed[c.Index] && !trial.isDenied(c.Index) {
			return fmt.Sprintf("; if the tool only reads files, the configuration can name it: allow-tools: [%s]", c.Program)
		}
		break
	}
	return ""
}

// describeCommands are the commands of p in order, each as it is written and as rules see it.
func (e *Engine) describeCommands(
	p proposal.Proposal, a proposal.Analysis,
) iter.Seq2[proposal.Command, commandInput] {
	return func(yield func(proposal.Command, commandInput) bool) {
		known, early := facts.NewExpander(p, a.Commands, a.Canonical), make([]proposal.Command, len(a.Commands))
		for i, written := range a.Commands {
			early[i] = known.ResolveCommand(written, nil)
		}
		links := known.FindLinks(e.grammars, p.Cwd, e.workspace, early)
		for i := range early {
			early[i] = links.FollowCommand(early[i])
		}
		cwds, env := facts.TrackCwds(p.Cwd, e.workspace, early), facts.TrackEnvironment(p, a.Commands)
		for _, written := range a.Commands {
			in := links.FollowCwds(cwds.EnterCommand(written), e.workspace)
			c := links.FollowCommand(known.ResolveCommand(written, in))
			c = facts.ShowSearch(c, a.Canonical, in, e.workspace)
			ci := e.commandInput(c, in, env.EnvironmentOf(c), a.Canonical)
			if p.Form() == "code" && (p.Language == "python" || p.Language == "javascript") {
				ci.Homes = nil // no shell reads a snippet: its ~ is not expanded
			}
			if !yield(written, ci) {
				return
			}
			cwds.RecordCommand(c)
			env.RecordCommand(c)
		}
	}
}

// textOf is c's text in a reason: its words, shortened.
func textOf(c proposal.Command) string {
	text := strings.Join(c.Argv(), " ")
	if text == "" && len(c.Assigns) > 0 {
		text = c.Assigns[0].Name + "="
	}
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

var documentKeys = fieldKeys(reflect.TypeFor[input]())

func (e *Engine) commandDocument(shared *ast.Term, c commandInput) ast.Value {
	return e.addContext(ast.NewObject(
		[2]*ast.Term{documentKeys[0], ast.InternedTerm(e.workspace.Path)},
		[2]*ast.Term{documentKeys[1], shared},
		[2]*ast.Term{documentKeys[2], termOf(reflect.ValueOf(c))},
	))
}

// askLayers evaluates one document in every layer that has rules at the point.
func (e *Engine) askLayers(
	ctx context.Context, m *merger, name string, document ast.Value, command int, text string,
) error {
	from := len(m.reasons)
	for _, l := range e.layers {
		p := l.points[name]
		if p == nil {
			continue
		}
		c, err := p.compiled()
		if err != nil {
			return err
		}
		var rs rego.ResultSet
		l.usageMeter(ctx).Run(func() {
			rs, err = c.query.Eval(ctx, slices.Concat(e.common, e.listenerOptions(l),
				[]rego.EvalOption{rego.EvalParsedInput(document), rego.EvalExternalCancel(contextCancel{ctx})})...)
		})
		if err != nil {
			return evalStop(ctx, l.name, name, err)
		}
		if len(rs) != 1 {
			return module.Stop(module.CodeNoDecision, fmt.Sprintf("layer %q returned no result at %s", l.name, name),
				"fix the policy: a set is undefined", nil)
		}
		result, ok := rs[0].Bindings["result"].(map[string]any)
		if !ok {
			return module.Stop(module.CodeNoDecision,
				fmt.Sprintf("layer %q did not return an object at %s", l.name, name), "this is a defect: report it",
				nil)
		}
		m.beyond = m.beyond || c.beyond || guardHeld(result)
		delete(result, module.GuardSet)
		m.readReply(l, reply{result, command, text,
			func(set string) string { return l.describePlaces(ctx, Document{name, command, document}, set) }})
	}
	m.applyOverrides(from)
	return nil
}

// guardHeld reports whether result contains a guard, so that the answer must not be reused.
func guardHeld(result map[string]any) bool {
	value, asked := result[module.GuardSet]
	guards, ok := value.([]any)
	return asked && (!ok || len(guards) > 0)
}
