// SPDX-License-Identifier: Apache-2.0

package proposal

import "encoding/json"

// A Diagnostic is one thing that the output of a command reports: a test that failed, a
// compiler's error, a linter's warning or an exception. Package failure reads them. All text
// in it is untrusted: a command prints what it likes.
type Diagnostic struct {
	Tool  string `json:"tool"`            // that reported it: "jest", "tsc"
	Level string `json:"level"`           // "failure", "warning" or "notice"
	Rule  string `json:"rule,omitempty"`  // of a linter or compiler: "no-undef", "TS2322"
	Suite string `json:"suite,omitempty"` // package, class or file that Test is unique in, if known
	Test  string `json:"test,omitempty"`  // full name of the test that failed, as its runner prints it
	// Message is what the tool says, in one line. Expected and Actual are the values that an
	// assertion compared, where the tool prints them.
	Message  string `json:"message"`
	Expected string `json:"expected,omitempty"`
	Actual   string `json:"actual,omitempty"`
	// File is a path in the workspace; "" if no place is known. Line and Column are from 1;
	// 0 if unknown.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Frames are the places in the workspace that a stack names, innermost first.
	Frames []Frame `json:"frames,omitempty"`
}

// A Frame is a line of a file of the workspace that a stack names.
type Frame struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column,omitempty"`
}

// Diagnostics are computed from a command's output when a document is written. Decoding ignores
// them, so a document cannot contradict itself.
type Diagnostics []Diagnostic

// UnmarshalJSON accepts a list and leaves d unchanged.
func (d *Diagnostics) UnmarshalJSON(data []byte) error {
	var list []Diagnostic
	return json.Unmarshal(data, &list)
}
