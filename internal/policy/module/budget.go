// SPDX-License-Identifier: Apache-2.0

package module

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// A deadline is checked between two steps of an evaluation, and never within a built-in:
// one call of concat or sprintf can need more memory than there is, and Go ends the
// process. So the arguments of a call and the size of its result are limited before it
// starts, and the results of all calls of one decision are counted.
const (
	maxOfCall     = 2 << 20  // bytes or elements that one call makes
	maxOfDecision = 64 << 20 // bytes that the calls of one decision make
	MaxDigits     = 400      // of a number, or its exponent
	maxWeighed    = 200_000  // values that a call copies
)

type budgetKey struct{}

// A budget counts the results of one decision's built-ins. One goroutine uses it at a time.
type budget struct{ spent int }

// WithBudget returns a context for one decision, whose built-ins are counted together.
func WithBudget(ctx context.Context) context.Context {
	return context.WithValue(ctx, budgetKey{}, new(budget))
}

var errBudget = errors.New("the result of a built-in is too large")

// grows are the built-ins whose result is not proportional to their arguments, with its
// maximum size.
var grows = map[string]func([]*ast.Term) int{
	"concat":                   func(t []*ast.Term) int { return expandedSize(t[1]) + lengthOf(t[1])*sizeOf(t[0]) },
	"sprintf":                  sprintfSize,
	"internal.template_string": func(t []*ast.Term) int { return 10 * expandedSize(t[0]) },
	"replace":                  func(t []*ast.Term) int { return sizeOf(t[0]) + countOccurrences(t[0], t[1])*sizeOf(t[2]) },
	"strings.replace_n":        func(t []*ast.Term) int { return (sizeOf(t[1]) + 1) * (1 + longestOf(t[0])) },
	"regex.replace":            func(t []*ast.Term) int { return (sizeOf(t[0])+1)*sizeOf(t[2]) + sizeOf(t[0])*countDollars(t[2]) },
	"json.marshal":             func(t []*ast.Term) int { return 6 * expandedSize(t[0]) },
	"urlquery.encode":          func(t []*ast.Term) int { return 3 * sizeOf(t[0]) },
	"urlquery.encode_object":   func(t []*ast.Term) int { return 3 * expandedSize(t[0]) },
	"array.flatten":            func(t []*ast.Term) int { return expandedSize(t[0]) },
	"array.concat":             func(t []*ast.Term) int { return lengthOf(t[0]) + lengthOf(t[1]) },
	"object.union":             func(t []*ast.Term) int { return expandedSize(t[0]) + expandedSize(t[1]) },
	"object.union_n":           func(t []*ast.Term) int { return expandedSize(t[0]) },
	"json.filter":              func(t []*ast.Term) int { return expandedSize(t[0]) },
	"json.remove":              func(t []*ast.Term) int { return expandedSize(t[0]) },
	"net.cidr_expand":          cidrSize,
	"numbers.range":            func(t []*ast.Term) int { return integerDistance(t[0], t[1]) },
	"numbers.range_step":       func(t []*ast.Term) int { return integerDistance(t[0], t[1]) },
	"split":                    func(t []*ast.Term) int { return sizeOf(t[0]) },
	"graph.reachable":          func(t []*ast.Term) int { return expandedSize(t[0]) },
}

// boundBuiltins adds the bounds to every built-in that policies may use, for the whole
// process: OPA has one table.
var boundBuiltins = sync.OnceFunc(func() {
	for _, name := range append(append([]string{}, allowed...), unhurried...) {
		if f := topdown.GetBuiltin(name); f != nil && !unbounded[name] {
			topdown.RegisterBuiltinFunc(name, withinBounds(name, f))
		}
	}
})

// unbounded are built-ins that make nothing and are called often.
var unbounded = map[string]bool{
	"eq": true, "equal": true, "neq": true, "assign": true, "count": true, "contains": true, "startswith": true, "endswith": true, "object.get": true,
	"internal.member_2": true, "internal.member_3": true, "internal.print": true, "internal.test_case": true, "print": true, "type_name": true,
	"is_array": true, "is_boolean": true, "is_null": true, "is_number": true, "is_object": true, "is_set": true, "is_string": true,
}

func withinBounds(name string, f topdown.BuiltinFunc) topdown.BuiltinFunc {
	size := grows[name]
	return func(b topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		for _, t := range operands {
			if !isAcceptableSize(t.Value) {
				return fmt.Errorf("%w: an argument of %s is too long", errBudget, name)
			}
		}
		if size != nil {
			if n := size(operands); n > maxOfCall {
				return fmt.Errorf("%w: %s", errBudget, name)
			}
		}
		if b.Context == nil {
			return f(b, operands, iter)
		}
		spent, counted := b.Context.Value(budgetKey{}).(*budget)
		if !counted {
			return f(b, operands, iter) // a test of a policy
		}
		return f(b, operands, func(t *ast.Term) error {
			if spent.spent += shallowSize(t.Value); spent.spent > maxOfDecision {
				return fmt.Errorf("%w: all calls of this decision together", errBudget)
			}
			return iter(t)
		})
	}
}

