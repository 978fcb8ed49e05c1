// SPDX-License-Identifier: Apache-2.0

// Package facts contains facts about shells, tools and paths: which options of a command
// start programs or write files, what a sed or awk script does, and which place a path
// names. Most of it is read from policies/options.txt.
//
// It makes no decisions: package policy puts the facts into the input of rules, which are
// Rego. If a fact is unknown, the most restrictive value is reported: the place of a word
// that is known only at run time is dynamic, and an option that is not listed is unknown.
// The package does not import OPA.
package facts

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// Styles of reading options.
const (
	styleGNU    = "gnu"    // getopt_long: clusters, abbreviations, options after operands
	stylePOSIX  = "posix"  // as gnu, but the first operand ends the options
	styleSingle = "single" // Go's flag package: -x or --x, value after = or in the next word
	styleMixed  = "mixed"  // as single, but options may follow operands
	styleFree   = "free"   // anything with a leading dash, or find's expressions
)

// A grammar is how one tool, or one of its subcommands, reads its words.
type grammar struct {
	style string
	open  bool // options that are not listed are accepted
	// unlisted: what they do is not known either, so that rules look at each word
	unlisted bool
	wary     bool // any of its words may name a file that it writes
	// inspector says that the tool reads files, and prints or writes what it found
	inspector bool
	sub       bool   // the first operand is a subcommand
	like      string // the tool whose other subcommands have these options, too
	rest      string // the tool that reads the words after --, with its subcommand
	tools     bool   // the first operand names a tool, which reads the words after it
	// scripts: a subcommand that has no entry is a tool, or a script of the repository
	scripts bool
	writes  int // operands from this one on are written; 0 means none
	names   map[string]optionSpec
	longs   []string
	begins  []string // "--no-*": every option with this prefix
}

type optionSpec struct {
	canonical string
	value     byte // 0 none, ':' required, '2' two words, '?' only attached
	effect    byte // 0, or one of the marks below
}

// Marks of an option's effect, after its value's mark in options.txt.
const (
	markRuns    = '!' // it starts a program, loads code, opens a server or a prompt, or reads more words
	markWrites  = '>' // its value is a file or a directory that is written
	markChanges = '^' // the tool then writes its operands
	markCode    = '.' // its value is the text of a program
	markRest    = '$' // as markCode, and all words after it are the program's
	markTool    = '&' // its value names a tool, which reads all words after it
)

// Grammars are by tool, and by tool and subcommand.
type Grammars map[string]*grammar

// ShippedGrammars are those of the shipped options.txt. Callers must not change them.
var ShippedGrammars = sync.OnceValues(func() (Grammars, error) { return readGrammars(policies.Options) })

// anyTool is the entry for tools without an entry.
const anyTool = "*"

// readGrammars reads the shipped options.txt.
func readGrammars(text string) (Grammars, error) {
	all, err := readEntries(text)
	if err == nil && all[anyTool] == nil {
		return nil, fmt.Errorf("want an entry for tools without an entry: %s", anyTool)
	}
	return all, err
}

// readEntries reads text in the form of options.txt: a line "tool = style [word…]", then indented
// lines of options, spelled "-o,--output:>" with the canonical spelling last.
func readEntries(text string) (Grammars, error) {
	all := Grammars{}
	var current *grammar
	var own map[string]bool // the options of its entry
	skipped := false
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") || isChildLine(line) {
			continue
		}
		if isPlaceLine(line) { // readPlaceTables reads it, and the options below it
			skipped = true
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			if skipped {
				continue
			}
			if current == nil {
				return nil, fmt.Errorf("line %d: options before the first tool", n+1)
			}
			for _, token := range strings.Fields(trimmed) {
				for _, name := range current.defineOption(token) {
					if own[name] {
						return nil, fmt.Errorf("line %d: the entry has %s already", n+1, name)
					}
					own[name] = true
				}
			}
			continue
		}
		names, style, ok := strings.Cut(trimmed, " = ")
		if !ok {
			return nil, fmt.Errorf("line %d: want tool[, tool] = style", n+1)
		}
		current, own, skipped = newGrammar(style), map[string]bool{}, false
		if current.like != "" {
			if err := current.inheritOptions(all[current.like+" *"]); err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
		}
		for _, name := range strings.Split(names, ",") {
			name = strings.TrimSpace(name)
			if all[name] != nil {
				return nil, fmt.Errorf("line %d: %s has an entry before it", n+1, name)
			}
			all[name] = current
		}
	}
	return all, nil
}

