// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A walker collects its findings in one text.
type walker struct {
	text     string
	noShell  bool // argv: no shell reads the outermost words
	offline  bool // the proposal requests no network
	posix    bool // the second reading of what sh -c reads
	commands []proposal.Command
	unknowns []proposal.Unknown
	depth    int // levels in the syntax tree
	full     bool

	values        map[string]*origin         // what variables may hold
	numbers       map[string]proposal.Span   // variables that bash evaluates as expressions
	doubts        []doubt                    // words that need a check of the whole text
	exported      map[string]bool            // variables that are exported by name alone
	functions     map[functionName]*function // functions that the text declares
	shells        int                        // shells that the text starts
	called        []callSite                 // calls of plain names
	arrays        map[string]bool            // variables that may be arrays
	rewritten     []arg                      // declarations with a value that is not literal
	actions       []arg                      // expansions among find's arguments
	assoc         map[functionName]bool      // arrays that the text surely declares associative
	textual       map[string]proposal.Span   // arrays whose subscripts are read as text, for that reason
	made          map[string]bool            // variables that hold a directory that mktemp made
	rooted        map[string]bool            // variables that hold the directory in which the text began
	loops         map[string][]string        // scripts of the workspace, or patterns of them, over which loops run
	found         []string                   // patterns of scripts that the find being followed finds
	undone        map[string]bool            // variables that are unset or declared as something else
	written       map[string]bool            // files that redirections write
	writtenGlobs  []string                   // patterns of the names of files that it changes
	writesAny     bool                       // it may change any script
	writes        map[string]int             // how often files of a name are written
	writesUnknown bool                       // it writes a file whose name is not known
	writesMade    map[string]bool            // variables of made that name a directory of files that it writes
	alternates    bool                       // it has || outside the scripts that it writes
	script        *writtenScript             // by the statement before
	read          map[string][]proposal.Span // where files run that the text writes, and were read
	scripts       map[string][]proposal.Span // files that are run
	shellFiles    map[string]bool            // those that are given to a shell
	lookups       map[string][]proposal.Span // names of programs that launchers look for

	sets    map[string]int // how often the text sets a variable
	once    map[string]int // the same, from an earlier walk
	known   knownVariables // variables whose value is certain here
	learned []string       // their names, in the order learned
	certain bool           // the text sets some variable to a literal

	plainLocales map[string]bool // loop variables that hold plain locales
	locales      []namedAt       // variables that set a locale
}

type namedAt struct {
	name string
	span proposal.Span
}

// A scope is the context of a command.
type scope struct {
	via    []string
	inside []string
	stdin  string
	span   *proposal.Span // of everything inside a nested text
	level  int            // nested wrappers and substitutions
	shell  int            // which shell of the text reads it: functions are not inherited
	top    bool           // a statement of that shell's text, not of a construct
	fn     bool           // in a function's body
	sure   bool           // what is before it in its list succeeded: see Command.AfterSuccess
}

// newWalker begins a walk. Once is how often an earlier walk of the same text saw
// each variable set; nil on the first.
func newWalker(text string, env map[string]string, once map[string]int) *walker {
	w := &walker{text: text, once: once, certain: len(env) > 0, arrays: map[string]bool{"MAPFILE": true}}
	w.fromEnv(env)
	for name, value := range env {
		w.originOf(name).addLiteral(value)
		putInMap(&w.exported, name, true)
		w.assignedValue(name, proposal.Word{Value: value, Static: true}, wholeSpan(""))
	}
	return w
}

// putInMap sets m[key], allocating the map if necessary.
func putInMap[M ~map[K]V, K comparable, V any](m *M, key K, value V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = value
}

// inConstruct returns s one construct deeper.
func (s scope) inConstruct(construct string) scope {
	s.inside = append(s.inside[:len(s.inside):len(s.inside)], construct)
	s.top, s.sure = false, false
	return s
}

// inWrapper returns s inside a wrapper.
func (s scope) inWrapper(wrapper string) scope {
	s.via = append(s.via[:len(s.via):len(s.via)], wrapper)
	s.level++
	s.top = false
	return s
}

func (w *walker) addUnknown(kind unknownKind, span proposal.Span) {
	if len(w.unknowns) < maxCommands {
		w.unknowns = append(w.unknowns, kind.unknownAt(span))
	}
}

// spanOf returns the position of node in the canonical text.
func (w *walker) spanOf(node syntax.Node, s scope) proposal.Span {
	if s.span != nil {
		return *s.span
	}
	start, end := node.Pos(), node.End()
	from, to := min(int(start.Offset()), len(w.text)), min(int(end.Offset()), len(w.text))
	return proposal.Span{Start: from, End: max(from, to), Line: int(start.Line()), Col: int(start.Col())}
}

// emitCommand records one command, unless there are too many.
func (w *walker) emitCommand(c proposal.Command) int {
	if len(w.commands) >= maxCommands {
		if !w.full {
			w.full = true
			w.addUnknown(unknownMany, c.Span)
		}
		return -1
	}
	c.Index = len(w.commands)
	w.commands = append(w.commands, c)
	return c.Index
}

// enterNode goes one level deeper, unless that is too deep or the text was given up. The
// caller must leave if it returns true.
func (w *walker) enterNode(node syntax.Node, s scope) bool {
	if w.full {
		return false
	}
	if w.depth >= maxDepth || s.level > maxLevels {
		w.addUnknown(unknownDeep, w.spanOf(node, s))
		return false
	}
	w.depth++
	return true
}

func (w *walker) leaveNode() { w.depth-- }
