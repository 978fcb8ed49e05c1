// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"math"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Texts read variables from a file: set -a; . ./.env.test; set +a, or export $(cat .env.test). Where that is a list of
// assignments of literals, they take the place of source and of the substitution, and export that of set -a, before the
// text is printed: what is decided is what runs, and the file is not read again. Any other file, and any other use of
// set -a, stays and is refused.

// The limits of files that are sourced: their number, and the size of each in bytes.
const (
	maxSourced      = 4
	maxSourcedBytes = 4 << 10
)

var (
	sourcedName  = pattern.New(`^(?:\./|/workspace/)?(?:[\w-][\w.-]*/)*[\w.-]+$`)
	sourcedLine  = pattern.New(`^(export )?([A-Za-z_]\w*)=(?:([\w./:@%+,=-]*)|'([^']*)'|"([^"\\$` + "`" + `!]*)")(?: +#.*)?$`)
	sourcedChars = pattern.New(`^[\n\x20-\x7e]*$`)
	sourcing     = pattern.New(`(?:^|[^\w.-])(?:\.|source)[ \t]|(?:export|env) "?\$\(|dotenv|env-cmd|--env-file`)
	listedFile   = pattern.New(`^\$\((?:cat|grep -v ['"]?\^#['"]?) ([\w./-]+)(?: \| (?:grep -v ['"]?\^#['"]? \| )?xargs)?\)$`)
)

// ReadSourced returns what Proposal.Sourced has for p: the files that its text reads with source before it changes the
// directory. read returns a file of the workspace.
func ReadSourced(p proposal.Proposal, read func(name string) (text string, ok bool)) map[string]string {
	text := p.Run + p.Code
	if !p.RunsShell() || len(text) > maxText || !sourcing.MatchString(text) {
		return nil
	}
	file, err := parseText(text)
	if err != nil {
		return nil
	}
	r := replacer{}
	if p.Earlier != nil {
		before, err := parseText(p.Earlier.Text)
		if err != nil {
			return nil
		}
		r.replaceEnvironments(before)
	}
	r.replaceEnvironments(file)
	var found map[string]string
	for _, name := range r.wanted[:min(len(r.wanted), maxSourced)] {
		at, inside := strings.CutPrefix(name, "/workspace/")
		if !inside {
			at = path.Join(p.Cwd, name)
		}
		content, ok := read(path.Clean(at))
		if _, isList := readAssignments(content); !ok || !isList {
			continue
		}
		if found == nil {
			found = map[string]string{}
		}
		found[name] = content
	}
	return found
}

// listedWords returns the assignments that take the place of word, the substitution of a file whose values are plain.
func (r *replacer) listedWords(word *syntax.Word) (words []string) {
	found := listedFile.FindStringSubmatch(wordText(word))
	if found == nil || !sourcedName.MatchString(found[1]) || r.moved {
		return nil
	}
	text, ok := r.contentOf(found[1])
	list, isList := readAssignments(text)
	if !ok || !isList {
		return nil
	}
	for _, a := range list {
		if !a.plain { // not what source would make of it
			return nil
		}
		words = append(words, a.name+"="+a.value)
	}
	return words
}

// contentOf returns a file that the text reads.
func (r *replacer) contentOf(name string) (text string, ok bool) {
	if !slices.Contains(r.wanted, name) {
		r.wanted = append(r.wanted, name)
	}
	text, ok = r.files[name]
	return text, ok
}

// replaceLists replaces substitutions of files with assignments: those of export and of env.
func (r *replacer) replaceLists(stmt *syntax.Stmt) (changed bool) {
	switch c := stmt.Cmd.(type) {
	case *syntax.DeclClause:
		if c.Variant.Value == "export" && len(c.Args) == 1 && c.Args[0].Naked && c.Args[0].Value != nil {
			if words := r.listedWords(c.Args[0].Value); words != nil {
				other, err := parseText("export " + strings.Join(words, " "))
				if err == nil {
					stmt.Cmd = other.Stmts[0].Cmd
				}
				return err == nil
			}
		}
	case *syntax.CallExpr:
		if r.replaceEnvFile(c) {
			return true
		}
		if len(c.Args) < 3 || c.Args[0].Lit() != "env" || len(c.Assigns) > 0 {
			return false
		}
		if words := r.listedWords(c.Args[1]); words != nil {
			list := []*syntax.Word{c.Args[0]}
			for _, word := range words {
				list = append(list, litWord(word))
			}
			c.Args = append(list, c.Args[2:]...)
			return true
		}
	}
	return false
}

