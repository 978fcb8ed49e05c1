// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A walker collects what it meets in one text.
type walker struct {
	text     string
	noShell  bool // argv: no shell reads the outermost words
	commands []proposal.Command
	unknowns []proposal.Unknown
	depth    int // levels in the syntax tree
	full     bool

	values    map[string]*origin         // what variables may hold
	numbers   map[string]proposal.Span   // variables that bash evaluates as expressions
	operands  map[string]operandUse      // words that a builtin may read as an option or operator
	exported  map[string]bool            // variables that are exported by name alone
	functions map[functionName]*function // functions that the text declares
	shells    int                        // shells that the text starts
	called    []callSite                 // calls of plain names
	arrays    map[string]bool            // variables that are arrays
	rewritten []arg                      // declarations with a value that is not literal
	actions   []arg                      // expansions among find's arguments
	assoc     map[functionName]bool      // arrays that the text surely declares associative
	textual   map[string]proposal.Span   // arrays whose subscripts are taken for text, for that reason
	undone    map[string]bool            // variables that are unset or declared as something else
	written   map[string]bool            // files that redirections write
	scripts   map[string][]proposal.Span // files that are run
}

// A scope is where a command stands.
type scope struct {
	via    []string
	inside []string
	stdin  string
	span   *proposal.Span // of everything inside a nested text
	level  int            // nested wrappers and substitutions
	shell  int            // which shell of the text reads it: functions are not inherited
	top    bool           // a statement of that shell's text, not of a construct
	fn     bool           // in a function's body
}

func newWalker(text string, env map[string]string) *walker {
	w := &walker{text: text}
	for name, value := range env {
		w.origin(name).addText(value)
		put(&w.exported, name, true)
		w.assigned(name, wholeSpan(""), scope{})
	}
	return w
}

// put sets m[key], making the map when it is the first.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// in is s one construct further in.
func (s scope) in(construct string) scope {
	s.inside = append(s.inside[:len(s.inside):len(s.inside)], construct)
	s.top = false
	return s
}

// through is s inside a wrapper.
func (s scope) through(wrapper string) scope {
	s.via = append(s.via[:len(s.via):len(s.via)], wrapper)
	s.level++
	s.top = false
	return s
}

func (w *walker) unknown(kind unknownKind, span proposal.Span) {
	if len(w.unknowns) < maxCommands {
		w.unknowns = append(w.unknowns, kind.at(span))
	}
}

// span is where node stands in the canonical text.
func (w *walker) span(node syntax.Node, s scope) proposal.Span {
	if s.span != nil {
		return *s.span
	}
	start, end := node.Pos(), node.End()
	from, to := min(int(start.Offset()), len(w.text)), min(int(end.Offset()), len(w.text))
	return proposal.Span{Start: from, End: max(from, to), Line: int(start.Line()), Col: int(start.Col())}
}

// emit records one command, unless there are too many.
func (w *walker) emit(c proposal.Command) int {
	if len(w.commands) >= maxCommands {
		if !w.full {
			w.full = true
			w.unknown(unknownMany, c.Span)
		}
		return -1
	}
	c.Index = len(w.commands)
	w.commands = append(w.commands, c)
	return c.Index
}

// enter goes one level down, unless that is too deep or the text is given up.
// The caller must leave when it returns true.
func (w *walker) enter(node syntax.Node, s scope) bool {
	if w.full {
		return false
	}
	if w.depth >= maxDepth || s.level > maxLevels {
		w.unknown(unknownDeep, w.span(node, s))
		return false
	}
	w.depth++
	return true
}

func (w *walker) leave() { w.depth-- }

func (w *walker) stmts(stmts []*syntax.Stmt, s scope) {
	for _, stmt := range stmts {
		w.stmt(stmt, s)
	}
}

