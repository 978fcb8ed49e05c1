// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// starts is the word between tools and what they start in options.txt.
const starts = " starts "

// anyProgram is the mark of a tool that starts any program.
const anyProgram = "*"

// A childTable has the programs that each tool, or a tool with one of its subcommands, starts.
type childTable map[string][]string

var shippedChildren = sync.OnceValues(func() (childTable, error) { return readChildren(policies.Options) })

// readChildren reads the lines "tool[, tool] starts [program…]" of options.txt. A program
// @NAME means those of the line "@NAME starts …" before it.
func readChildren(text string) (childTable, error) {
	all := childTable{}
	for n, line := range strings.Split(text, "\n") {
		if !isChildLine(line) {
			continue
		}
		names, words, _ := strings.Cut(line+" ", starts)
		var programs []string
		for _, word := range strings.Fields(words) {
			if !strings.HasPrefix(word, "@") {
				programs = append(programs, word)
				continue
			}
			if all[word] == nil {
				return nil, fmt.Errorf("line %d: no line before it says what %s starts", n+1, word)
			}
			programs = append(programs, all[word]...)
		}
		for _, name := range strings.Split(names, ",") {
			name = strings.TrimSpace(name)
			if _, twice := all[name]; twice {
				return nil, fmt.Errorf("line %d: %s has a line before it", n+1, name)
			}
			all[name] = append([]string{}, programs...)
		}
	}
	return all, nil
}

// isChildLine reports whether a line of options.txt says what tools start.
func isChildLine(line string) bool {
	return line != "" && !strings.ContainsAny(line[:1], "# \t") && strings.Contains(line+" ", starts)
}

// Confine returns the plain name of the program of x, which is decided under these names, and
// the tool whose list in options.txt says what it may start, or "" if it may start any program
// that fumehood.exec allows. The tool may have a subcommand: "go tool".
//
// The repository's own programs are free, except for copies of a tool, and for tools that
// "go tool" builds. A tool that options.txt does not have is free if the command was granted
// built, and else starts nothing. If the names are those of several tools, the first that is
// not free decides.
func Confine(x proposal.Exec, names []string) (name, under string) {
	return childName(x), underOf(x, names)
}

func underOf(x proposal.Exec, names []string) string {
	argv := x.Whole
	if len(argv) == 0 {
		argv = x.Argv
	}
	if isOwn(x) {
		if names = x.Same; x.Under == "go tool" {
			names = append([]string{x.Path}, x.Same...)
		}
		if len(names) == 0 {
			return ""
		}
	}
	if many := ManifoldOf(points.KeyOf(x)); many != "" {
		tool, words := selectTool(many, x, argv)
		return confinedBy(tool, words, x.Grants)
	}
	if len(names) == 0 {
		names = []string{x.Path}
	}
	for _, name := range names {
		if tool := confinedBy(plainName(name), argv[min(1, len(argv)):], x.Grants); tool != "" {
			return tool
		}
	}
	return ""
}

// isOwn reports whether the file of x is the repository's, or was written inside.
func isOwn(x proposal.Exec) bool {
	return x.Layer == proposal.LayerWorkspace || x.Layer == proposal.LayerWritten
}

func confinedBy(tool string, words, grants []string) string {
	table, err := shippedChildren()
	grammars, err2 := ShippedGrammars()
	if err != nil || err2 != nil {
		return tool // the engine does not start either
	}
	entry, known := tool, false
	if verb := grammars.verbOf(tool, words); verb != "" {
		if _, known = table[tool+" "+verb]; known {
			entry = tool + " " + verb
		}
	}
	programs, listed := table[entry]
	_, known = grammars[tool]
	switch {
	case listed && slices.Contains(programs, anyProgram):
		return ""
	case !listed && !known && slices.Contains(grants, "built"):
		return ""
	}
	return entry
}

// verbOf returns the subcommand of a tool that has them.
func (gs Grammars) verbOf(tool string, words []string) string {
	if g := gs[tool]; g == nil || !g.sub {
		return ""
	}
	return gs.SubcommandOf(tool, words)
}

// ListsProgram reports whether the list of a tool, as Confine returns it, has the program of x, or
// the one that it is a copy of.
func ListsProgram(tool string, x proposal.Exec) bool {
	table, err := shippedChildren()
	if err != nil || isOwn(x) && len(x.Same) == 0 {
		return false
	}
	name := childName(x)
	return slices.ContainsFunc(table[tool], func(program string) bool {
		begin, any := strings.CutSuffix(program, anyProgram)
		return program == name || any && begin != "" && strings.HasPrefix(name, begin)
	})
}

// childName is the plain name of the program of x: as for gcc-12, the tool of
// /usr/bin/x86_64-linux-gnu-gcc-12.
func childName(x proposal.Exec) string {
	if many := ManifoldOf(points.KeyOf(x)); many != "" {
		tool, _ := selectTool(many, x, x.Argv)
		return tool
	}
	if isOwn(x) && len(x.Same) > 0 {
		return plainName(x.Same[0])
	}
	return plainName(x.Path)
}

// selectTool returns the tool that the manifold program of x becomes, with its words: that of its own
// name, if there is one, as for /bin/sh of a busybox, and else the one that its words select.
func selectTool(many string, x proposal.Exec, argv []string) (string, []string) {
	own := path.Base(x.Path)
	if len(argv) > 0 && strings.TrimPrefix(path.Base(argv[0]), "-") == own && !strings.HasPrefix(own, many) {
		if known, _ := HasChildren(FileName(own)); known {
			return FileName(own), argv[1:]
		}
	}
	return appletTool(many, own, argv)
}

// HasChildren reports whether options.txt says what tool starts, in a line of its own or because
// it has the tool's options and no such line, and whether it starts any program.
func HasChildren(tool string) (known, free bool) {
	table, err := shippedChildren()
	grammars, err2 := ShippedGrammars()
	if err != nil || err2 != nil {
		return false, false
	}
	programs, listed := table[tool]
	return listed || grammars[tool] != nil, slices.Contains(programs, anyProgram)
}

// triplet is the name of a platform before a tool's: x86_64-linux-gnu-gcc-12.
var triplet = pattern.New(`^(x86_64|i[3-6]86|aarch64|arm|armv7l|riscv64|s390x|powerpc64le)-(\w+-)?linux-(gnu|musl)\w*-(.+)$`)

// plainName is FileName without a platform, and without the kind of a linker.
func plainName(file string) string {
	name := FileName(file)
	if m := triplet.FindStringSubmatch(name); m != nil {
		name = FileName(m[4])
	}
	if strings.HasPrefix(name, "ld.") {
		return "ld"
	}
	return name
}

// What a command's program may start.
const (
	startsAny    = "any"    // any program that fumehood.exec allows
	startsListed = "listed" // those that options.txt lists
	startsNone   = "none"   // no program
)

// ChildKind returns what p may start, any, listed or none, if its words are args. A program of the
// workspace and a function are not tools: they start any.
func (gs Grammars) ChildKind(p program, args []proposal.Word) string {
	if p.Place != "lookup" && p.Place != "system" {
		return startsAny
	}
	words := make([]string, len(args))
	for i, w := range args {
		words[i] = w.Value
	}
	entry := confinedBy(p.Name, words, nil)
	if entry == "" {
		return startsAny
	}
	if table, err := shippedChildren(); err != nil || len(table[entry]) > 0 {
		return startsListed
	}
	return startsNone
}