func newGrammar(header string) *grammar {
	g := &grammar{names: map[string]optionSpec{}}
	for _, word := range strings.Fields(header) {
		switch word {
		case "open":
			g.open, g.unlisted = true, true
		case "passes":
			g.open = true
		case "sub":
			g.sub = true
		case "tools":
			g.tools = true
		case "wary":
			g.wary = true
		case "inspector":
			g.wary, g.inspector = true, true
		case "scripts":
			g.scripts = true
		default:
			if tool, ok := strings.CutPrefix(word, "rest:"); ok {
				g.rest = tool
				continue
			}
			if tool, ok := strings.CutPrefix(word, "like:"); ok {
				g.like = tool
				continue
			}
			if from, ok := strings.CutPrefix(word, "writes"); ok {
				if g.writes, _ = strconv.Atoi(from); g.writes == 0 {
					g.writes = 1
				}
				continue
			}
			g.style = word
		}
	}
	return g
}

// inheritOptions gives g the options of other.
func (g *grammar) inheritOptions(other *grammar) error {
	if other == nil {
		return fmt.Errorf("want an entry \"%s *\" before this one", g.like)
	}
	g.names = maps.Clone(other.names)
	g.longs, g.begins = slices.Clone(other.longs), slices.Clone(other.begins)
	return nil
}

// defineOption adds the option of token, and returns its names.
func (g *grammar) defineOption(token string) (names []string) {
	spec := optionSpec{}
	if i := len(token) - 1; strings.IndexByte("!>^.$&", token[i]) >= 0 {
		spec.effect, token = token[i], token[:i]
	}
	switch {
	case strings.HasSuffix(token, "::"):
		spec.value, token = '2', token[:len(token)-2]
	case len(token) > 2 && (strings.HasSuffix(token, ":") || strings.HasSuffix(token, "?")):
		spec.value, token = token[len(token)-1], token[:len(token)-1]
	}
	names = strings.Split(token, ",")
	spec.canonical = names[len(names)-1]
	for _, name := range names {
		if begin, ok := strings.CutSuffix(name, "*"); ok {
			g.begins = append(g.begins, begin)
			name = begin + "*"
		} else if strings.HasPrefix(name, "--") {
			g.longs = append(g.longs, name)
		}
		g.names[name] = spec
	}
	return names
}

// addedName matches a tool, or a tool and its subcommand, of an organization's options.
var addedName = pattern.New(`^[A-Za-z0-9_][\w.+-]*( [A-Za-z0-9_][\w.:-]*)?$`)

// AddInspectors returns gs with an entry for each of tools that has none. Their words may name files to write.
func (gs Grammars) AddInspectors(tools []string) Grammars {
	if len(tools) == 0 {
		return gs
	}
	gs = maps.Clone(gs)
	for _, name := range tools {
		if gs[name] == nil {
			gs[name] = &grammar{style: styleFree, open: true, unlisted: true, wary: true, inspector: true}
		}
	}
	return gs
}

// IsInspector reports whether tool has an entry as an inspector.
func (gs Grammars) IsInspector(tool string) bool { return gs[tool] != nil && gs[tool].inspector }

// A reading is a command's words, split into options and operands.
type reading struct {
	Tool     string // the innermost tool, which reads the operands
	Sub      string
	Options  []option
	Unknown  []string
	Operands []proposal.Word
	Loose    bool
	Unlisted bool     // a grammar does not list all options
	flags    []string // words that are listed options without a value, so that the next word is no value
	changes  bool     // an option makes the tool write its operands
	writes   int
	inner    []proposal.Word // words for the tool that an option names
	handed   []proposal.Word // words after --, for another tool
	doubtful []proposal.Word // words that may name files to write, in any spelling
}

type option struct {
	Name   string
	Value  proposal.Word
	effect byte
	From   string // the variable that contains it, or ""
}

