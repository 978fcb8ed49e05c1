// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	_ "embed"
	"maps"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A Language is one that there is a program for.
type Language string

const (
	Python Language = "python" // 3.9 or newer
	Bash   Language = "bash"   // 4.4 or newer, see StartShell
	Node   Language = "node"   // 18 or newer; TypeScript where Node removes types itself (22.13 or newer)
)

var (
	//go:embed repl.py
	pythonText []byte
	//go:embed repl.mjs
	nodeText []byte
)

// A Program is what speaks the protocol for a language. It needs no other file, and no
// program other than the interpreter.
type Program struct {
	File        string // name of the file
	Text        []byte // its content; must not be changed
	Interpreter string // name of the interpreter in PATH
}

// Argv returns the command that starts the program, whose text is in the file at path.
// Its stdin and stdout are for Start; its stderr is not used. SIGINT must not be ignored
// by the process that starts it.
func (p Program) Argv(path string) []string {
	return []string{p.Interpreter, path}
}

var programs = map[Language]Program{
	Python: {"repl.py", pythonText, "python3"},
	Node:   {"repl.mjs", nodeText, "node"},
}

// ProgramOf returns the program of a language. It reports false if there is none; Bash needs
// none.
func ProgramOf(l Language) (Program, bool) {
	p, found := programs[l]
	return p, found
}

// Programs returns all programs.
func Programs() []Program { return slices.Collect(maps.Values(programs)) }

// LanguageOf returns the language that runs the cells of what a proposal calls name. It
// reports false if cells of it keep no state.
func LanguageOf(name string) (Language, bool) {
	l, found := map[string]Language{"python": Python, "javascript": Node, "bash": Bash, "sh": Bash}[name]
	return l, found
}

// MaxContexts is how many contexts, of all languages together, a sandbox has at a time. Each is a process.
const MaxContexts = 64

// ValidContext reports whether a context can have this name: up to 64 letters, digits, ".",
// "_" and "-".
func ValidContext(name string) bool { return contextName.MatchString(name) }

var contextName = pattern.New(`^[A-Za-z0-9_.-]{1,64}$`)
