// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/cputime"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

// Root is the whole text.
func (t *Tree) Root() Node { return Node{t, 0} }

// Len is the number of nodes.
func (t *Tree) Len() int { return len(t.nodes) }

func shape(n Node) string {
	var text strings.Builder
	if n.Field() != "" {
		text.WriteString(n.Field() + ":")
	}
	text.WriteString(n.Kind())
	for child := range n.Children() {
		text.WriteString("(" + shape(child) + ")")
	}
	return text.String()
}

func TestParse(t *testing.T) {
	lanetest.SkipShort(t)
	for _, c := range []struct{ language, text, want string }{
		{"python", "import os as x", "module(import_statement(name:aliased_import(name:dotted_name(identifier))(alias:identifier)))"},
		{"python", "-a", "module(expression_statement(unary_operator(operator:-)(argument:identifier)))"},
		{"javascript", "eval(`x`)", "program(expression_statement(call_expression(function:identifier)(arguments:arguments(template_string(string_fragment)))))"},
		{"typescript", "a as B", "program(expression_statement(as_expression(identifier)(type_identifier)))"},
		{"python", "", "module"},
	} {
		tree, err := Parse(t.Context(), c.language, c.text)
		if err != nil {
			t.Fatalf("%q: %v", c.text, err)
		}
		if got := shape(tree.Root()); got != c.want || tree.Broken {
			t.Errorf("%q is\n%s, want\n%s (broken: %v)", c.text, got, c.want, tree.Broken)
		}
	}
}

func TestParseTellsWhatItDoesNotUnderstand(t *testing.T) {
	lanetest.SkipShort(t)
	for language, text := range map[string]string{"python": "import os; )(", "javascript": "{{", "typescript": "let : = 1"} {
		tree, err := Parse(t.Context(), language, text)
		if err != nil || !tree.Broken {
			t.Errorf("%s: %q is not broken: %v", language, text, err)
		}
	}
	if _, err := Parse(t.Context(), "perl", "1"); !errors.Is(err, ErrBroken) {
		t.Errorf("perl: %v", err)
	}
}

