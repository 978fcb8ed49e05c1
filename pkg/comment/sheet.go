// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
)

// Marker is the first line of the comment. It proves nothing: anyone can write it.
const Marker = "<!-- fumehood:report -->"

const (
	noticeMark  = "<!-- fumehood:notice -->"
	reviewMark  = "<!-- fumehood:review -->"
	resultsMark = "<!-- fumehood:results -->"
	markStart   = "<!-- fumehood:"
)

// The size limits of the parts, in UTF-16 units.
const (
	MaxBody     = 65536 // GitHub's limit for a comment
	NoticeRoom  = 8000  // of the bot's last answer
	ReviewRoom  = 8000  // of the review's summary
	ResultsRoom = MaxBody - maxLine - NoticeRoom - ReviewRoom - marksRoom
	marksRoom   = 128 // the marks and the newlines between the parts
)

// A sheet is the content of the comment.
type sheet struct {
	State
	notice  string
	review  string
	results string
}

// readSheet parses a comment's body, which may be anything. If the body has no
// valid state, the sheet has its text and the zero State.
func readSheet(body string) sheet {
	var s sheet
	line, rest := cutLine(strings.TrimPrefix(plain(body), Marker+"\n"))
	state, err := decodeState(line)
	if err != nil && !strings.HasPrefix(line, lineStart) {
		rest = line + "\n" + rest
	}
	s.State = state
	notice, results, found := strings.Cut("\n"+rest+"\n", "\n"+resultsMark+"\n")
	if found {
		notice, review, _ := strings.Cut(notice+"\n", "\n"+reviewMark+"\n")
		s.notice, s.review = section(strings.TrimPrefix(notice, "\n"+noticeMark+"\n")), section(review)
		s.results = section(results)
	} else {
		s.results = section(rest)
	}
	return s
}

// more is appended to a text that was cut.
const more = "\n\n… (truncated)"

// cut returns the longest prefix of s that fits, up to the end of a line.
func cut(s string, room int) string {
	if fits(s, room) {
		return s
	}
	kept, fence := "", ""
	for line := range strings.Lines(s) {
		next := fence
		switch ticks := len(line) - len(strings.TrimLeft(line, "`")); {
		case fence == "" && ticks >= 3:
			next = "\n" + line[:ticks]
		case fence != "" && ticks >= len(fence)-1 && strings.TrimSpace(line[ticks:]) == "":
			next = ""
		}
		if !fits(kept+line+next+more, room) {
			break
		}
		kept, fence = kept+line, next
	}
	return plain(kept) + fence + more
}

// marked reports whether a comment's first line is the Marker.
func marked(body string) bool {
	line, _ := cutLine(plain(body))
	return line == Marker
}

// body returns s as a comment's body.
func (s sheet) body() (string, error) {
	line, err := encodeState(s.State)
	if err != nil {
		return "", err
	}
	parts := []string{Marker, line, noticeMark, s.notice}
	if s.review != "" {
		parts = append(parts, reviewMark, s.review)
	}
	return plain(strings.Join(append(parts, resultsMark, s.results), "\n")), nil
}

// section makes text safe for a sheet: no line of it begins another section. It
// removes a leading Marker, with which a report begins.
func section(s string) string {
	s = plain(strings.TrimPrefix(strings.ToValidUTF8(plain(s), "\uFFFD"), Marker+"\n"))
	s = strings.ReplaceAll(s, markStart, "&lt;"+markStart[1:])
	return strings.TrimLeft(s, "\n")
}

// plain removes what editing in a browser changes: the form of line ends, and
// trailing blanks.
func plain(body string) string {
	return strings.TrimRight(lineEnds.Replace(body), " \t\n")
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return line, rest
}

func fits(s string, room int) bool { return text.Units(s) <= room }

// join merges two sheets: of two results and of two notices it keeps the newer, of
// two equal ones b's. head is the pull request's current head.
func join(a, b sheet, head string) sheet {
	old, next := a, b
	if a.stamp().beats(b.stamp(), head) {
		old, next = b, a
	}
	var gone []Result
	if old.Result != nil {
		gone = []Result{*old.Result}
	}
	next.Earlier = joinEarlier(next.stamp(), b.Earlier, a.Earlier, gone) // of equal ones, the first is kept
	next.Starts, next.Dropped = joinStarts(a.State, b.State)
	next.Notice, next.notice = b.Notice, b.notice
	if a.Notice.beats(b.Notice) {
		next.Notice, next.notice = a.Notice, a.notice
	}
	next.Review, next.review = b.Review, b.review
	if a.reviewed().beats(b.reviewed(), head) {
		next.Review, next.review = a.Review, a.review
	}
	return next
}
