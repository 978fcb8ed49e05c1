// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// contextName is the field that the input of every decision point has besides its own: the
// Engine's Context, which is constant.
const contextName = "context"

const contextWords = "what the run is about, the same at every decision point"

var contextKey = ast.StringTerm(contextName)

// documentTypes are the types of whole input documents, by the type of their own fields.
var documentTypes sync.Map

// documentOf is the type of the point's whole input document: its own fields, and the context.
func documentOf(point string) reflect.Type {
	own := ownDocument(point)
	if whole, ok := documentTypes.Load(own); ok {
		return whole.(reflect.Type)
	}
	whole := reflect.StructOf(append(reflect.VisibleFields(own), reflect.StructField{Name: "Context",
		Type: reflect.TypeFor[proposal.Context](), Tag: `json:"` + contextName + `"`}))
	documentTypes.Store(own, whole)
	return whole
}

// newDocument is the input document with own, a decision point's own fields.
func (e *Engine) newDocument(own any) ast.Value {
	return e.addContext(termOf(reflect.ValueOf(own)).Value.(ast.Object))
}

// addContext adds the context to an input document that has only its own fields.
func (e *Engine) addContext(document ast.Object) ast.Value {
	document.Insert(contextKey, e.contextTerm)
	return document
}

// setContext sets the context of an Engine that has made no document yet.
func (e *Engine) setContext(c proposal.Context) error {
	clean, err := points.CleanContext(c)
	if err != nil {
		return module.Stop(module.CodeContext, "invalid context of the run", "make it smaller, or fix this field", err)
	}
	e.context, e.contextTerm = clean, termOf(reflect.ValueOf(clean))
	return nil
}

// Context is what rules see as input.context.
func (e *Engine) Context() proposal.Context { return e.context }

// WithContext is an Engine with the same layers and Warnings, and another context. It compiles
// nothing.
func (e *Engine) WithContext(c proposal.Context) (*Engine, error) {
	other := &Engine{sharedState: e.sharedState, jobs: make(chan func())}
	return other, other.setContext(c)
}

// ReuseDigest is the Digest, and of a policy whose rules read the context also what they can read
// of it. What one run leaves for later ones must be kept under it: under another context, policy
// might not have allowed what made it.
func (e *Engine) ReuseDigest() string {
	read := e.readContext()
	if len(read) == 0 {
		return e.digest
	}
	data, err := json.Marshal(read) // with sorted names
	if err != nil {
		panic("policy: internal error: a context cannot be encoded: " + err.Error())
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(append([]byte("context\n"+e.digest+"\n"), data...)))
}

// readContext is what the rules of any layer may read of the context, by name.
func (e *Engine) readContext() map[string]any {
	read, value := map[string]any{}, reflect.ValueOf(e.context)
	for _, l := range e.layers {
		for i, name := range module.FieldNames(value.Type()) {
			if l.reads.has(name) {
				read[name] = value.Field(i).Interface()
			}
		}
	}
	return read
}

// contextReads are the fields of the context that a layer's rules name; all means that they may
// read any.
type contextReads struct {
	names map[string]bool
	all   bool
}

func readsOf(rules *module.Graph) contextReads {
	r := contextReads{names: map[string]bool{}}
	r.all = rules.InputFields(contextName, r.names)
	return r
}

func (r contextReads) has(field string) bool { return r.all || r.names[field] }

// ReadsContext reports whether rules of l may read this field of the context. It does, if l has a
// file that cannot be parsed.
func (l Layer) ReadsContext(field string) bool {
	modules, err := parseModules(context.Background(), l.withoutTests())
	return err != nil || readsOf(module.NewGraph(modules)).has(field)
}
