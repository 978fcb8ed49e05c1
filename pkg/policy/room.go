// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// What stands here is for the packages of this room, which try and explain policies:
// nobody else may import OPA.

// Points are the names of the decision points.
func Points() []string { return slices.Clone(points) }

// Sets are the names of the sets that mean something at point, or nil.
func Sets(point string) []string { return slices.Clone(sets[point]) }

// PackageOf is the name of m's package, without data.
func PackageOf(m *ast.Module) string { return packageOf(m) }

// Capabilities are what a policy may use of OPA, in a copy.
func Capabilities() *ast.Capabilities {
	c := *capabilities()
	c.Builtins = slices.Clone(c.Builtins)
	return &c
}

// Shipped is the shipped policy with its tests.
func Shipped() (Layer, error) {
	files, err := collect(policies.FS)
	if err != nil {
		return Layer{}, stop(codeMissing, "cannot read the shipped policy", "reinstall fumehood", err)
	}
	return Layer{Name: DefaultLayer, Role: Grants, Files: files}, nil
}

// A Document is one input that Decide puts to a decision point.
type Document struct {
	Point   string
	Command int // index into Analysis.Commands; -1 of the proposal's own
	Input   ast.Value
}

// Documents are the inputs that Decide puts about p, of which a is the analysis: first
// that of fumehood.proposal, then one a command.
func (e *Engine) Documents(p proposal.Proposal, a proposal.Analysis) []Document {
	shared := termOf(reflect.ValueOf(e.proposalInput(p, a)))
	all := []Document{{pointProposal, whole, e.document(shared, commandInput{})}}
	_ = e.eachCommand(p, a, func(_ proposal.Command, in commandInput) error {
		all = append(all, Document{pointCommand, in.Index, e.document(shared, in)})
		return nil
	})
	return all
}

// InputField says what is wrong with a path below input at point: the first part that
// no input has, and those that it could be. It is "" where the path is right.
func InputField(point string, path []string) (wrong string, known []string) {
	document := documentOf(point)
	for _, part := range path {
		for document.Kind() == reflect.Slice {
			return "", nil // an index
		}
		if document.Kind() != reflect.Struct {
			return part, nil
		}
		field, ok := fieldOf(document, part)
		if !ok {
			return part, fieldNames(document)
		}
		document = field
	}
	return "", nil
}

func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		if fieldName(t.Field(i)) == name {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		names = append(names, fieldName(t.Field(i)))
	}
	return names
}

// IsTest reports whether f holds tests in Rego.
func (f File) IsTest() bool { return strings.HasSuffix(f.Name, "_test.rego") }

// IsCases reports whether f holds cases.
func (f File) IsCases() bool {
	name := path.Base(f.Name)
	return slices.Contains([]string{"cases.yaml", "cases.yml"}, name) || strings.HasSuffix(name, "_cases.yaml") || strings.HasSuffix(name, "_cases.yml")
}

// HoldsData reports whether f is data that rules read.
func (f File) HoldsData() bool { return f.holdsData() }

// ParseFile parses a file of Rego with its METADATA, within the bounds that policies have.
func ParseFile(layer string, f File) (*ast.Module, error) { return parseWith(layer, f, true) }

// Store is what the layer's rules read.
func (l Layer) Store() (storage.Store, error) { return l.store() }

// Meant says which of known was meant by wrong, and else which there are.
func Meant(wrong string, known []string) string { return meant(wrong, known) }

// Heap is what the process's objects take.
func Heap() uint64 { return heap() }

// Dead reports whether an evaluation never ended, so that e decides nothing any more.
func (e *Engine) Dead() bool { return e.dead.Load() }

// Instead says what to do in place of a built-in that policies may not use, or false.
func Instead(builtin string) (string, bool) { return removed(builtin) }
