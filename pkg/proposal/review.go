// SPDX-License-Identifier: Apache-2.0

package proposal

// FindingsSchema is the value of the "schema" field of a document of findings.
const FindingsSchema = "fumehood.findings/v1"

// ReviewFindings are what a reviewer claims about a pull request. All of it is untrusted.
type ReviewFindings struct {
	Schema   string          `json:"schema"`
	Reviewer string          `json:"reviewer,omitempty"` // who made them, for people
	Findings []ReviewFinding `json:"findings"`
	// Tests are commands that must still succeed after a suggestion, if they succeed before it.
	Tests []Proposal `json:"tests,omitempty"`

	// Digest is "sha256:" and the lower-case hex SHA-256 of the document that was read.
	Digest string `json:"-"`
}

// A ReviewFinding is a claim about some lines, with a command that shows it.
type ReviewFinding struct {
	ID       string `json:"id"`
	File     string `json:"file"`                 // relative to the repository's root
	Line     int    `json:"line"`                 // from 1; the last line that the claim is about
	Start    int    `json:"start_line,omitempty"` // the first line, if there are several
	Side     string `json:"side,omitempty"`       // "head", which is the default, or "base": whose lines are counted
	Severity string `json:"severity,omitempty"`   // "critical", "high", "medium" or "low"
	Claim    string `json:"claim"`
	// Reproducer fails where the claim is true and succeeds where it is not. A finding
	// without one is never verified.
	Reproducer *Proposal `json:"reproducer,omitempty"`
	// Suggestion replaces the lines, each of its own lines ended by a newline; nil for none.
	Suggestion *string `json:"suggestion,omitempty"`
	// Invalid is set by the reader of a document: nothing of the finding is used but the ID.
	Invalid *Invalid `json:"invalid,omitempty"`
}