var (
	// fileOption matches a tool that sets the variables of a file for what follows, and npx before it.
	fileOption = pattern.New(`^(npx (?:--no-install )?)?(?:(?:dotenv|dotenv-cli) -e ([\w./-]+) --|env-cmd -f ([\w./-]+)` +
		`|dotenv -f ([\w./-]+) run(?: --)?|(node) --env-file(?:-if-exists)?=([\w./-]+)` +
		`|cross-env((?: [A-Za-z_]\w*=[\w./:@%+,=-]*)+)) $`)
	// directly are tools that npx has no need to find in node_modules/.bin.
	directly = []string{"node", "npm", "npx", "pnpm", "yarn"}
)

// maxFileOption is how many words fileOption matches, with eight variables.
const maxFileOption = 11

// replaceEnvFile replaces dotenv, env-cmd, cross-env and node's --env-file by the assignments that they make, before
// the command that they start: dotenv -e .env.test -- jest is A=1 jest. What call sets itself wins, as it does there.
func (r *replacer) replaceEnvFile(call *syntax.CallExpr) bool {
	before := ""
	for i, word := range call.Args[:min(len(call.Args), maxFileOption+1)] {
		found := fileOption.FindStringSubmatch(before)
		name := word.Lit()
		before += name + " "
		if found == nil || found[5] == "" && !managedTool.MatchString(name) || slices.Contains(notManaged, name) {
			continue
		}
		text := strings.TrimSpace(found[7])
		if text == "" {
			file := found[2] + found[3] + found[4] + found[6]
			if !sourcedName.MatchString(file) || r.moved {
				return false
			}
			content, ok := r.contentOf(file)
			list, isList := readAssignments(content)
			if !ok || !isList {
				return false
			}
			for _, a := range list {
				value, err := syntax.Quote(a.value, syntax.LangBash)
				if err != nil {
					return false
				}
				text += a.name + "=" + value + " "
			}
		}
		other, err := parseText(text + " x")
		if err != nil {
			return false
		}
		kept := []*syntax.Word{}
		if found[1] != "" && !slices.Contains(directly, name) {
			kept = call.Args[:strings.Count(found[1], " ")]
		}
		if found[5] != "" {
			kept = call.Args[:1]
		}
		call.Assigns = append(other.Stmts[0].Cmd.(*syntax.CallExpr).Assigns, call.Assigns...)
		call.Args = append(slices.Clip(kept), call.Args[i:]...)
		return true
	}
	return false
}

// An assignment is a line of a file that is sourced.
type assignment struct {
	name, value     string
	exported, plain bool // plain: nothing but NAME=value, without quotes
}

// readAssignments reads a file that has nothing but assignments of literals.
func readAssignments(text string) (list []assignment, ok bool) {
	if len(text) > maxSourcedBytes || !sourcedChars.MatchString(text) {
		return nil, false
	}
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		found := sourcedLine.FindStringSubmatch(line)
		if found == nil {
			return nil, false
		}
		a := assignment{name: found[2], value: found[3] + found[4] + found[5], exported: found[1] != ""}
		a.plain = line == a.name+"="+a.value
		list = append(list, a)
	}
	return list, true
}

// assignmentsOf returns the command that does what sourcing text does, if readAssignments reads it. With all, each
// variable is exported.
func assignmentsOf(text string, all bool) (command string, ok bool) {
	list, ok := readAssignments(text)
	if !ok || len(list) == 0 {
		return "true", ok
	}
	var parts []string
	for _, a := range list {
		value, err := syntax.Quote(a.value, syntax.LangBash)
		if err != nil {
			return "", false
		}
		part := a.name + "=" + value
		if all || a.exported {
			part = "export " + part
		}
		parts = append(parts, part)
	}
	return "{ " + strings.Join(parts, "; ") + "; }", true
}

// sourcedFile returns the file that call sources, or "".
func sourcedFile(call *syntax.CallExpr) string {
	if len(call.Assigns) > 0 || len(call.Args) != 2 || call.Args[0].Lit() != "." && call.Args[0].Lit() != "source" {
		return ""
	}
	if name := call.Args[1].Lit(); sourcedName.MatchString(name) {
		return name
	}
	return ""
}

