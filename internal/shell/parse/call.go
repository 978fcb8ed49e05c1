// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A call is the context of one simple command's words.
type call struct {
	assigns   []proposal.Assign
	redirects []proposal.Redirect
	stdin     string
	span      proposal.Span
	before    *writtenScript // by the statement before
}

// walkSimpleCommand walks one simple command: first the command, then the contents of its words.
func (w *walker) walkSimpleCommand(
	stmt *syntax.Stmt, expr *syntax.CallExpr, redirects []proposal.Redirect, stdin string, s scope,
) {
	c := call{redirects: redirects, stdin: stdin, span: w.spanOf(stmt, s), before: w.script}
	w.script = nil
	var args []arg
	for _, word := range expr.Args {
		if w.posix && len(args) > 0 && declares[args[0].Value] && isAssignment(word) {
			args = append(args, w.posixAssignment(word, s))
			continue
		}
		args = append(args, w.argsOf(word, s)...)
		w.subscriptRedirect(word, s)
	}
	reader := len(args) > 0 && args[0].Static &&
		(args[0].Value == "read" || args[0].Value == "mapfile" || args[0].Value == "readarray")
	for _, assign := range expr.Assigns {
		if (assign.Array != nil || assign.Index != nil) && !w.assoc[functionName{s.shell, assign.Name.Value}] {
			putInMap(&w.undone, assign.Name.Value, true) // an indexed array keeps its type
		}
		c.assigns = append(c.assigns, w.describeAssign(assign, len(args) > 0, reader, s))
	}
	if len(expr.Assigns) > 0 || slices.ContainsFunc(redirects, isDynamicRedirect) {
		c.before = nil // what they expand runs between the two
	}
	w.recordCommand(args, s, c)
	for _, assign := range expr.Assigns {
		w.assignWords(assign, s)
	}
	for _, word := range expr.Args {
		w.walkWord(word, s)
	}
	w.redirectWords(stmt.Redirs, s)
	w.recordScript(expr, args, s, c)
}

// subscriptRedirect refuses {a[…]}>file, in which bash evaluates the subscript.
func (w *walker) subscriptRedirect(word *syntax.Word, s scope) {
	lit, ok := word.Parts[0].(*syntax.Lit)
	if !ok || !strings.HasPrefix(lit.Value, "{") {
		return
	}
	if cut := strings.IndexByte(lit.Value, '['); cut > 1 && syntax.ValidName(lit.Value[1:cut]) {
		w.addUnknown(unknownName, w.spanOf(word, s))
	}
}

// describeAssign describes NAME=value and records what the variable may hold.
func (w *walker) describeAssign(assign *syntax.Assign, exported, reader bool, s scope) proposal.Assign {
	if assign.Name == nil {
		return proposal.Assign{}
	}
	name := assign.Name.Value
	value, _ := w.known.expandLiteral(assign.Value, readAssign)
	origin := w.originOf(name)
	if assign.Value != nil || assign.Array == nil {
		origin.addWord(w, assign.Value)
	}
	if assign.Array != nil {
		value = proposal.Word{}
		putInMap(&w.arrays, name, true)
		for _, elem := range assign.Array.Elems {
			w.addElement(origin, elem, s)
		}
	}
	if assign.Append || assign.Index != nil {
		value.Static = false
		origin.appended = origin.appended || assign.Append
	}
	if !(reader && name == "IFS") {
		w.assignedValue(name, value, w.spanOf(assign, s))
	}
	w.localeValue(name, value, w.spanOf(assign, s))
	return proposal.Assign{Name: name, Value: value, Exported: exported}
}

// addElement records the value of an array element, which may be several words.
func (w *walker) addElement(origin *origin, elem *syntax.ArrayElem, s scope) {
	if elem.Value == nil {
		return
	}
	for _, a := range w.argsOf(elem.Value, s) {
		origin.addItem(w, a)
	}
}

func (w *walker) assignWords(assign *syntax.Assign, s scope) {
	if assign.Index != nil {
		w.walkSubscript(assign.Name.Value, assign.Index, s)
	}
	w.walkWord(assign.Value, s)
	if assign.Array == nil {
		return
	}
	for _, elem := range assign.Array.Elems {
		if elem.Index != nil {
			w.walkSubscript(assign.Name.Value, elem.Index, s)
		}
		w.walkWord(elem.Value, s)
	}
}

// recordCommand records the command in args and follows the commands it runs.
func (w *walker) recordCommand(args []arg, s scope, c call) {
	words := make([]proposal.Word, len(args))
	for i, a := range args {
		words[i] = a.Word
	}
	command := proposal.Command{
		Args: words, Via: s.via, Assigns: c.assigns, Redirects: c.redirects, Inside: s.inside, StdinFrom: c.stdin,
		Span:         c.span,
		AfterSuccess: s.sure,
	}
	if len(args) == 0 {
		w.emitCommand(command)
		return
	}
	program := w.knownFile(args[0], unknownProgram, s)
	if program.Static {
		args = append([]arg{program}, args[1:]...)
		command.Program = program.Value
	}
	index := w.emitCommand(command)
	if index < 0 {
		return
	}
	switch {
	case !program.Static:
		w.addUnknown(unknownProgram, program.span)
	case w.posix:
		w.commands[index].Builtin = w.runsItself(program.Value, s)
		if w.commands[index].Builtin != bashBuiltins[program.Value] {
			w.addUnknown(unknownPOSIX, program.span)
		}
	case program.Value == "":
		w.addUnknown(unknownNoProgram, program.span)
	case s.level > maxLevels:
		w.addUnknown(unknownDeep, program.span)
	default:
		w.commands[index].Builtin = w.runsItself(program.Value, s)
		w.followCommand(index, args, s, c)
		w.commands[index].Launches = len(w.commands) > index+1
	}
}