// passes is the grammar of the repository's own scripts, by name: they define their options.
var passes = &grammar{style: styleFree, open: true}

var freeGrammar = &grammar{style: styleFree, open: true, unlisted: true}

// startedGrammar is that of a tool without an entry which another tool starts. It may write the files that its
// words name.
var startedGrammar = &grammar{style: styleFree, open: true, unlisted: true, wary: true}

// Read splits args by the tool's grammar, and by those of its subcommand and of the tool
// that it starts. A program in the workspace may have any options, except for a known tool
// that a package manager installed there.
func (gs Grammars) Read(p program, args []proposal.Word) reading {
	r := reading{Tool: p.Name}
	g := gs[p.Name]
	if p.Place != "lookup" && p.Place != "system" {
		if g = gs[installedTool(p.Name)]; g != nil {
			r.Tool = installedTool(p.Name)
		} else {
			g = freeGrammar
		}
	}
	gs.readAs(&r, r.Tool, g, args, 0)
	return r
}

var packaged = pattern.New(`(^|/)(node_modules/\.bin|vendor/bin|\.?venv/bin)/[^/]+$`)

// installedTool is the known tool at name, where package managers install tools, or "".
func installedTool(name string) string {
	switch base := path.Base(name); {
	case base == "gradlew" || base == "mvnw":
		return strings.TrimSuffix(base, "w")
	case packaged.MatchString(name):
		return innerName(name)
	}
	return ""
}

// maxDepth limits tools that start another tool: npx npx npx.
const maxDepth = 4

func (gs Grammars) readAs(r *reading, tool string, g *grammar, args []proposal.Word, depth int) {
	if g == nil {
		g = gs[anyTool]
	}
	if len(args) > 0 && args[0].Static && strings.HasPrefix(args[0].Value, "+") && rustup[tool] { // cargo +nightly
		args = args[1:]
	}
	r.Unlisted = r.Unlisted || g.unlisted
	if g.wary {
		r.doubtful = append(r.doubtful, args...)
	}
	if !g.sub && !g.tools {
		r.scanWords(g, args)
		r.writes = g.writes
		if handed := r.handed; handed != nil && depth < maxDepth {
			r.handed, r.Tool = nil, g.rest
			gs.readAs(r, g.rest, gs[g.rest], append([]proposal.Word{{Value: "test", Static: true}}, handed...), depth+1)
		}
		if len(r.inner) > 0 && depth < maxDepth {
			gs.readInnerTool(r, startedGrammar, depth)
		}
		return
	}
	front := *g
	if front.style != styleSingle {
		front.style = stylePOSIX
	}
	rest := r.scanWords(&front, args)
	r.Operands = nil
	for len(rest) > 0 && (rest[0].Value == "true" || rest[0].Value == "false") { // npm --fund false test
		rest = rest[1:]
	}
	switch {
	case len(r.inner) > 0 && depth < maxDepth:
		gs.readInnerTool(r, startedGrammar, depth)
	case len(rest) == 0:
	case !rest[0].Static:
		r.Loose = true
	case g.tools && depth < maxDepth:
		if r.Sub == "" {
			r.Sub = rest[0].Value
		}
		r.inner = rest
		gs.readInnerTool(r, startedGrammar, depth)
	default:
		r.Sub = rest[0].Value
		inner := gs[tool+" "+r.Sub]
		if inner == nil {
			inner = gs[tool+" *"]
		}
		if inner != nil && inner.scripts {
			r.inner = rest
			gs.readInnerTool(r, passes, depth)
			return
		}
		gs.readAs(r, tool+" "+r.Sub, inner, rest[1:], depth+1)
	}
}

var rustup = map[string]bool{"cargo": true, "rustc": true, "rustfmt": true, "rustdoc": true}

// readInnerTool reads r.inner: the name of a tool and its words. unlisted is the grammar of a tool
// without an entry.
func (gs Grammars) readInnerTool(r *reading, unlisted *grammar, depth int) {
	words := r.inner
	r.inner, r.Operands = nil, nil
	if !words[0].Static {
		r.Loose = true
		return
	}
	r.Tool = innerName(words[0].Value)
	g := gs[r.Tool]
	if g == nil {
		g = unlisted
	}
	gs.readAs(r, r.Tool, g, words[1:], depth+1)
}