// exportSetting reports whether call is set -a or set +a, and which.
func exportSetting(call *syntax.CallExpr) (on, is bool) {
	words := make([]string, 0, 3)
	for _, word := range call.Args[:min(len(call.Args), 4)] {
		words = append(words, word.Lit())
	}
	switch text := strings.Join(words, " "); {
	case len(call.Assigns) > 0:
	case text == "set -a" || text == "set -o allexport":
		return true, true
	case text == "set +a" || text == "set +o allexport":
		return false, true
	}
	return false, false
}

// assigning are the builtins that set variables which set -a would export, and those that leave a list before its end.
var assigning = []string{"break", "continue", "return", "read", "mapfile", "readarray", "getopts", "printf", "let",
	"eval", "set", "unset", "wait", "builtin", "command"}

// A region is the part of a text in which set -a exports what is assigned: from and to are offsets.
type region struct{ from, to uint }

// isExported reports whether s is in one of regions.
func isExported(regions func() []region, s *syntax.Stmt) bool {
	return slices.ContainsFunc(regions(), func(r region) bool { return r.contains(s) })
}

func (r region) contains(node syntax.Node) bool {
	at := node.Pos().Offset()
	return r.from < at && at < r.to
}

// exportRegions returns where set -a applies in file, or nil if there is none or export cannot take the place of it:
// each set -a and set +a is reached in order, whatever else happens; a set -a in a loop, a function or an if ends in
// the same list; and what sets variables between them is an assignment, or a file of assignments.
func exportRegions(file *syntax.File) []region {
	regions, known := []region{}, map[*syntax.Stmt]bool{}
	addList := func(list []*syntax.Stmt, end uint) {
		var on *syntax.Stmt
		for _, s := range stmtsInOrder(list) {
			call, ok := s.Cmd.(*syntax.CallExpr)
			if !ok || !isPlain(s) {
				continue
			}
			now, is := exportSetting(call)
			if !is {
				continue
			}
			if on != nil {
				regions = append(regions, region{on.Pos().Offset(), s.Pos().Offset()})
			}
			known[s], on = true, nil
			if now {
				on = s
			}
		}
		if on != nil && end > 0 {
			regions = append(regions, region{on.Pos().Offset(), end})
		} else if on != nil {
			known[on] = false
		}
	}
	addList(file.Stmts, math.MaxUint)
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Subshell:
			addList(n.Stmts, n.End().Offset())
		case *syntax.CmdSubst:
			addList(n.Stmts, n.End().Offset())
		case *syntax.Block:
			addList(n.Stmts, 0)
		case *syntax.IfClause:
			addList(n.Then, 0)
		case *syntax.WhileClause:
			addList(n.Do, 0)
		case *syntax.ForClause:
			addList(n.Do, 0)
		}
		return true
	})
	can := true
	syntax.Walk(file, func(node syntax.Node) bool {
		if node == nil {
			return true
		}
		on := slices.ContainsFunc(regions, func(r region) bool { return r.contains(node) })
		switch n := node.(type) {
		case *syntax.Stmt:
			call, ok := n.Cmd.(*syntax.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if _, is := exportSetting(call); is {
				can = can && known[n] && !on
				return false
			}
			can = can && !(on && (call.Args[0].Lit() == "" || slices.Contains(assigning, call.Args[0].Lit())))
		case *syntax.Assign:
			can = can && !(on && (n.Index != nil || n.Array != nil))
		case *syntax.DeclClause:
			can = can && !(on && n.Variant.Value != "export")
		case *syntax.ForClause, *syntax.FuncDecl, *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.LetClause,
			*syntax.CoprocClause:
			can = can && !on
		case *syntax.ParamExp:
			assigns := n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull)
			can = can && !(on && assigns)
		}
		return true
	})
	if !can || len(known) == 0 {
		return nil
	}
	return regions
}

// stmtsInOrder returns the statements of list and of its lists joined by &&, each of which runs after those before it.
func stmtsInOrder(list []*syntax.Stmt) (all []*syntax.Stmt) {
	for _, s := range list {
		if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.AndStmt && isPlain(s) {
			all = append(all, stmtsInOrder([]*syntax.Stmt{b.X, b.Y})...)
		}
		all = append(all, s)
	}
	return all
}

// isPlain reports whether s runs in this shell, at once, and its status is not used.
func isPlain(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && len(s.Redirs) == 0
}
