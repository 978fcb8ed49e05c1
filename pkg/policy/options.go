// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// Styles of reading options.
const (
	styleGNU    = "gnu"    // getopt_long: clusters, abbreviations, options after operands
	stylePOSIX  = "posix"  // as gnu, but the first operand ends the options
	styleSingle = "single" // Go's flag package: -x or --x, value after = or in the next word
	styleFree   = "free"   // anything with a leading dash, or find's expressions
)

// A grammar says how one tool, or one of its subcommands, reads its words.
type grammar struct {
	style string
	open  bool // options that are not listed are no matter
	sub   bool // the first operand is a subcommand
	names map[string]optionSpec
	longs []string
}

type optionSpec struct {
	canonical string
	value     byte // 0 none, ':' required, '?' only attached
}

type grammars map[string]*grammar

// shippedGrammars are those of the shipped options.txt, which nothing changes.
var shippedGrammars = sync.OnceValues(func() (grammars, error) { return readGrammars(policies.Options) })

// readGrammars reads options.txt: a line "tool style [open] [sub]", then indented
// lines of options, spelled "-o,--output:" with the canonical spelling last.
func readGrammars(text string) (grammars, error) {
	all := grammars{}
	var current []*grammar
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		if line[0] != ' ' && line[0] != '\t' {
			names, style, ok := strings.Cut(trimmed, " = ")
			if !ok {
				return nil, fmt.Errorf("line %d: want tool[, tool] = style", n+1)
			}
			g := newGrammar(style)
			current = current[:0]
			for _, name := range strings.Split(names, ",") {
				all[strings.TrimSpace(name)] = g
			}
			current = append(current, g)
			continue
		}
		if len(current) == 0 {
			return nil, fmt.Errorf("line %d: options before any tool", n+1)
		}
		for _, token := range strings.Fields(trimmed) {
			current[0].add(token)
		}
	}
	return all, nil
}

func newGrammar(style string) *grammar {
	g := &grammar{names: map[string]optionSpec{}}
	for _, word := range strings.Fields(style) {
		switch word {
		case "open":
			g.open = true
		case "sub":
			g.sub = true
		default:
			g.style = word
		}
	}
	return g
}

func (g *grammar) add(token string) {
	spec := optionSpec{}
	if last := token[len(token)-1]; last == ':' || last == '?' {
		spec.value = last
		token = token[:len(token)-1]
	}
	names := strings.Split(token, ",")
	spec.canonical = names[len(names)-1]
	for _, name := range names {
		g.names[name] = spec
		if strings.HasPrefix(name, "--") {
			g.longs = append(g.longs, name)
		}
	}
}

// A reading is a command's words told apart.
type reading struct {
	sub      string
	options  []option
	unknown  []string
	operands []proposal.Word
	loose    bool
}

type option struct {
	name  string
	value proposal.Word
}

var freeGrammar = &grammar{style: styleFree, open: true}

// read tells args apart by the tool's grammar, and by its subcommand's after that.
func (gs grammars) read(tool string, args []proposal.Word) reading {
	var r reading
	g := gs[tool]
	if g == nil {
		g = freeGrammar
	}
	if !g.sub {
		r.scan(g, args)
		return r
	}
	front := *g
	front.style = stylePOSIX
	if g.style == styleSingle {
		front.style = styleSingle
	}
	rest := r.scan(&front, args)
	r.operands = nil
	if len(rest) == 0 {
		return r
	}
	if !rest[0].Static {
		r.loose = true
		return r
	}
	r.sub = rest[0].Value
	inner := gs[tool+" "+r.sub]
	if inner == nil {
		inner = gs[tool+" *"]
	}
	if inner == nil {
		inner = freeGrammar
	}
	r.scan(inner, rest[1:])
	return r
}