// innerName is the tool in eslint@8, @biomejs/biome and ./node_modules/.bin/jest.
func innerName(name string) string {
	base := path.Base(name)
	if i := strings.IndexByte(base, '@'); i > 0 {
		base = base[:i]
	}
	return ToolName(base)
}

// scanWords reads args. In the styles that stop at the first operand, it returns the words from
// there on.
func (r *reading) scanWords(g *grammar, args []proposal.Word) []proposal.Word {
	guessed := false
	for len(args) > 0 {
		w := args[0]
		if w.Static && w.Value == "--" {
			if g.rest != "" {
				r.handed = args[1:]
				return nil
			}
			r.Operands = append(r.Operands, args[1:]...)
			return args[1:]
		}
		if !w.Static && (w.Value == "" || w.Value[0] == '-' && !strings.Contains(w.Value, "=")) {
			r.Loose = true
		}
		if len(w.Value) < 2 || w.Value[0] != '-' {
			if g.style == stylePOSIX || g.style == styleSingle {
				if guessed {
					r.readDoubtfulValues(g, leadingOptions(args[1:]))
				}
				r.Operands = append(r.Operands, args...)
				return args
			}
			r.Operands = append(r.Operands, w)
			args = args[1:]
			continue
		}
		guessed = g.isGuessedOption(w.Value)
		read, ended := r.readOption(g, w, args[1:])
		if g.isFlag(w.Value) {
			r.flags = append(r.flags, w.Value)
		}
		args = args[1+read:]
		if ended {
			r.Operands = append(r.Operands, args...)
			return nil
		}
	}
	return nil
}

// isFlag reports whether word is a listed option that takes no value from the next word.
func (g *grammar) isFlag(word string) bool {
	spec, listed := g.names[word]
	return listed && (spec.value == 0 || spec.value == '?')
}

// isGuessedOption reports whether only the beginning of a long option is known, so that the word
// after it may be its value and not the first operand.
func (g *grammar) isGuessedOption(word string) bool {
	_, known := g.names[word]
	return strings.HasPrefix(word, "--") && !known && !strings.Contains(word, "=") && g.listedPrefix(word) != ""
}

// leadingOptions are the words of args before the first that is not an option.
func leadingOptions(args []proposal.Word) []proposal.Word {
	for i, w := range args {
		if !strings.HasPrefix(w.Value, "-") {
			return args[:i]
		}
	}
	return args
}

// readOption reads the option in w. It returns the number of words from next that it used, and
// whether the words after them are a program's.
func (r *reading) readOption(g *grammar, w proposal.Word, next []proposal.Word) (int, bool) {
	switch {
	case g.style == styleSingle, g.style == styleMixed:
		return r.readNamedOption(g, "-"+strings.TrimLeft(w.Value, "-"), w, next)
	case g.style == styleFree || strings.HasPrefix(w.Value, "--"):
		return r.readNamedOption(g, w.Value, w, next)
	}
	if name, _, _ := strings.Cut(w.Value, "="); len(name) > 2 {
		if _, ok := g.names[name]; ok || g.listedPrefix(name) != "" { // -classpath, -std=c11, -Wall
			return r.readNamedOption(g, w.Value, w, next)
		}
	}
	return r.readCluster(g, w, next)
}

func (r *reading) readNamedOption(g *grammar, text string, w proposal.Word, next []proposal.Word) (int, bool) {
	name, value, attached := strings.Cut(text, "=")
	spec, ok := g.lookupOption(name)
	if !ok {
		if !g.open {
			r.Unknown = append(r.Unknown, name)
			r.doubtful = append(r.doubtful, w)
			if !attached && len(next) > 0 {
				r.doubtful = append(r.doubtful, next[0])
			}
		}
		spec = optionSpec{canonical: name}
	}
	if attached {
		r.addOption(spec, proposal.Word{Value: value, Static: w.Static, Glob: w.Glob})
		return 0, spec.effect == markRest
	}
	return r.addValuedOption(g, spec, next)
}

