// SPDX-License-Identifier: Apache-2.0

package bot

import (
	"strings"
)

// info is the info string of a plan's fence.
const info = "fumehood"

// A line is one line of a comment. A CR before the LF is part of the line's end.
type line struct {
	text string
	end  string // "\n", "\r\n", or "" at the end of the comment
}

func splitLines(body string) []line {
	var all []line
	for body != "" {
		l := line{text: body}
		if i := strings.IndexByte(body, '\n'); i >= 0 {
			l.text, l.end, body = body[:i], "\n", body[i+1:]
			if cut, ok := strings.CutSuffix(l.text, "\r"); ok {
				l.text, l.end = cut, "\r\n"
			}
		} else {
			body = ""
		}
		all = append(all, l)
	}
	return all
}

func isBlank(s string) bool { return strings.Trim(s, " \t") == "" }

// A fence is an opening fence: at least three of its character, indented by less
// than four spaces.
type fence struct {
	indent int
	char   byte
	length int
	info   string
}

// parseOpeningFence parses an opening fence as CommonMark does.
func parseOpeningFence(s string) (fence, bool) {
	f := fence{indent: len(s) - len(strings.TrimLeft(s, " "))}
	rest := s[f.indent:]
	if f.indent > 3 || rest == "" || rest[0] != '`' && rest[0] != '~' {
		return fence{}, false
	}
	f.char = rest[0]
	f.length = len(rest) - len(strings.TrimLeft(rest, rest[:1]))
	f.info = strings.Trim(rest[f.length:], " \t")
	if f.length < 3 || f.char == '`' && strings.Contains(f.info, "`") {
		return fence{}, false
	}
	return f, true
}

// closedBy reports whether s closes f.
func (f fence) closedBy(s string) bool {
	c, ok := parseOpeningFence(s)
	return ok && c.char == f.char && c.length >= f.length && c.info == ""
}

// A block is the text between the fences at lines open and close.
type block struct {
	open, close int
	document    []byte
}

// blockAt reads the plan block that opens at line at.
func blockAt(all []line, at int) (block, *Problem) {
	f, ok := parseOpeningFence(all[at].text)
	if !ok || f.info != info {
		return block{}, newUsageProblem(at, all[at].text,
			"begin the plan's block with ```"+info+" and nothing else on that line")
	}
	b := block{open: at}
	for i, l := range all[at+1:] {
		if f.closedBy(l.text) {
			b.close = at + 1 + i
			return b, nil
		}
		inner, ok := f.stripIndent(l.text)
		if !ok {
			return block{}, newUsageProblem(at+1+i, "", "the block is indented with tabs; remove the indentation")
		}
		if strings.ContainsAny(inner, "\r\x00") {
			return block{}, newUsageProblem(at+1+i, "", "the block has a carriage return or a NUL within a line")
		}
		b.document = append(append(b.document, inner...), l.end...)
	}
	return block{}, newUsageProblem(at, "", "the block has no closing fence")
}

// stripIndent returns a line of the block without the fence's indentation. It refuses a
// tab in the indentation, which would have to be split.
func (f fence) stripIndent(s string) (string, bool) {
	for range f.indent {
		switch {
		case strings.HasPrefix(s, " "):
			s = s[1:]
		case strings.HasPrefix(s, "\t"):
			return "", false
		}
	}
	return s, true
}

// readBlock reads a run's block; only blank lines may surround it.
func readBlock(all []line, first int) (Command, *Problem) {
	at := first + 1 + firstLine(all[first+1:])
	if at == first {
		return Command{}, newUsageProblem(first, "", "run requires a command line, or a plan in a block below it")
	}
	b, p := blockAt(all, at)
	if p != nil {
		return Command{}, p
	}
	if p := requireAlone(all[b.close+1:], "a plan", b.close+1); p != nil {
		return Command{}, p
	}
	return Command{Name: "run", Plan: b.document}, nil
}