func (w *walker) stmt(stmt *syntax.Stmt, s scope) {
	if stmt.Coprocess || stmt.Disown {
		w.unknown(unknownDialect, w.span(stmt, s))
		return
	}
	if binary, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && len(stmt.Redirs) == 0 {
		w.chain(binary, s, stmt.Background)
		return
	}
	if !w.enter(stmt, s) {
		return
	}
	defer w.leave()
	if stmt.Background {
		s = s.in("background")
	}
	redirects, stdin := w.redirects(stmt.Redirs, s)
	if call, ok := stmt.Cmd.(*syntax.CallExpr); ok {
		w.simple(stmt, call, redirects, stdin, s)
		return
	}
	if decl, ok := stmt.Cmd.(*syntax.DeclClause); ok {
		w.declaration(stmt, decl, redirects, stdin, s)
		return
	}
	if len(redirects) > 0 || evaluates(stmt.Cmd) {
		w.emit(proposal.Command{Redirects: redirects, Via: s.via, Inside: s.inside, StdinFrom: stdin, Span: w.span(stmt, s)})
	}
	w.redirectWords(stmt.Redirs, s)
	s.stdin = stdin
	w.compound(stmt.Cmd, s)
}

// evaluates reports whether cmd is a command of its own that starts no program.
func evaluates(cmd syntax.Command) bool {
	switch cmd.(type) {
	case nil, *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		return true
	}
	return false
}

// chain walks a && b | c …, which nests to the left, without going deeper.
func (w *walker) chain(binary *syntax.BinaryCmd, s scope, background bool) {
	if background {
		s = s.in("background")
	}
	var right []*syntax.BinaryCmd
	var left *syntax.Stmt
	for {
		right = append(right, binary)
		left = binary.X
		next, ok := left.Cmd.(*syntax.BinaryCmd)
		if !ok || len(left.Redirs) > 0 || left.Background {
			break
		}
		binary = next
	}
	first := right[len(right)-1]
	w.stmt(left, side(first, s, false))
	for i := len(right) - 1; i >= 0; i-- {
		w.stmt(right[i].Y, side(right[i], s, true))
	}
}

func side(binary *syntax.BinaryCmd, s scope, right bool) scope {
	if binary.Op != syntax.Pipe && binary.Op != syntax.PipeAll {
		return s.in("list")
	}
	s = s.in("pipeline")
	if right {
		s.stdin = "pipe"
	}
	return s
}

func (w *walker) compound(cmd syntax.Command, s scope) {
	switch cmd := cmd.(type) {
	case nil:
	case *syntax.BinaryCmd:
		w.chain(cmd, s, false)
	case *syntax.Block:
		w.stmts(cmd.Stmts, s.in("group"))
	case *syntax.Subshell:
		w.stmts(cmd.Stmts, s.in("subshell"))
	case *syntax.IfClause:
		w.ifClause(cmd, s.in("if"))
	case *syntax.WhileClause:
		name := "while"
		if cmd.Until {
			name = "until"
		}
		w.stmts(cmd.Cond, s.in(name))
		w.stmts(cmd.Do, s.in(name))
	case *syntax.ForClause:
		w.forClause(cmd, s)
	case *syntax.CaseClause:
		w.caseClause(cmd, s.in("case"))
	case *syntax.FuncDecl:
		w.funcDecl(cmd, s)
	case *syntax.ArithmCmd:
		w.notMksh(cmd, cmd.Unsigned, s)
		w.arithmetic(cmd.X, s)
	case *syntax.LetClause:
		for _, expr := range cmd.Exprs {
			w.arithmetic(expr, s)
		}
	case *syntax.TestClause:
		w.testExpr(cmd.X, s.in("test"))
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			w.stmt(cmd.Stmt, s.in("time"))
		}
	case *syntax.CoprocClause:
		w.coproc(cmd, s)
	default:
		w.unknown(unknownDialect, w.span(cmd, s))
	}
}

func (w *walker) notMksh(node syntax.Node, mksh bool, s scope) {
	if mksh {
		w.unknown(unknownDialect, w.span(node, s))
	}
}

func (w *walker) ifClause(cmd *syntax.IfClause, s scope) {
	for ; cmd != nil; cmd = cmd.Else {
		w.stmts(cmd.Cond, s)
		w.stmts(cmd.Then, s)
	}
}

