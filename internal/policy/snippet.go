// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"reflect"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// snippetDocument is the input document of fumehood.snippet, evaluated once for each piece
// of code in the proposal's text. The code was read, not run: a rule may deny because of
// it, and must not allow.
type snippetDocument struct {
	Workspace string        `json:"workspace"` // the path of the workspace in the sandbox
	Proposal  proposalInput `json:"proposal"`  // the whole proposal
	Snippet   snippetInput  `json:"snippet"`   // the code that is decided
}

type snippetInput struct {
	Language     string         `json:"language" enum:"code"`    // of the code
	Via          string         `json:"via" enum:"via"`          // how it is given
	Command      int            `json:"command"`                 // index of the command that contains it
	Size         int            `json:"size"`                    // bytes
	Complete     bool           `json:"complete"`                // all of it was read and understood
	SyntaxOnly   bool           `json:"syntax_only"`             // it is not run: its interpreter says what is wrong with its syntax
	Imports      []string       `json:"imports"`                 // modules that it imports
	Capabilities []string       `json:"capabilities" enum:"can"` // what it can do
	Findings     []findingInput `json:"findings"`                // what the search found
}

type findingInput struct {
	Code    string `json:"code"`    // stable, for rules
	Message string `json:"message"` // for people
	Line    int    `json:"line"`    // of the snippet, from 1
	Column  int    `json:"column"`  // from 1
}

func snippetInputOf(s proposal.Snippet) snippetInput {
	in := snippetInput{Language: s.Language, Via: s.Via, Command: s.Command, Size: s.Size, Complete: s.Complete,
		SyntaxOnly: s.SyntaxOnly, Imports: s.Imports, Capabilities: s.Capabilities}
	for _, f := range s.Findings {
		in.Findings = append(in.Findings, findingInput{f.Code, f.Message, f.Span.Line, f.Span.Col})
	}
	return in
}

var snippetKeys = fieldKeys(reflect.TypeFor[snippetDocument]())

func (e *Engine) snippetDocument(shared *ast.Term, s proposal.Snippet) ast.Value {
	return e.addContext(ast.NewObject(
		[2]*ast.Term{snippetKeys[0], ast.InternedTerm(e.workspace.Path)},
		[2]*ast.Term{snippetKeys[1], shared},
		[2]*ast.Term{snippetKeys[2], termOf(reflect.ValueOf(snippetInputOf(s)))},
	))
}

// askSnippets evaluates each snippet of a; shared is the proposal's part of the input.
func (e *Engine) askSnippets(ctx context.Context, m *merger, shared *ast.Term, a proposal.Analysis) error {
	for _, s := range a.Snippets {
		command, text := whole, ""
		if s.Command >= 0 && s.Command < len(a.Commands) {
			command, text = s.Command, textOf(a.Commands[s.Command])
		}
		if err := e.askLayers(ctx, m, module.PointSnippet, e.snippetDocument(shared, s), command, text); err != nil {
			return err
		}
	}
	return nil
}
