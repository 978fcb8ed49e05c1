// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
)

// Marker is the first line of the comment. It proves nothing: anyone can write it.
const Marker = "<!-- fumehood:report -->"

const (
	noticeMark  = "<!-- fumehood:notice -->"
	resultsMark = "<!-- fumehood:results -->"
	sectionMark = "<!-- fumehood:section -->"
	endMark     = "<!-- fumehood:end -->"
	markStart   = "<!-- fumehood:"
)

// The size limits of the parts, in UTF-16 units.
const (
	MaxBody    = 65536 // GitHub's limit for a comment
	NoticeRoom = 8000  // of the bot's last answer
)

// A sheet is the content of the comment.
type sheet struct {
	State
	notice string
}

// readSheet parses a comment's body, which may be anything. If the body has no
// valid state, the sheet has its notice and the zero State.
func readSheet(body string) sheet {
	var s sheet
	line, rest := cutLine(strings.TrimPrefix(normalizeBody(body), Marker+"\n"))
	s.State, _ = decodeState(line)
	notice, results, _ := strings.Cut("\n"+rest+"\n", "\n"+resultsMark+"\n")
	if notice, found := strings.CutPrefix(notice, "\n"+noticeMark+"\n"); found {
		s.notice = escapeMarks(notice)
	}
	results, _, _ = strings.Cut(results, "\n"+endMark+"\n")
	texts := strings.Split("\n"+results, "\n"+sectionMark+"\n")[1:]
	for i := range s.Sections {
		if len(texts) == len(s.Sections) {
			_, text := cutLine(texts[i]) // below the heading, which the state has
			s.Sections[i].text = escapeMarks(text)
		}
	}
	return s
}

// more is appended to a text that was cut.
const more = "\n\n… (truncated)"

// cutAtLine returns the longest prefix of s that fits, up to the end of a line.
func cutAtLine(s string, room int) string {
	if fitsRoom(s, room) {
		return s
	}
	kept, fence := "", ""
	for line := range strings.Lines(s) {
		next := fenceAfter(fence, line)
		if !fitsRoom(kept+line+next+more, room) {
			break
		}
		kept, fence = kept+line, next
	}
	return normalizeBody(kept) + fence + more
}

// cutBlocks returns the longest prefix of s that fits, up to the end of an HTML block or a fence that
// is in no other, so that what follows s is not folded. Without any, it returns "".
func cutBlocks(s string, room int) string {
	if fitsRoom(s, room) {
		return s
	}
	kept, all, fence, depth := "", "", "", 0
	for line := range strings.Lines(s) {
		if all += line; !fitsRoom(all+more, room) {
			break
		}
		if next := fenceAfter(fence, line); next != fence {
			fence = next
		} else if fence == "" {
			depth += strings.Count(line, "<details") - strings.Count(line, "</details>")
		}
		if fence == "" && depth == 0 && strings.TrimSpace(line) == "" {
			kept = all
		}
	}
	if kept == "" && !fitsRoom(more[2:], room) {
		return ""
	}
	return strings.TrimLeft(normalizeBody(kept)+more, "\n")
}

// fenceAfter returns what closes the fence that is open after a line, with a newline before it; ""
// for none. open is the one before the line.
func fenceAfter(open, line string) string {
	switch ticks := len(line) - len(strings.TrimLeft(line, "`")); {
	case open == "" && ticks >= 3:
		return "\n" + line[:ticks]
	case open != "" && ticks >= len(open)-1 && strings.TrimSpace(line[ticks:]) == "":
		return ""
	}
	return open
}

// hasMarker reports whether a comment's first line is the Marker.
func hasMarker(body string) bool {
	line, _ := cutLine(normalizeBody(body))
	return line == Marker
}

// formatBody returns s as a comment's body.
func (l layout) formatBody(s sheet, head string) (string, error) {
	line, err := encodeState(s.State)
	if err != nil {
		return "", err
	}
	parts := []string{Marker, line, noticeMark, s.notice, resultsMark}
	if top := s.overallHeading(head); top != "" {
		parts = append(parts, top, "")
	}
	for _, x := range s.Sections {
		parts = append(parts, sectionMark, s.headingOf(x, head), "", x.text, "")
	}
	if list := l.listEarlier(s.Earlier); list != "" {
		parts = append(parts, endMark, list)
	}
	return normalizeBody(strings.Join(parts, "\n")), nil
}

// escapeMarks makes text safe for a sheet: no line of it begins another part. It
// removes a leading Marker, with which a report begins.
func escapeMarks(s string) string {
	s = normalizeBody(strings.TrimPrefix(strings.ToValidUTF8(normalizeBody(s), "\uFFFD"), Marker+"\n"))
	s = strings.ReplaceAll(s, markStart, "&lt;"+markStart[1:])
	return strings.TrimLeft(s, "\n")
}

// normalizeBody removes what editing in a browser changes: the form of line ends, and
// trailing blanks.
func normalizeBody(body string) string {
	return strings.TrimRight(lineEnds.Replace(body), " \t\n")
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return line, rest
}

func fitsRoom(s string, room int) bool { return text.CountUnits(s) <= room }

// mergeSheets merges two sheets: the sections of the newer commit, of two notices the newer, of
// two equal ones b's. head is the pull request's current head.
func mergeSheets(a, b sheet, head string) sheet {
	old, next := a, b
	if a.newestStamp().replaces(b.newestStamp(), head) {
		old, next = b, a
	}
	gone := resultsOf(old.Sections)
	if old.Head() == next.Head() {
		next.Sections, next.Omitted = joinSections(next.Head(), a.State, b.State)
		gone = nil
	}
	next.Earlier = joinEarlier(next.Head(), b.Earlier, a.Earlier, gone)
	next.Starts, next.Dropped = joinStarts(a.State, b.State)
	next.Notice, next.notice = b.Notice, b.notice
	if a.Notice.replaces(b.Notice) {
		next.Notice, next.notice = a.Notice, a.notice
	}
	next.Review = newestReview(a.State, b.State, head)
	return next
}

func newestReview(a, b State, head string) *Reviewed {
	if a.reviewStamp().replaces(b.reviewStamp(), head) {
		return a.Review
	}
	return b.Review
}
