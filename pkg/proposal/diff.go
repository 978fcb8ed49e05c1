// SPDX-License-Identifier: Apache-2.0

package proposal

// A Diff is how a session's workspace differs from the one that the session began with, or
// that its set-up left.
type Diff struct {
	Files []FileDiff `json:"files"` // sorted by path, without directories
	// Omitted counts further paths that changed.
	Omitted int `json:"omitted"`
	// Patch is the file with the Text of all Files.
	Patch Output `json:"patch"`
}

// A FileDiff is one path that differs.
type FileDiff struct {
	Path string     `json:"path"`          // relative to the workspace; untrusted bytes
	Kind string     `json:"kind"`          // "added", "changed" or "removed"
	Old  *FileState `json:"old,omitempty"` // nil if it was added
	New  *FileState `json:"new,omitempty"` // nil if it was removed
	// Text is the difference in the format of git diff, which git apply reads unless Note
	// says what it lacks. Secrets are redacted.
	Text string `json:"text"`
	Note string `json:"note,omitempty"`
}

// Differences are what a report has of a run's Diff: how the commands left the workspace. In
// Patch, only Bytes, SHA256, File and Redacted are set. They describe all Texts, one after
// the other.
type Differences struct {
	Files []Difference `json:"files"` // sorted by path, without directories
	// Omitted counts further paths that changed and were not compared.
	Omitted int    `json:"omitted"`
	Patch   Output `json:"patch"`
}

// A Difference is what a report has of a FileDiff.
type Difference struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	Text string `json:"text"` // "" if Note says why it was left out
	Note string `json:"note,omitempty"`
}

// A FileState is a path before or after.
type FileState struct {
	Type   string `json:"type"`             // as in Change
	Mode   uint32 `json:"mode"`             // permission bits, as chmod takes them
	Target string `json:"target,omitempty"` // of a symlink
	// Output describes the content of a file. Its SHA256 is empty if the content was not
	// looked at, or is withheld.
	Output
}
