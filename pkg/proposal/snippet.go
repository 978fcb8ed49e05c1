// SPDX-License-Identifier: Apache-2.0

package proposal

// A Snippet describes a piece of code that a Proposal contains in its text: the
// proposal's own code, the argument of -c or -e, or a here-document that an
// interpreter reads.
//
// It is advice, not containment. Code that looks harmless may still do harm, and
// modules that a snippet imports from the workspace were not analyzed.
type Snippet struct {
	Language string `json:"language"` // "python", "javascript" or "typescript"
	Via      string `json:"via"`      // "code", "-c", "-e", "heredoc" or "herestring"
	Command  int    `json:"command"`  // index into Analysis.Commands
	Size     int    `json:"size"`     // bytes
	// Complete means that the whole text was read and understood. Otherwise Imports,
	// Capabilities and Findings may be incomplete, and Findings says why.
	Complete bool `json:"complete"`
	// SyntaxOnly means that the text is a cell with a syntax that was not understood. It is not run: its
	// interpreter says what is wrong with the syntax.
	SyntaxOnly   bool             `json:"syntax_only,omitempty"`
	Imports      []string         `json:"imports"`      // modules as written, sorted, without duplicates
	Capabilities []string         `json:"capabilities"` // what it can do, such as "network", sorted, without duplicates
	Findings     []SnippetFinding `json:"findings"`     // in text order
}

// A SnippetFinding is one place that hides from a reader what the code does, or does
// something that reviewers' snippets do not need.
type SnippetFinding struct {
	Code    string `json:"code"` // stable, for example "dynamic-code"
	Message string `json:"message"`
	Span    Span   `json:"span"` // in the snippet's text
}
