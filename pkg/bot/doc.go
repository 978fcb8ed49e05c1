// SPDX-License-Identifier: Apache-2.0

// Package bot reads what a pull request's comment asks of fumehood and words the
// answers. It is pure: text in, values out, no I/O and no clock.
//
// A comment asks something when its first line that is not blank begins, at its
// first column, with /fumehood. It then holds one command and nothing else:
//
//	/fumehood run go test ./pkg/parse -run TestHeredoc
//	/fumehood approve 0123456789ab
//	/fumehood rerun
//	/fumehood explain unit
//	/fumehood help
//
// or /fumehood run alone on its line, and after it a plan in one fenced block whose
// info string is fumehood. approve takes 12 to 64 digits of the commit, lower-case;
// explain takes the id of a proposal. Lines end in LF or in CR and LF, as GitHub
// sends them. Whatever else begins with /fumehood is a Problem that says what is
// wrong: nothing is guessed, nothing left over is overlooked.
//
// An AI reviewer's comment need not begin so: FindPlan finds the one plan block in
// it, by GitHub's Markdown rules, and not one that stands in a quotation or in a
// hidden HTML comment.
//
// It promises that a command line holds no character that a person cannot see, that
// a plan is the block's bytes, and that texts for people show what came from outside
// only as code, in which no mention, link, image or Markdown works.
//
// It does not say who may ask (package policy does, from what GitHub's API reports),
// does not decode plans, and does not judge them: a plan from a comment is as
// hostile as any other.
package bot

import (
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/internal/text"
)

// MaxBody is how many characters a comment may have. GitHub allows no more.
const MaxBody = 65536

// A Command is what a comment asks.
type Command struct {
	// Name is "run", "approve", "rerun", "explain" or "help".
	Name string
	// Line is the command line of a run; "" when the comment holds a plan.
	Line string
	// Plan is the document of a run: the bytes between the fences, or for a Line a
	// plan with the one proposal LineID. Nothing has decoded or checked it, and it
	// names no proposer that may be believed: set the plan's proposer from the
	// comment's author.
	Plan []byte
	// SHA is approve's commit: 12 to 64 lower-case hex digits; see Match.
	SHA string
	// ID is the proposal that explain asks about.
	ID string
}

// LineID is the id of the proposal that a command line becomes.
const LineID = "comment"

// Starts reports whether c makes something run, if it is allowed.
func (c Command) Starts() bool {
	return c.Name == "run" || c.Name == "rerun" || c.Name == "approve"
}

// A Problem is what is wrong with a comment, or with what it asks for.
type Problem struct {
	Message string // our words
	Text    string // the words it speaks of; untrusted, may be ""
	Line    int    // in the comment, from 1; 0 when it speaks of no line
	// Usage says that the answer should show what may be written.
	Usage bool
}

// readable says what keeps the whole of body from being read, or nothing.
func readable(body string) *Problem {
	switch {
	case !utf8.ValidString(body):
		return &Problem{Message: "the comment is not valid UTF-8"}
	case utf8.RuneCountInString(body) > MaxBody:
		return &Problem{Message: "the comment is longer than " + text.Count(MaxBody) + " characters"}
	}
	return nil
}
