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

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/internal/shell/snippet"
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
	b.WriteString("# Inputs and answers of rules\n\nThe fields of `input` at each decision point, of which every one is always present, and the sets that rules fill there: a member is an object " +
		"with the keys,\nof which those in brackets may be left out. \"policy\" says whose rules count, by [the flag](POLICY.md#whose-policy-may-do-what) that passes them. This page is generated. " +
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
			fields = nil
		}
		if point == module.PointSnippet {
			fields = slices.DeleteFunc(fields, func(f Field) bool { return strings.HasPrefix(f.Path, "input.proposal.") })
		}
		if len(fields) > 0 {
			writeTable(&b, fields)
		}
		list, err := ListAnswers(point)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n| set | keys | policy | meaning |\n| --- | --- | --- | --- |\n")
		for _, a := range list {
			if a.Description == "" {
				t.Errorf("%s has no description", a.Set)
			}
			keepsLess := point == module.PointOutput && a.Set == "redact" // it only takes away
			if (a.Policy == ofAll) == (module.IsWidening(a.Set) && !keepsLess) {
				t.Errorf("%s: %s is filled by rules of %s", point, a.Set, a.Policy)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Set, a.Keys, a.Policy, a.Description)
		}
	}
	golden(t, "../../docs/INPUTS.md", b.Bytes())
}

// Each field with a closed list has a value of that list, or none, in the inputs of the corpora.
func TestVocabularies(t *testing.T) {
	lanetest.SkipShort(t)
	e, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]map[string]bool{}
	var check func(v reflect.Value)
	check = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Slice:
			for i := range v.Len() {
				check(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				f, values := v.Type().Field(i), []reflect.Value{v.Field(i)}
				if f.Type == reflect.TypeFor[[]string]() {
					values = nil
					for k := range v.Field(i).Len() {
						values = append(values, v.Field(i).Index(k))
					}
				}
				for _, one := range values {
					known := module.Vocabulary(f)
					if known == nil {
						check(one)
						continue
					}
					if seen[f.Tag.Get("enum")] == nil {
						seen[f.Tag.Get("enum")] = map[string]bool{}
					}
					seen[f.Tag.Get("enum")][one.String()] = true
					if one.String() != "" && !slices.Contains(known, one.String()) {
						t.Errorf("%s.%s is %q", v.Type(), f.Name, one)
					}
				}
			}
		}
	}
	files, err := filepath.Glob("../../testdata/corpus/*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.SplitSeq(string(content), "\n---\n") {
			p := proposal.Proposal{ID: "t", Run: text}
			a := parse.Analyze(p)
			a.Snippets = snippet.ReadSnippets(p, a)
			check(reflect.ValueOf(e.proposalInput(p, a)))
			for _, in := range e.describeCommands(p, a) {
				check(reflect.ValueOf(in))
			}
			for _, s := range a.Snippets {
				check(reflect.ValueOf(snippetInputOf(s)))
			}
		}
	}
	for _, name := range []string{"place", "program", "starts", "stdin", "redirect", "effect", "code", "via", "can"} {
		if len(seen[name]) < 2 {
			t.Errorf("%s: only %v was tried", name, seen[name])
		}
	}
}
