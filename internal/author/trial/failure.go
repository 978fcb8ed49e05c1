// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/print"
)

// failureTracer records the last expression that failed, overall and in each case of a test
// with several. A complete trace would grow with the length of the test.
type failureTracer struct {
	last  *topdown.Event
	now   string
	parts map[string]*topdown.Event
}

// Enabled, Config and TraceEvent implement OPA's interface.
func (f *failureTracer) Enabled() bool               { return true }
func (f *failureTracer) Config() topdown.TraceConfig { return topdown.TraceConfig{PlugLocalVars: true} }
func (f *failureTracer) TraceEvent(e topdown.Event) {
	expr, ok := e.Node.(*ast.Expr)
	switch {
	case !ok:
	case e.Op == topdown.TestCaseOp:
		f.now = caseName(expr)
	case e.Op != topdown.FailOp || e.Location == nil || e.QueryID == 0:
	default:
		if _, isEvery := expr.Terms.(*ast.Every); isEvery {
			return // the failure is in it
		}
		f.last = &e
		if f.now != "" {
			f.parts[f.now] = &e
		}
	}
}

func caseName(e *ast.Expr) string {
	list, ok := e.Operand(0).Value.(*ast.Array)
	if !ok {
		return ""
	}
	var names []string
	for i := range list.Len() {
		if s, ok := list.Elem(i).Value.(ast.String); ok {
			names = append(names, string(s))
			continue
		}
		value, err := ast.JSON(list.Elem(i).Value)
		text, jsonErr := json.Marshal(value)
		if err != nil || jsonErr != nil {
			text = []byte(list.Elem(i).String())
		}
		names = append(names, string(text))
	}
	return strings.Join(names, "\x00")
}

// readableExpression is e in readable form, or nil.
func readableExpression(e *topdown.Event) *Expression {
	if e == nil {
		return nil
	}
	var b bytes.Buffer
	if err := topdown.PrettyEvent(&b, e, topdown.PrettyEventOpts{PrettyVars: true}); err != nil {
		fmt.Fprintf(&b, "%s", e.Location.Text)
	}
	return &Expression{File: e.Location.File, Line: e.Location.Row, Text: strings.TrimRight(b.String(), "\n ")}
}

// maxPrinted limits the recorded output of a test.
const maxPrinted = 64 << 10

// printed records what a test prints.
type printed struct {
	mu sync.Mutex // an abandoned test continues to print
	b  strings.Builder
}

// Print implements OPA's interface.
func (p *printed) Print(at print.Context, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if room := maxPrinted - p.b.Len(); room <= 0 {
		return nil
	} else if len(text) > room {
		text = text[:room] + "…"
	}
	if at.Location != nil {
		fmt.Fprintf(&p.b, "%s:%d: ", at.Location.File, at.Location.Row)
	}
	fmt.Fprintln(&p.b, text)
	return nil
}

func (p *printed) printedText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.ToValidUTF8(p.b.String(), "\ufffd")
}
