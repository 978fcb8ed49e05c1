// SPDX-License-Identifier: Apache-2.0

// Package bot parses commands to fumehood in pull request comments and renders the
// answers. It is pure: text in, values out, no I/O and no clock.
//
// A comment is a command if its first line that is not blank begins, at the first
// column, with /fumehood. It then contains one command and nothing else:
//
//	/fumehood run go test ./internal/shell/parse -run TestHeredoc
//	/fumehood approve 3fa2b91c
//	/fumehood rerun
//	/fumehood review
//	/fumehood explain unit
//	/fumehood help
//
// or /fumehood run alone on its line, followed by a plan in one fenced block whose
// info string is fumehood. approve takes the first 8 to 64 digits of an ApprovalQuestion's digest, lower-case;
// without any, Approve answers with the command to write. explain takes the id of a proposal. Lines end in LF or
// in CR LF, as GitHub sends them. Anything else that begins with /fumehood is a Problem: nothing is guessed and
// no extra text is ignored.
//
// An AI reviewer's comment need not begin like that. FindPlan finds the only plan block
// in it, by GitHub's Markdown rules, ignoring quotations and hidden HTML comments.
//
// It promises that a command line contains no invisible characters, that a plan is
// exactly the block's bytes, and that answers show external text only as code, in
// which no mention, link, image or Markdown works.
//
// It does not decide who may use commands (package policy does, from data of
// GitHub's API), does not decode plans, and does not judge them: a plan from a
// comment is as untrusted as any other.
package bot

import (
	"slices"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/text"
)

// MaxBody is the maximum length of a comment in characters, as on GitHub.
const MaxBody = 65536

// A Command is a command in a comment.
type Command struct {
	// Name is "run", "approve", "rerun", "review", "explain" or "help".
	Name string
	// Line is the command line of a run; "" if the comment contains a plan.
	Line string
	// Plan is the document of a run: the bytes between the fences or, for a Line, a
	// plan with the single proposal LineID. It is not decoded or checked. Any proposer
	// in it must not be trusted: set the plan's proposer from the comment's author.
	Plan []byte
	// Digits are approve's: the first 8 to 64 digits of an ApprovalQuestion's digest, or "", which approves
	// nothing.
	Digits string
	// ID is the proposal to explain.
	ID string
}

// LineID is the id of the proposal made from a command line.
const LineID = "comment"

// StartsRun reports whether c starts a run, if it is allowed.
func (c Command) StartsRun() bool {
	return slices.Contains([]string{"run", "rerun", "approve", "review"}, c.Name)
}

// A Problem is an error in a comment or in its command.
type Problem struct {
	Message string // trusted
	Text    string // the text that it is about; untrusted, may be ""
	Line    int    // in the comment, from 1; 0 if it is not about a line
	// Write are the commands any of which to write instead, and Purpose says what for; trusted.
	Write   []string
	Purpose string
	// Usage says that the answer should list the commands.
	Usage bool
}

// checkReadable returns a Problem if a part of body cannot be read, or nil.
func checkReadable(body string) *Problem {
	switch {
	case !utf8.ValidString(body):
		return &Problem{Message: "the comment is not valid UTF-8"}
	case utf8.RuneCountInString(body) > MaxBody:
		return &Problem{Message: "the comment is longer than " + text.FormatCount(MaxBody) + " characters"}
	}
	return nil
}