// addValuedOption adds the option of spec with its values from next.
func (r *reading) addValuedOption(g *grammar, spec optionSpec, next []proposal.Word) (int, bool) {
	read := 0
	switch {
	case spec.value == ':' && len(next) > 0:
		r.addOption(spec, next[0])
		read = 1
	case spec.value == '2' && len(next) > 1:
		r.addOption(spec, next[1])
		read = 2
	default:
		r.addOption(spec, proposal.Word{Static: true})
	}
	if spec.effect != markRest && spec.effect != markCode {
		r.readDoubtfulValues(g, next[:read])
	}
	if spec.effect == markTool && read == 1 {
		r.inner = next
		return len(next), true
	}
	return read, spec.effect == markRest
}

// readDoubtfulValues reads values that look like options also as options, for their effects: in another
// version of the tool the option before may have no value.
func (r *reading) readDoubtfulValues(g *grammar, values []proposal.Word) {
	for _, w := range values {
		if len(w.Value) < 2 || w.Value[0] != '-' {
			continue
		}
		var other reading
		other.readOption(g, w, nil)
		for _, o := range other.Options {
			if o.effect != 0 {
				r.Options = append(r.Options, o)
			}
		}
		if strings.HasPrefix(w.Value, "--") {
			r.Unknown = append(r.Unknown, other.Unknown...)
		}
		r.changes = r.changes || other.changes
	}
}

func (r *reading) addOption(spec optionSpec, value proposal.Word) {
	r.changes = r.changes || spec.effect == markChanges
	r.Options = append(r.Options, option{Name: spec.canonical, Value: value, effect: spec.effect})
}

// lookupOption finds name, or in the gnu styles the one long option that it abbreviates. An
// ambiguous abbreviation is unknown, or the worst of the options that it may be: the tool
// refuses it, unless it is a newer version.
func (g *grammar) lookupOption(name string) (optionSpec, bool) {
	if spec, ok := g.names[name]; ok {
		return spec, true
	}
	if (g.style == styleGNU || g.style == stylePOSIX) && len(name) > 2 && strings.HasPrefix(name, "--") {
		found := map[string]optionSpec{}
		for _, long := range g.longs {
			if strings.HasPrefix(long, name) {
				found[g.names[long].canonical] = g.names[long]
			}
		}
		for _, spec := range found {
			if len(found) == 1 {
				return spec, true
			}
			if spec.effect != 0 { // it may be this one
				return optionSpec{canonical: name, effect: markRuns}, true
			}
		}
	}
	if begin := g.listedPrefix(name); begin != "" {
		spec := g.names[begin+"*"]
		spec.canonical = name
		return spec, true
	}
	return optionSpec{}, false
}

// listedPrefix is the listed prefix of name, or "".
func (g *grammar) listedPrefix(name string) string {
	longest := ""
	for _, begin := range g.begins {
		if strings.HasPrefix(name, begin) && len(begin) > len(longest) {
			longest = begin
		}
	}
	return longest
}

// readCluster reads -abc, -ofile and -o file.
func (r *reading) readCluster(g *grammar, w proposal.Word, next []proposal.Word) (int, bool) {
	letters := w.Value[1:]
	for i := 0; i < len(letters); i++ {
		name := "-" + letters[i:i+1]
		if letters[i] >= '0' && letters[i] <= '9' && g.names[name].canonical == "" { // head -5, diff -3
			name = "-0"
		}
		spec, ok := g.names[name]
		if !ok {
			if !g.open {
				r.Unknown = append(r.Unknown, name)
			}
			spec = optionSpec{canonical: name}
		}
		rest := letters[i+1:]
		switch {
		case spec.value != 0 && (rest != "" || spec.value == '?' || !w.Static):
			r.addOption(spec, proposal.Word{Value: rest, Static: w.Static, Glob: w.Glob})
			if spec.effect == markTool && rest != "" {
				r.inner = append([]proposal.Word{{Value: rest, Static: w.Static}}, next...)
				return len(next), true
			}
			return 0, spec.effect == markRest
		case spec.value != 0:
			return r.addValuedOption(g, spec, next)
		}
		r.addOption(spec, proposal.Word{Static: true})
	}
	return 0, false
}