// scan reads args and returns what follows the options in the styles that stop at
// the first operand.
func (r *reading) scan(g *grammar, args []proposal.Word) []proposal.Word {
	for len(args) > 0 {
		w := args[0]
		if w.Static && w.Value == "--" {
			r.operands = append(r.operands, args[1:]...)
			return args[1:]
		}
		if !w.Static && (w.Value == "" || w.Value[0] == '-' && !strings.Contains(w.Value, "=")) {
			r.loose = true
		}
		if w.Glob && !strings.HasPrefix(w.Value, "./") && !strings.HasPrefix(w.Value, "/") && !strings.Contains(w.Value, "/") && w.Value == "" {
			r.loose = true
		}
		if len(w.Value) < 2 || w.Value[0] != '-' {
			if g.style == stylePOSIX || g.style == styleSingle {
				r.operands = append(r.operands, args...)
				return args
			}
			r.operands = append(r.operands, w)
			args = args[1:]
			continue
		}
		args = args[1+r.option(g, w, args[1:]):]
	}
	return nil
}

// option reads the option in w and returns how many of the next words it took.
func (r *reading) option(g *grammar, w proposal.Word, next []proposal.Word) int {
	switch {
	case g.style == styleSingle:
		return r.named(g, "-"+strings.TrimLeft(w.Value, "-"), w, next)
	case g.style == styleFree || strings.HasPrefix(w.Value, "--"):
		return r.named(g, w.Value, w, next)
	}
	if name, _, _ := strings.Cut(w.Value, "="); len(name) > 2 {
		if _, ok := g.names[name]; ok { // -classpath, -std=c11
			return r.named(g, w.Value, w, next)
		}
	}
	return r.cluster(g, w, next)
}

func (r *reading) named(g *grammar, text string, w proposal.Word, next []proposal.Word) int {
	name, value, attached := strings.Cut(text, "=")
	spec, ok := g.lookup(name)
	if !ok {
		if !g.open {
			r.unknown = append(r.unknown, name)
		}
		spec = optionSpec{canonical: name}
	}
	o := option{name: spec.canonical, value: proposal.Word{Static: true}}
	if attached {
		o.value = proposal.Word{Value: value, Static: w.Static, Glob: w.Glob}
		r.options = append(r.options, o)
		return 0
	}
	if spec.value == ':' && len(next) > 0 {
		o.value = next[0]
		r.options = append(r.options, o)
		return 1
	}
	r.options = append(r.options, o)
	return 0
}

// lookup finds name, or in the gnu styles the one long option it abbreviates. An
// ambiguous abbreviation is unknown: the tool refuses it, unless it is newer.
func (g *grammar) lookup(name string) (optionSpec, bool) {
	if spec, ok := g.names[name]; ok {
		return spec, true
	}
	if g.style != styleGNU && g.style != stylePOSIX || !strings.HasPrefix(name, "--") {
		return optionSpec{}, false
	}
	found := map[string]optionSpec{}
	for _, long := range g.longs {
		if strings.HasPrefix(long, name) {
			found[g.names[long].canonical] = g.names[long]
		}
	}
	if len(found) != 1 {
		return optionSpec{}, false
	}
	for _, spec := range found {
		return spec, true
	}
	return optionSpec{}, false
}

// cluster reads -abc, -ofile and -o file.
func (r *reading) cluster(g *grammar, w proposal.Word, next []proposal.Word) int {
	letters := w.Value[1:]
	for i := 0; i < len(letters); i++ {
		name := "-" + letters[i:i+1]
		if letters[i] >= '0' && letters[i] <= '9' { // head -5, diff -3
			name = "-0"
		}
		spec, ok := g.names[name]
		if !ok {
			if !g.open {
				r.unknown = append(r.unknown, name)
			}
			r.options = append(r.options, option{name: name, value: proposal.Word{Static: true}})
			continue
		}
		o := option{name: spec.canonical, value: proposal.Word{Static: true}}
		rest := letters[i+1:]
		switch {
		case spec.value != 0 && (rest != "" || spec.value == '?' || !w.Static):
			o.value = proposal.Word{Value: rest, Static: w.Static, Glob: w.Glob}
			r.options = append(r.options, o)
			return 0
		case spec.value == ':' && len(next) > 0:
			o.value = next[0]
			r.options = append(r.options, o)
			return 1
		}
		r.options = append(r.options, o)
	}
	return 0
}
