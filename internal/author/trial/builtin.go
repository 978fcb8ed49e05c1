// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// forTests are the built-ins for tests.
var forTests = []string{module.BuiltinParse, module.BuiltinDecide, module.BuiltinParseWith, module.BuiltinDecideWith}

var declared = types.NewFunction(types.Args(types.Named("text", types.S),
	types.Named("options", types.NewObject(nil, types.NewDynamicProperty(types.S, types.A)))), types.A)

// testCapabilities are a policy's, with the built-ins for tests.
func testCapabilities() *ast.Capabilities {
	c := module.Capabilities()
	for _, name := range forTests {
		c.Builtins = append(c.Builtins, &ast.Builtin{Name: name, Decl: declared})
	}
	return c
}

// spellOut adds the optional second argument to calls of the built-ins: a built-in of OPA
// has a fixed number of arguments.
func spellOut(m *ast.Module) {
	full := func(call []*ast.Term) []*ast.Term {
		if name := call[0].Value.String(); len(call) == 2 &&
			(name == module.BuiltinParse || name == module.BuiltinDecide) {
			return append(call[:2:2], ast.ObjectTerm().SetLocation(call[0].Location))
		}
		return call
	}
	ast.WalkExprs(m, func(e *ast.Expr) bool {
		if call, ok := e.Terms.([]*ast.Term); ok && len(call) > 0 {
			e.Terms = full(call)
		}
		return false
	})
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if call, ok := t.Value.(ast.Call); ok && len(call) > 0 {
			t.Value = ast.Call(full(call))
		}
		return false
	})
}

// testBuiltins implement them.
func (t *trial) testBuiltins(ctx context.Context) []func(*rego.Rego) {
	function := func(name string, do func(proposal.Proposal, int) (ast.Value, error)) func(*rego.Rego) {
		return rego.Function2(&rego.Function{Name: name, Decl: declared},
			func(_ rego.BuiltinContext, text, options *ast.Term) (*ast.Term, error) {
				p, command, err := meantBy(text, options)
				if err == nil {
					var v ast.Value
					if v, err = do(p, command); err == nil {
						return ast.NewTerm(v), nil
					}
				}
				return nil, rego.NewHaltError(err)
			})
	}
	decide := func(p proposal.Proposal, _ int) (ast.Value, error) { return t.decisionValue(ctx, p) }
	return []func(*rego.Rego){
		function(module.BuiltinParse, t.inputDocument), function(module.BuiltinParseWith, t.inputDocument),
		function(module.BuiltinDecide, decide), function(module.BuiltinDecideWith, decide),
	}
}

// meantBy reads a text and the options with it.
func meantBy(text, options *ast.Term) (proposal.Proposal, int, error) {
	p, command := proposal.Proposal{ID: "test"}, 0
	written, ok := text.Value.(ast.String)
	if !ok {
		return p, 0, errors.New("the first argument is not a string")
	}
	value, err := ast.JSON(options.Value)
	if err != nil {
		return p, 0, err
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return p, 0, errors.New("the second argument is not an object")
	}
	if given, ok := fields["command"]; ok {
		number, ok := given.(json.Number)
		n, err := number.Int64()
		if !ok || err != nil || n < -1 {
			return p, 0, errors.New(`"command" must be the index of a command, from 0, or -1 for the proposal itself`)
		}
		delete(fields, "command")
		command = int(n)
	}
	changes, err := json.Marshal(fields)
	if err != nil {
		return p, 0, err
	}
	if err := decodeStrict(changes, &p); err != nil {
		return p, 0, err
	}
	switch {
	case p.Run != "" || p.Code != "" || len(p.Argv) > 0:
		return p, 0, errors.New("the text is the first argument: remove run, argv and code, and give language for code")
	case p.Language != "":
		p.Code = string(written)
	default:
		p.Run = string(written)
	}
	return p, command, nil
}

// inputDocument is the input of one command.
func (t *trial) inputDocument(p proposal.Proposal, command int) (ast.Value, error) {
	a := t.Analyse(p)
	all := t.engine.Documents(p, a)
	if command == -1 {
		return all[0].Input, nil
	}
	commands := all[1:]
	if len(commands) == 0 {
		why := ""
		if len(a.Unknowns) > 0 {
			why = ": " + a.Unknowns[0].Message
		}
		return nil, errors.New("no command was found" + why)
	}
	if command >= len(commands) {
		return nil, fmt.Errorf("no command %d: the text has %d", command, len(commands))
	}
	return commands[command].Input, nil
}

func (t *trial) decisionValue(ctx context.Context, p proposal.Proposal) (ast.Value, error) {
	d, err := t.engine.Decide(ctx, p, t.Analyse(p))
	if err = t.renewDeadEngine(ctx, err); err != nil {
		return nil, err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return ast.ValueFromReader(bytes.NewReader(text))
}