// TestBombs parses texts that are made to be slow, deep or large. Each must end soon,
// as a tree or as one of the errors, and the next text must parse as usual.
func TestBombs(t *testing.T) {
	lanetest.SkipShort(t)
	repeat := func(s string) string { return strings.Repeat(s, 16<<10/len(s)) }
	units := map[string]string{
		"parens": "(", "brackets": "[", "braces": "{", "lambda": "lambda:", "not": "not ", "attributes": "a.", "calls": "f(", "colons": "a:",
		"f-strings": "f'{", "indent": "if a:\n ", "comma": "a,", "minus": "-", "await": "await ", "arrows": "a=>", "templates": "`${", "generics": "a<", "jsx": "<a>",
		"quotes": "'", "NUL": "\x00", "broken": ")(]", "if-else": "a if b else ", "subscripts": "a[", "regex": "/a", "question": "a?", "types": "type a=", "async": "async ",
	}
	for _, name := range sample.EveryNthKey(t, units, 12, 26) {
		for language := range machines {
			clock := cputime.Start()
			tree, err := Parse(t.Context(), language, repeat(units[name]))
			if took := clock.Stop(); took > maxTime+2*time.Second {
				t.Errorf("%s %s took %v of a processor", language, name, took)
			} else if testing.Verbose() && took > time.Second/2 {
				t.Logf("%s %s: %v, %v", language, name, took, err)
			}
			if err == nil && tree.Len() > maxNodes || err != nil && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrBroken) {
				t.Errorf("%s %s: %v", language, name, err)
			}
		}
	}
	if !testing.Short() {
		if _, err := Parse(t.Context(), "python", repeat("<a>")); !errors.Is(err, ErrTooLong) { // not ended by steps
			t.Errorf("a text in which the parser is lost: %v", err)
		}
	}
	if _, err := Parse(t.Context(), "python", strings.Repeat("(", MaxText)); err != nil && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrTooLong) {
		t.Errorf("the deepest text: %v", err)
	}
	if _, err := Parse(t.Context(), "python", "print(1)"); err != nil {
		t.Errorf("after the bombs: %v", err)
	}
	if _, err := Parse(t.Context(), "python", strings.Repeat("a", MaxText+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestParseStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Parse(ctx, "python", "print(1)"); !errors.Is(err, ErrTooLong) {
		t.Errorf("a cancelled parse: %v", err)
	}
}

// TestModules checks that the modules match their digests and import nothing.
func TestModules(t *testing.T) {
	sums, err := os.ReadFile("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	for language, m := range machines {
		code, err := modules.ReadFile(language + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(code)
		if line := fmt.Sprintf("%s  %s.wasm\n", hex.EncodeToString(sum[:]), language); !strings.Contains(string(sums), line) {
			t.Errorf("SHA256SUMS lacks %q", line)
		}
		if _, err := Parse(t.Context(), language, ""); err != nil {
			t.Fatal(err)
		}
		if n := len(m.compiled.ImportedFunctions()) + len(m.compiled.ImportedMemories()); n > 0 {
			t.Errorf("%s imports %d things", language, n)
		}
		if limit, bounded := m.compiled.ExportedMemories()["memory"].Max(); !bounded || limit > maxPages {
			t.Errorf("%s may take %d pages", language, limit)
		}
	}
}

// FuzzDecode reads output that a compromised module could return.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, "x")
	f.Add([]byte{1, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 3, 1, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0}, "xy")
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		tree, err := decodeTree(raw, text, []string{"end", "a", "b"}, []string{"", "f"}, false)
		if err != nil {
			return
		}
		seen := 0
		var visit func(Node, int)
		visit = func(n Node, depth int) {
			seen++
			_, _, _, _ = n.Kind(), n.Field(), n.Text(), n.IsWrong()
			for child := range n.Children() {
				if depth < 100 {
					visit(child, depth+1)
				}
			}
		}
		visit(tree.Root(), 0)
		if seen > tree.Len() {
			t.Errorf("%d nodes visited of %d", seen, tree.Len())
		}
		for n := range tree.All() {
			for range n.WithDescendants() {
			}
			n.ChildIn("f")
			n.FirstNamedChild()
		}
	})
}

// FuzzParse parses any text: it must end, and the tree must be consistent.
func FuzzParse(f *testing.F) {
	f.Add("import os\nprint(f'{x!r:>{w}}')")
	f.Add("const a = <T,>(x) => `${x}`; /re/u")
	f.Fuzz(func(t *testing.T, text string) {
		for language := range machines {
			tree, err := Parse(t.Context(), language, text)
			if err == nil && tree.Root().Text() == "" && strings.TrimSpace(text) != "" && !tree.Broken && tree.Len() > 1 {
				t.Errorf("%s: an empty tree of %q", language, text)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	small := "import json, sys\nprint(json.dumps({'python': sys.version}))\n"
	large := strings.Repeat("def f(a, b=1):\n    return [x + a for x in range(b) if x % 2 == 0]\n", MaxText/70)
	for name, text := range map[string]string{"typical": small, "64 KiB": large} {
		b.Run(name, func(b *testing.B) {
			if _, err := Parse(b.Context(), "python", ""); err != nil { // compile first
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Parse(b.Context(), "python", text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for language := range machines {
		b.Run("compile "+language, func(b *testing.B) {
			for b.Loop() {
				m := &machine{}
				if err := m.compileModule(language); err != nil {
					b.Fatal(err)
				}
				m.runtime.Close(b.Context())
			}
		})
	}
}

// A machine's memory has nothing of the text before.
func TestMemoryIsZero(t *testing.T) {
	for _, size := range []uint64{1 << 16, 3 << 20, 8 << 20, 1 << 16} {
		m := allocateMemory(0, 0)
		bytes := m.Reallocate(1 << 16)
		bytes[0] = 1
		if bytes = m.Reallocate(size); len(bytes) != int(size) || bytes[0] != 1 {
			t.Fatalf("%d bytes, the first is %d", len(bytes), bytes[0])
		}
		bytes[0] = 0
		for i, b := range bytes {
			if b != 0 {
				t.Fatalf("byte %d of %d is %d", i, size, b)
			}
			bytes[i] = 0xff
		}
		m.Free()
	}
}