// followCommand looks into commands that run other commands.
func (w *walker) followCommand(index int, args []arg, s scope, c call) {
	name := args[0].Value
	if !(w.noShell && len(s.via) == 0 && programsToo[name]) && w.checkBuiltin(index, args, s, c) {
		return
	}
	if writers[path.Base(name)] {
		for _, a := range args[1:] {
			a.Value = strings.TrimPrefix(a.Value, "of=")
			w.recordWrite(a.Word)
		}
	}
	if optionWriters[path.Base(name)] {
		w.recordOptionWrites(args[1:])
	} else {
		w.recordOutputs(args[1:])
	}
	if editsInPlace(path.Base(name), args[1:]) {
		w.recordEdits(args[1:], s)
	}
	if path.Base(name) == "sqlite3" {
		w.recordQueries(args[1:], c)
	}
	if strings.Contains(name, "/") {
		putInMap(&w.scripts, path.Clean(name), append(w.scripts[path.Clean(name)], c.span))
		if c.before != nil && len(args) == 1 {
			file := args[0]
			file.span = c.span
			w.readWritten(scriptShell(c.before.text), file, s, c)
		}
		name = path.Base(name)
	}
	if shells[name] {
		if !w.followLoop(index, args, s) {
			w.followShell(args, s, c)
		}
	} else if wrap := wrapperOf(name); wrap != nil {
		wrap(w, index, args, s, c)
	}
}

// writers are programs that write the files named in their arguments.
var writers = map[string]bool{"tee": true, "cp": true, "mv": true, "ln": true, "install": true, "dd": true,
	"sponge": true}

// optionWriters are programs that write the file of an option, such as -o, or their last operand.
var optionWriters = map[string]bool{"sort": true, "shuf": true, "iconv": true, "uniq": true, "xxd": true,
	"openssl": true, "pdftotext": true, "curl": true, "wget": true}

// recordOptionWrites records each word that may name a file to write: an operand, or the value of an option in any
// spelling.
func (w *walker) recordOptionWrites(args []arg) {
	for _, a := range args {
		w.recordWrite(a.Word)
		if !a.Static || !strings.HasPrefix(a.Value, "-") {
			continue
		}
		if _, value, ok := strings.Cut(a.Value, "="); ok {
			w.countWrite(value)
		}
		for at := 2; at < min(len(a.Value), 8); at++ { // -ox.sh, -uox.sh
			w.countWrite(a.Value[at:])
		}
	}
}

var outputOption = pattern.New(`^(-\w?[oO]|--(out|report|result|dest|write|save)[\w-]*)$`)

// recordOutputs records scripts that the options of any other program name as its output.
func (w *walker) recordOutputs(args []arg) {
	for i, a := range args {
		option, value, attached := strings.Cut(a.Value, "=")
		switch {
		case attached && outputOption.MatchString(option):
		case i > 0 && outputOption.MatchString(args[i-1].Value):
			value = a.Value
		case strings.HasPrefix(a.Value, "-o"):
			value = a.Value[2:]
		default:
			continue
		}
		if mayBeScript(value) {
			w.countWrite(value)
		}
	}
}

// readScript reads static text that a shell will run. That text runs as written, not as
// we would print it, so it must not contain anything the parser and bash read
// differently.
func (w *walker) readScript(text string, span proposal.Span, s scope) {
	if finding, ok := checkText(text); !ok {
		finding.Span = span
		w.unknowns = append(w.unknowns, finding)
		return
	}
	file, err := parseText(text)
	if err != nil {
		finding := syntaxUnknown(text, err)
		finding.Span = span
		w.unknowns = append(w.unknowns, finding)
		return
	}
	if _, _, ok := reprintFile(file); !ok || strings.HasSuffix(text, `\`) {
		w.addUnknown(unknownUnstable, span)
	}
	if hasRiskyComment(text) {
		w.addUnknown(unknownComment, span)
	}
	s.span = &span
	if len(s.via) > 0 && s.via[len(s.via)-1] != "trap" {
		w.shells++
		s.shell, s.top, s.fn = w.shells, true, false
	}
	defer func(outer knownVariables) { w.known = outer }(w.known)
	w.known = nil // another shell, or a later time
	commands, unknowns := len(w.commands), len(w.unknowns)
	w.walkStmts(file.Stmts, s)
	if isPOSIX(shellName(s.via)) {
		w.readAgain(text, s, w.commands[commands:], w.unknowns[unknowns:])
	}
}

// hasRiskyComment reports whether text may contain one of the two kinds of comment
// that the parser and bash read differently: one whose line ends in a backslash, and
// one directly after a closing parenthesis.
func hasRiskyComment(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		cut := strings.IndexByte(line, '#')
		if cut >= 0 && strings.HasSuffix(line, `\`) {
			return true
		}
	}
	return strings.Contains(text, ")#") || strings.Contains(text, "\\\n#")
}
