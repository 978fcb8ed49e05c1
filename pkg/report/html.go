// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/internal/text"
)

// The dollar is there because GitHub looks for formulas between two of them.
var escapes = map[rune]string{
	'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&#34;", '\'': "&#39;", '$': "&#36;",
}

// escape returns the HTML text for s, at most max units of it, cut with "…".
func escape(s string, max int) string { return escapeWith(s, max, "") }

// A narrow table may break a command after these, and a word of twenty characters
// anywhere; wbr adds nothing to a copy.
const breaks, wbr = "/(,=:↵|&;", "<wbr>"

// narrow returns what code does, with places where a table may break it, not
// counted in max.
func narrow(s string, max int) string {
	return "<code>" + escapeWith(s, max, breaks) + "</code>"
}

// escapeWith is escape, with a wbr where a line may be broken, if breaks are given.
func escapeWith(s string, max int, breaks string) string {
	var b strings.Builder
	line := text.Inline(s, max)
	units, since := 0, 0
	for i, r := range line {
		piece, special := escapes[r]
		if !special {
			piece = string(r)
		}
		last := i+len(string(r)) == len(line)
		if units += text.Units(piece); units > max || units == max && !last {
			b.WriteString("…")
			break
		}
		b.WriteString(piece)
		if since++; r == ' ' {
			since = 0
		}
		if breaks != "" && !last && (since >= 20 || since >= 8 && strings.ContainsRune(breaks, r)) {
			b.WriteString(wbr)
			since = 0
		}
	}
	return b.String()
}

const codeTags = len("<code></code>")

// code returns untrusted s as a code element of at most max units, tags aside.
func code(s string, max int) string {
	if s == "" {
		return "<code>–</code>"
	}
	return "<code>" + escape(s, max) + "</code>"
}

var (
	plainWord = pattern.New(`^[(]?(?:[A-Za-z](?:[A-Za-z'-]*[A-Za-z'])?|[0-9]{1,6})[)]?[,;.:!?]?$|^[–—…,;.:)]$`)
	liveWord  = pattern.New(`(?i)\b[a-f]{7,}\b|www\.|\bGH-`) // could be read as a commit, an address or an issue
)

// prose returns a message of a policy or of our own as HTML: plain words stand as
// they are; everything else, and everything between quotes or backticks, which is
// where a message repeats a proposal's text, stands in code elements.
func prose(s string, max int) string {
	var b strings.Builder
	room := max
	for i, w := range words(s) {
		piece := code(w.text, room)
		if !w.quoted && plainWord.MatchString(w.text) && !liveWord.MatchString(w.text) {
			piece = escape(w.text, room)
		}
		if i > 0 && !w.joined {
			piece = " " + piece
		}
		if room -= text.Units(piece); room < codeTags {
			b.WriteString(" …")
			break
		}
		b.WriteString(piece)
	}
	return b.String()
}

type word struct {
	text   string
	quoted bool
	joined bool // no space before it
}

// words splits a message at spaces and takes quoted pieces whole.
func words(s string) []word {
	var list []word
	joined := true
	for s != "" {
		if strings.ContainsRune(" \t\r\n", rune(s[0])) {
			s, joined = s[1:], false
			continue
		}
		if inner, rest, ok := quoted(s); ok {
			list = append(list, word{inner, true, joined})
			s, joined = rest, true
			continue
		}
		n := strings.IndexAny(s[1:], " \t\r\n\"`") + 1
		if n == 0 {
			n = len(s)
		}
		list = append(list, word{s[:n], false, joined})
		s, joined = s[n:], true
	}
	return list
}

// quoted takes a piece between backticks, without them, or between double quotes,
// with them and with Go's backslashes.
func quoted(s string) (inner, rest string, ok bool) {
	if s[0] != '`' && s[0] != '"' {
		return "", "", false
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[0] == '"' && s[i] == '\\':
			i++
		case s[i] == s[0] && s[0] == '`':
			return s[1:i], s[i+1:], true
		case s[i] == s[0]:
			return s[:i+1], s[i+1:], true
		}
	}
	return "", "", false
}

// ownComment is how fumehood's own comments begin, by which parts of a pull-request
// comment are told apart; ownShown is as long and is not one.
const ownComment, ownShown = "<!-- fumehood:", "<!--·fumehood:"

// fence returns a fenced block. info is ours, never from elsewhere. What reads like
// a comment of ours is changed to be none.
func fence(info, body string) string {
	f := text.Fence(body)
	return f + info + "\n" + strings.ReplaceAll(body, ownComment, ownShown) + f
}
