// SPDX-License-Identifier: Apache-2.0

package proposal

// A Snippet is what was found in a piece of code that a Proposal carries in its text:
// the proposal's own code, what follows -c or -e, or a here-document that an
// interpreter reads.
//
// It is advice, not containment. Code that looks harmless may still do harm, and
// what a snippet imports from the workspace was not looked at.
type Snippet struct {
	Language string `json:"language"` // "python", "javascript" or "typescript"
	Via      string `json:"via"`      // "code", "-c", "-e", "heredoc" or "herestring"
	Command  int    `json:"command"`  // index into Analysis.Commands
	Size     int    `json:"size"`     // bytes
	// Complete means that the whole text was read and understood. Without it Imports,
	// Capabilities and Findings may miss something, and Findings says why.
	Complete     bool             `json:"complete"`
	Imports      []string         `json:"imports"`      // modules as they are named, sorted, without repetition
	Capabilities []string         `json:"capabilities"` // the Can… words, sorted, without repetition
	Findings     []SnippetFinding `json:"findings"`     // in the order of the text
}

// A SnippetFinding is one place that hides from a reader what the code does, or does
// what reviewers' snippets have no use for.
type SnippetFinding struct {
	Code    string `json:"code"` // stable, for example "dynamic-code"
	Message string `json:"message"`
	Span    Span   `json:"span"` // in the snippet's text
}

// What a snippet can do, as far as its text shows.
const (
	CanReadFiles   = "files-read"
	CanWriteFiles  = "files-write"
	CanNetwork     = "network"
	CanProcess     = "process"      // starts, signals or becomes other programs
	CanEnvironment = "environment"  // reads or changes variables
	CanDynamicCode = "dynamic-code" // runs text that is not in the snippet
	CanNativeCode  = "native-code"  // ctypes, native add-ons, WebAssembly
	CanProjectCode = "project-code" // imports what is not the language's own library
	CanConcurrency = "concurrency"
	CanTime        = "time"
	CanInspect     = "introspection" // looks at or changes the interpreter itself
)
