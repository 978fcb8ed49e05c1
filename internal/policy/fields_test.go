// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var update = flag.Bool("update", false, "rewrite the files that are made from the source")

// commentsOf reads the comments of the fields of the structs of a package's source, by
// package, type and name in documents.
func commentsOf(t *testing.T, dir, pkg string, into map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", dir, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					if f.Tag == nil {
						continue
					}
					name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
					into[pkg+"."+spec.Name.Name+"."+name] = strings.Join(strings.Fields(cmp.Or(f.Comment.Text(), f.Doc.Text())), " ")
				}
			}
			return true
		})
	}
}

// TestFieldsAreDescribed: each field of each input has a description, which is its comment
// in Go. With -update it writes fields.json, which has them for the program.
func TestFieldsAreDescribed(t *testing.T) {
	comments, used := map[string]string{}, map[string]string{}
	commentsOf(t, ".", "policy", comments)
	commentsOf(t, "facts", "facts", comments)
	commentsOf(t, "../../pkg/proposal", "proposal", comments)
	commentsOf(t, "../../internal/kit/points", "points", comments)
	var follow func(at reflect.Type)
	follow = func(at reflect.Type) {
		for at.Kind() == reflect.Slice {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct {
			return
		}
		for f := range at.Fields() {
			key := fieldKey(at, module.FieldName(f))
			if used[key] = comments[key]; used[key] == "" {
				t.Errorf("%s has no comment", key)
			}
			follow(f.Type)
		}
	}
	for _, point := range module.Points() {
		follow(ownDocument(point))
	}
	follow(reflect.TypeFor[proposal.Context]())
	data, err := json.MarshalIndent(used, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "fields.json", append(data, '\n'))
}

func golden(t *testing.T, name string, content []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(name); err != nil || !bytes.Equal(content, want) {
		t.Errorf("%s is not what the source says: run .ci/update; %v", name, err)
	}
}

func writeTable(b *bytes.Buffer, fields []Field) {
	b.WriteString("| field | type | meaning |\n| --- | --- | --- |\n")
	for _, f := range fields {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.Path, f.Type, strings.ReplaceAll(f.Description, "|", "\\|"))
	}
}

// TestFieldsPage: docs/INPUTS.md lists all fields of all inputs.
func TestFieldsPage(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Inputs of rules\n\nThe fields of `input` at each decision point; every field is always present. This page is generated. " +
		"`fumehood policy explain --describe POINT`\nprints a part of it, `fumehood policy explain --input 'COMMAND'` the input of a command.\n\n" +
		"`input.command.argv[0]` is the first argument, not the program. `input.command.sub` is empty for tools whose options fumehood does not know:\nuse `argv` or `operands` there.\n")
	b.WriteString("\n## input.context\n\nWhat the run is about: the same fields, with the same values, at every decision point.\n\n")
	writeTable(&b, ContextFields())
	for _, point := range module.Points() {
		fields, err := InputFields(point)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n", point)
		if point == module.PointProposal {
			b.WriteString("As `fumehood.command`. `input.command` is empty.\n")
			continue
		}
		if point == module.PointSnippet {
			fields = slices.DeleteFunc(fields, func(f Field) bool { return strings.HasPrefix(f.Path, "input.proposal.") })
		}
		writeTable(&b, fields)
	}
	golden(t, "../../docs/INPUTS.md", b.Bytes())
}
