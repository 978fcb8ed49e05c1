// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// Bounds of one layer's answer at one point. A term may contain another one many times at
// no cost, so a few lines of Rego can expand to more than any memory: a value is counted
// in its expanded form.
const (
	maxValues = 100_000
	maxText   = 4 << 20
)

var errAnswer = errors.New("the answer is too large")

// plainValue converts an answer into Go values, with sets in order.
func plainValue(t *ast.Term, _ *rego.EvalContext) (any, error) {
	return (&valueConverter{}).convertValue(t.Value)
}

type valueConverter struct{ values, text int }

func (p *valueConverter) countValue(text int) error {
	p.values++
	if p.text += text; p.values > maxValues || p.text > maxText {
		return fmt.Errorf("%w: at most %d values and %d KiB", errAnswer, maxValues, maxText>>10)
	}
	return nil
}

func (p *valueConverter) convertValue(v ast.Value) (any, error) {
	switch v := v.(type) {
	case ast.String:
		return string(v), p.countValue(len(v))
	case ast.Number:
		return json.Number(v), p.countValue(len(v))
	case ast.Boolean:
		return bool(v), p.countValue(0)
	case ast.Null:
		return nil, p.countValue(0)
	case *ast.Array:
		return p.convertList(v.Len(), v.Until)
	case ast.Set:
		if v.Len() > maxValues {
			return nil, p.countValue(maxText)
		}
		sorted := v.Sorted()
		return p.convertList(sorted.Len(), sorted.Until)
	case ast.Object:
		return p.convertObject(v)
	}
	return nil, fmt.Errorf("the answer contains a term that is not a value: %s", ast.ValueName(v))
}

func (p *valueConverter) convertList(n int, until func(func(*ast.Term) bool) bool) (any, error) {
	err := p.countValue(0)
	list := make([]any, 0, min(n, 1000))
	until(func(t *ast.Term) bool {
		var value any
		if err == nil {
			value, err = p.convertValue(t.Value)
			list = append(list, value)
		}
		return err != nil
	})
	return list, err
}

func (p *valueConverter) convertObject(o ast.Object) (any, error) {
	err := p.countValue(0)
	object := map[string]any{}
	o.Until(func(k, v *ast.Term) bool {
		name, ok := k.Value.(ast.String)
		if err == nil && !ok {
			err = errors.New("the answer contains an object with a key that is not a string")
		}
		if err == nil {
			err = p.countValue(len(name))
		}
		if err == nil {
			object[string(name)], err = p.convertValue(v.Value)
		}
		return err != nil
	})
	return object, err
}