// isAcceptableSize reports whether the size of v itself is acceptable for every built-in.
func isAcceptableSize(v ast.Value) bool {
	switch v := v.(type) {
	case ast.String:
		return len(v) <= maxOfCall
	case ast.Number:
		return PlainNumber(string(v))
	}
	return shallowSize(v) <= 32*maxOfCall
}

// PlainNumber reports whether n can be calculated with: 1e999999999 is short.
func PlainNumber(n string) bool {
	digits, exponent, _ := strings.Cut(strings.ToLower(n), "e")
	exponent = strings.TrimLeft(exponent, "+-0")
	return len(digits) <= MaxDigits && (len(exponent) < 3 || len(exponent) == 3 && exponent <= "400")
}

// shallowSize is the size of v itself.
func shallowSize(v ast.Value) int {
	switch v := v.(type) {
	case ast.String:
		return len(v)
	case *ast.Array:
		return 32 * v.Len()
	case ast.Set:
		return 32 * v.Len()
	case ast.Object:
		return 64 * v.Len()
	}
	return 8
}

// expandedSize is the expanded size of t. It stops when that is too large.
func expandedSize(t *ast.Term) int {
	w := &sizeCounter{}
	w.addTerm(t)
	return w.size
}

type sizeCounter struct{ size, values int }

func (w *sizeCounter) addTerm(t *ast.Term) bool {
	w.values++
	w.size += 4 + sizeOf(t)
	if w.values > maxWeighed || w.size > 2*maxOfCall {
		w.size = 2*maxOfCall + 1
		return true
	}
	switch v := t.Value.(type) {
	case *ast.Array:
		return v.Until(w.addTerm)
	case ast.Set:
		return v.Until(w.addTerm)
	case ast.Object:
		return v.Until(func(k, e *ast.Term) bool { return w.addTerm(k) || w.addTerm(e) })
	}
	return false
}

// sizeOf is the length of a text or number, and 0 for everything else.
func sizeOf(t *ast.Term) int {
	switch v := t.Value.(type) {
	case ast.String:
		return len(v)
	case ast.Number:
		return len(v)
	}
	return 0
}

func lengthOf(t *ast.Term) int {
	switch v := t.Value.(type) {
	case *ast.Array:
		return v.Len()
	case ast.Set:
		return v.Len()
	case ast.Object:
		return v.Len()
	}
	return 0
}

func textOfTerm(t *ast.Term) string {
	s, _ := t.Value.(ast.String)
	return string(s)
}

func countOccurrences(in, of *ast.Term) int { return strings.Count(textOfTerm(in), textOfTerm(of)) }

func countDollars(t *ast.Term) int { return strings.Count(textOfTerm(t), "$") }

// longestOf is the longest value of an object of texts.
func longestOf(t *ast.Term) int {
	longest := 0
	if o, ok := t.Value.(ast.Object); ok {
		o.Foreach(func(_, v *ast.Term) { longest = max(longest, sizeOf(v)) })
	}
	return longest
}

// sprintfSize counts each verb as the longest argument, quoted, and each number in the
// format as a width.
func sprintfSize(t []*ast.Term) int {
	format, longest, width, n := textOfTerm(t[0]), 0, 0, 0
	if list, ok := t[1].Value.(*ast.Array); ok {
		list.Foreach(func(a *ast.Term) { longest = max(longest, 10*expandedSize(a)) })
	}
	for _, c := range []byte(format) {
		switch {
		case c == '*':
			width = maxOfCall
		case c < '0' || c > '9':
			n = 0
		default:
			n = min(10*n+int(c-'0'), maxOfCall)
			width = max(width, n)
		}
	}
	return len(format) + strings.Count(format, "%")*(longest+width)
}

// cidrSize is the number of addresses in a network.
func cidrSize(t []*ast.Term) int {
	address, bits, _ := strings.Cut(textOfTerm(t[0]), "/")
	all := 32
	if strings.Contains(address, ":") {
		all = 128
	}
	if n, _ := strconv.Atoi(bits); bits != "" && all-n > 16 {
		return maxOfCall + 1
	}
	return 0
}

// integerDistance is the number of integers between two.
func integerDistance(from, to *ast.Term) int {
	a, ok1 := from.Value.(ast.Number)
	b, ok2 := to.Value.(ast.Number)
	x, whole1 := a.Int64()
	y, whole2 := b.Int64()
	if !ok1 || !ok2 || !whole1 || !whole2 || x > 1<<40 || y > 1<<40 || x < -1<<40 || y < -1<<40 {
		return maxOfCall + 1
	}
	return int(10 * max(x-y, y-x))
}
