// SPDX-License-Identifier: Apache-2.0

package proposal

import "strings"

// An Analysis is what internal/shell/parse found in one Proposal.
//
// Exactly the text that is decided runs: Canonical, printed from the syntax tree,
// is the only shell text that a sandbox may execute. For an argv proposal
// Canonical is the argv quoted for a shell, for display only.
type Analysis struct {
	Canonical string    `json:"canonical"`
	Commands  []Command `json:"commands"`
	Unknowns  []Unknown `json:"unknowns"` // if not empty, the text cannot be analyzed and is denied
	// Snippets are what internal/shell/snippet found in the code that the text contains.
	Snippets []Snippet `json:"snippets,omitempty"`
	// Begins is the byte of Canonical at which the proposal's own Code begins. What is before it
	// is that of Proposal.Earlier.
	Begins int `json:"begins,omitempty"`
}

// Own returns the part of Canonical that is the proposal's own, without the earlier cells.
func (a Analysis) Own() string { return a.Canonical[min(max(a.Begins, 0), len(a.Canonical)):] }

// A Command is one simple command: a program with its arguments, its assignments
// and its redirections. Wrapped commands (timeout 5 go test) appear twice: as
// the wrapper, and as the command that it runs, with the wrapper's name in Via.
type Command struct {
	Index     int        `json:"index"`   // position in Analysis.Commands
	Program   string     `json:"program"` // the literal first word; "" for assignments or redirections alone
	Args      []Word     `json:"args"`    // all words, including the program's
	Via       []string   `json:"via"`     // wrappers from the outermost in: "timeout", "xargs", "find -exec", "bash -c"
	Assigns   []Assign   `json:"assigns"`
	Redirects []Redirect `json:"redirects"`
	Inside    []string   `json:"inside"`     // constructs from the outermost in: "pipeline", "subshell", "function f", "for", "substitution"
	Function  bool       `json:"function"`   // Program is a function that the same text declares
	StdinFrom string     `json:"stdin_from"` // "", "pipe", "file", "heredoc" or "herestring"
	Span      Span       `json:"span"`
	// Launches means that the analysis followed this command to the commands that it
	// runs: a wrapper, an inner shell, trap, exec. They have a longer Via.
	Launches bool `json:"-"`
	// Builtin means that the shell runs the command itself, without an exec. It is
	// false for a function, and for assignments or redirections alone.
	Builtin bool `json:"-"`
	// AfterSuccess means that the command runs only if each one before it in its list succeeded, as b
	// and c of a && b && c.
	AfterSuccess bool `json:"-"`
}

// StartsText reports whether a process that runs c starts only commands that were
// analyzed with c: an inner shell, or a launcher such as timeout, xargs or find -exec.
// git and go are not: they run many other programs besides the one in their arguments.
func (c Command) StartsText() bool {
	name := c.Program[strings.LastIndexByte(c.Program, '/')+1:]
	return c.Launches && name != "git" && name != "go"
}

// Argv returns the literal values of c's words. The program will see exactly these
// words only if every Word is Static.
func (c Command) Argv() []string {
	argv := make([]string, len(c.Args))
	for i, w := range c.Args {
		argv[i] = w.Value
	}
	return argv
}

// A Word is one word of a command as the program will see it.
type Word struct {
	// Value is the whole unquoted word if Static, else its longest literal prefix.
	Value  string `json:"value"`
	Static bool   `json:"static"`
	// Glob means that the shell may replace the word with file names, which the pull
	// request chooses. A word with Glob is never Static.
	Glob bool `json:"glob"`
	// Head is the expansion that a word begins with, if everything after it is
	// literal: "$name", or "$(git rev-parse HEAD)" of plain words. Tail is the rest.
	// Split means that the word may become several words, or none.
	Head  string `json:"-"`
	Tail  string `json:"-"`
	Split bool   `json:"-"`
	// Star means that the word is the pattern * alone, which matches every name.
	Star bool `json:"-"`
	// Variables are those that the word expands in double quotes, with blanks between, if everything else of it is
	// literal.
	Variables string `json:"-"`
}

// An Assign is one NAME=value before a command, in export, declare and the like,
// or in env's operands.
type Assign struct {
	Name  string `json:"name"`
	Value Word   `json:"value"`
	// Exported means that this command, or programs started later, see it.
	Exported bool `json:"exported"`
}

// A Redirect is one redirection with its target.
type Redirect struct {
	Op     string `json:"op"` // as written: ">", ">>", "<", "2>" has Op ">" and FD 2, "&>", "<<", "<<<" …
	FD     int    `json:"fd"`
	Target Word   `json:"target"` // file, descriptor number, or here-document text
	Kind   string `json:"kind"`   // "read", "write", "readwrite", "dup", "heredoc", "herestring", "process"
}

// An Unknown is something that cannot be determined before the command runs, so the
// command is refused without being judged.
type Unknown struct {
	Code    string `json:"code"`    // stable, for example "parse.dynamic-program"
	Message string `json:"message"` // what cannot be determined
	Hint    string `json:"hint"`    // how to write it so that it can be
	Span    Span   `json:"span"`
}

// A Span is a position in a Proposal's text: byte offsets [Start, End), and the line
// and column of Start, counted from 1, columns in bytes.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
	Line  int `json:"line"`
	Col   int `json:"col"`
}
