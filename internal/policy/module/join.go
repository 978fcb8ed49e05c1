// SPDX-License-Identifier: Apache-2.0

package module

import (
	"bytes"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxJoined is the maximum bytes of a text that is joined: a long separator between many
// texts could need any memory.
const maxJoined = 16 << 10

// joinLiterals replaces each concat of a literal separator and literal texts with its value,
// so that a long pattern can be written in parts: all others read it as one literal, and no
// decision makes it again.
func joinLiterals(m *ast.Module, content []byte) error {
	if !bytes.Contains(content, []byte("concat(")) {
		return nil
	}
	_, err := ast.Transform(ast.NewGenericTransformer(func(n any) (any, error) {
		if call, ok := n.(ast.Call); ok {
			if text, ok := joinConcat(call); ok {
				return text, nil
			}
		}
		return n, nil
	}), m)
	return err
}

// joinConcat is the value of call if it is a concat of literals.
func joinConcat(call ast.Call) (ast.String, bool) {
	if len(call) != 3 || call[0].String() != ast.Concat.Name {
		return "", false
	}
	between, ok := call[1].Value.(ast.String)
	list, also := call[2].Value.(*ast.Array)
	if !ok || !also {
		return "", false
	}
	var parts []string
	size := len(between) * list.Len()
	list.Foreach(func(t *ast.Term) {
		part, ok := t.Value.(ast.String)
		if call, nested := t.Value.(ast.Call); nested {
			part, ok = joinConcat(call)
		}
		if ok {
			parts, size = append(parts, string(part)), size+len(part)
		}
	})
	if len(parts) != list.Len() || size > maxJoined {
		return "", false
	}
	return ast.String(strings.Join(parts, string(between))), true
}
