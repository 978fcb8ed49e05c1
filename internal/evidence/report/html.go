// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// The dollar is escaped because GitHub treats text between two of them as a formula.
var escapes = map[rune]string{
	'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&#34;", '\'': "&#39;", '$': "&#36;",
}

// escapeHTML returns the HTML text for s, of at most max units, truncated with "…".
func escapeHTML(s string, max int) string { return escapeWith(s, max, "") }

// A narrow table may break a command after any of breaks, and a word every twenty
// characters; wbr adds nothing to copied text.
const breaks, wbr = "/(,=:↵|&;", "<wbr>"

// breakableCode is like code, but adds places where a table may break the text. They are
// not counted in max.
func breakableCode(s string, max int) string {
	return "<code>" + escapeWith(s, max, breaks) + "</code>"
}

// escapeWith is escape; if breaks is not empty, it adds a wbr where a line may be broken.
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
		if units += text.CountUnits(piece); units > max || units == max && !last {
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

// formatCode returns untrusted s as a code element of at most max units, not counting tags.
func formatCode(s string, max int) string {
	if s == "" {
		return "<code>–</code>"
	}
	return "<code>" + escapeHTML(s, max) + "</code>"
}

var (
	plainWord = pattern.New(`^[(]?(?:[A-Za-z](?:[A-Za-z'-]*[A-Za-z'])?|[0-9]{1,6})[)]?[,;.:!?]?$|^[–—…,;.:)]$`)
	liveWord  = pattern.New(`(?i)\b[a-f]{7,}\b|www\.|\bGH-`) // GitHub could link it as a commit, an address or an issue
)

// formatProse returns a message of a policy or of fumehood as HTML. Plain words are
// unchanged. Everything else is put in code elements, as is everything between
// quotes or backticks, where a message repeats a proposal's text.
func formatProse(s string, max int) string {
	var b strings.Builder
	room := max
	for i, w := range splitWords(s) {
		piece := formatCode(w.text, room)
		if !w.quoted && plainWord.MatchString(w.text) && !liveWord.MatchString(w.text) {
			piece = escapeHTML(w.text, room)
		}
		if i > 0 && !w.joined {
			piece = " " + piece
		}
		if room -= text.CountUnits(piece); room < codeTags {
			b.WriteString(" …")
			break
		}
		b.WriteString(piece)
	}
	return b.String()
}

// Prose returns an untrusted sentence as HTML in a block, of at most max units: plain words as they are,
// and everything else in code elements. Nothing in it makes a link, a mention or other HTML.
func Prose(s string, max int) string { return formatProse(s, max) }

type word struct {
	text   string
	quoted bool
	joined bool // no space before it
}

// splitWords splits a message at spaces and keeps quoted pieces whole.
func splitWords(s string) []word {
	var list []word
	joined := true
	for s != "" {
		if strings.ContainsRune(" \t\r\n", rune(s[0])) {
			s, joined = s[1:], false
			continue
		}
		if inner, rest, ok := cutQuoted(s); ok {
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

// cutQuoted returns a piece between backticks, without them, or between double quotes,
// with them and with Go's backslash escapes.
func cutQuoted(s string) (inner, rest string, ok bool) {
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

// ownComment is the beginning of fumehood's own comments, which delimit the parts
// of a pull-request comment. ownShown has the same length and does not begin one.
const ownComment, ownShown = "<!-- fumehood:", "<!--·fumehood:"

// fencedBlock returns a fenced block. info must not be untrusted. Text that looks like
// one of fumehood's comments is changed so that it is not.
func fencedBlock(info, body string) string {
	f := text.Fence(body)
	return f + info + "\n" + strings.ReplaceAll(body, ownComment, ownShown) + f
}