func (w *walker) forClause(cmd *syntax.ForClause, s scope) {
	name := "for"
	if cmd.Select {
		name = "select"
	}
	switch loop := cmd.Loop.(type) {
	case *syntax.WordIter:
		w.loopWords(cmd, loop, s)
	case *syntax.CStyleLoop:
		w.arithmetic(loop.Init, s)
		w.arithmetic(loop.Cond, s)
		w.arithmetic(loop.Post, s)
	default:
		w.unknown(unknownDialect, w.span(cmd, s))
	}
	if cmd.Braces {
		w.unknown(unknownDialect, w.span(cmd, s))
	}
	w.stmts(cmd.Do, s.in(name))
}

// loopWords records what a loop's variable may hold.
func (w *walker) loopWords(cmd *syntax.ForClause, loop *syntax.WordIter, s scope) {
	span := w.span(loop.Name, s)
	value := proposal.Word{}
	origin := w.origin(loop.Name.Value)
	if !loop.InPos.IsValid() {
		origin.from("@")
	}
	var items []arg
	for _, item := range loop.Items {
		items = append(items, w.argsOf(item, s)...)
		origin.addWord(w, item)
	}
	if len(items) == 1 {
		value = items[0].Word
	}
	w.assigned(loop.Name.Value, span, s)
	assign := proposal.Assign{Name: loop.Name.Value, Value: value}
	w.emit(proposal.Command{Assigns: []proposal.Assign{assign}, Via: s.via, Inside: s.inside, Span: span})
	for _, item := range loop.Items {
		w.word(item, s)
	}
	if cmd.Select {
		w.origin("REPLY").unknown = true
	}
}

func (w *walker) caseClause(cmd *syntax.CaseClause, s scope) {
	w.notMksh(cmd, cmd.Braces, s)
	w.word(cmd.Word, s)
	for _, item := range cmd.Items {
		for _, pattern := range item.Patterns {
			w.word(pattern, s)
		}
		w.stmts(item.Stmts, s)
	}
}

func (w *walker) coproc(cmd *syntax.CoprocClause, s scope) {
	if cmd.Name != nil {
		name, _ := literal(cmd.Name, readWord)
		w.variableName(arg{Word: name, span: w.span(cmd.Name, s)}, s)
		w.word(cmd.Name, s)
	}
	s = s.in("coproc")
	s.stdin = "pipe"
	w.stmt(cmd.Stmt, s)
}

// word walks everything in word that bash runs or evaluates.
func (w *walker) word(word *syntax.Word, s scope) {
	if word != nil {
		w.parts(word.Parts, s, false)
	}
}

func (w *walker) parts(parts []syntax.WordPart, s scope, quoted bool) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			w.parts(part.Parts, s, true)
		case *syntax.ParamExp:
			w.paramExp(part, s, quoted)
		case *syntax.CmdSubst:
			w.substitution(part, s)
		case *syntax.ArithmExp:
			w.notMksh(part, part.Unsigned, s)
			w.arithmetic(part.X, s)
		case *syntax.ProcSubst:
			w.processSubst(part, s)
		case *syntax.ExtGlob:
			w.extGlob(part, s)
		default:
			w.unknown(unknownDialect, w.span(part, s))
		}
	}
}

func (w *walker) substitution(part *syntax.CmdSubst, s scope) {
	if part.TempFile || part.ReplyVar {
		w.unknown(unknownDialect, w.span(part, s))
		return
	}
	s = s.in("substitution")
	s.level++
	if w.enter(part, s) {
		w.stmts(part.Stmts, s)
		w.leave()
	}
}

func (w *walker) processSubst(part *syntax.ProcSubst, s scope) {
	s = s.in("process substitution")
	s.level++
	switch part.Op {
	case syntax.CmdOut:
		s.stdin = "pipe"
	case syntax.CmdIn:
	default:
		w.unknown(unknownDialect, w.span(part, s))
		return
	}
	if w.enter(part, s) {
		w.stmts(part.Stmts, s)
		w.leave()
	}
}

// extGlob refuses extended patterns outside [[ ]]: without the setting, bash reads
// them as something else. Their text is not parsed, so it must hold no expansion.
func (w *walker) extGlob(part *syntax.ExtGlob, s scope) {
	inTest := len(s.inside) > 0 && s.inside[len(s.inside)-1] == "test"
	if !inTest || strings.ContainsAny(part.Pattern.Value, "$`<>") {
		w.unknown(unknownExtglob, w.span(part, s))
	}
}
