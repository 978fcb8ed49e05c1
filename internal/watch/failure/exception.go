// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	v8Error   = pattern.New(`^\s{0,8}(?:Uncaught |Unhandled rejection |error: Uncaught \(in promise\) )?((?:[A-Z]\w{0,60})?(?:Error|Exception|Rejection|Failure|DOMException)(?: \[\w{1,60}\])?(?:: .{0,900})?)$`)
	v8Header  = pattern.New(`^\s{0,4}(?:Exception during run: )?((?:file://)?/[^\s:]{1,400}):(\d{1,7})$`)
	shellLine = pattern.New(`^([^\s:][^:]{0,300}): (?:line )?(\d{1,7}): (\S.{0,900})$`)
	shellName = pattern.New(`^(?:-?(?:ba|da|z|k|a)?sh|/\S{0,100}/(?:ba|da|z|k)?sh|.{1,250}\.(?:sh|bash|bats|zsh|ksh)|[\w./-]{1,100})$`)
)

// readV8 reads an exception and its stack, and what node prints above them: the place of a
// syntax error is only there.
func readV8(s *scan) {
	var header place
	headerAt := -10
	for i := 0; i < len(s.lines); i++ {
		line := s.lines[i]
		if m := matchContaining(v8Header, "/", line); m != nil {
			header, headerAt = place{name: m[1], row: parseNumber(m[2])}, i
			continue
		}
		m := v8Error.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		hasHeader := i-headerAt <= 8
		if s.findLine(i+1, 40, func(t, line string) bool { return strings.HasPrefix(t, "File \"") }) < min(len(s.lines),
			i+41) && !hasHeader {
			continue // Python's
		}
		end := s.findLine(i+1, maxBlock, func(t, line string) bool {
			if _, isFrame := parseFrame(line); isFrame || strings.HasPrefix(t, "- /") || t == "Require stack:" {
				return false
			}
			return true
		})
		if end == i+1 && !hasHeader {
			// A message of several lines, before the stack.
			end = s.findLine(i+1, 30, func(t, line string) bool {
				_, isFrame := parseFrame(line)
				return isFrame || v8Header.MatchString(line) || v8Error.MatchString(line)
			})
			if end < len(s.lines) && (v8Header.MatchString(s.lines[end]) || v8Error.MatchString(s.lines[end])) {
				continue
			}
			if end == min(len(s.lines), i+31) || end == len(s.lines) {
				continue
			}
			end = s.findLine(end, maxBlock,
				func(t, line string) bool { _, isFrame := parseFrame(line); return !isFrame })
		}
		more := s.findLine(end, 12, func(t, line string) bool { return t == "}" })
		f := proposal.Diagnostic{Tool: "node", Message: m[1]}
		if strings.HasSuffix(m[1], ":") {
			f.Message = "" // the rest is below
		}
		body := s.lines[i:end]
		if more < len(s.lines) && strings.TrimSpace(s.lines[more]) == "}" {
			body = append(append([]string{}, body...), s.lines[end:more]...)
		}
		s.fillReport(&f, body)
		if hasHeader && (f.File == "" || strings.HasPrefix(f.Message, "SyntaxError")) {
			if frame, ok := s.resolvePlace(header); ok {
				f.File, f.Line, f.Column = frame.File, frame.Line, 0
			}
		}
		s.addReport(rankStack, f)
		i = max(i, end-1)
	}
	s.keepLast("node")
}

// keepLast lowers all but the last exception of a language: a program that ends with one may
// have logged others before.
func (s *scan) keepLast(tool string) {
	isLast := true
	for i := len(s.found) - 1; i >= 0; i-- {
		if r := &s.found[i]; r.Tool == tool && r.rank == rankStack {
			if !isLast {
				r.rank, r.Level = rankLine, Warning
			}
			isLast = false
		}
	}
}

// readShell reads the errors of shells: "x.sh: line 5: …", and without "line" those of dash.
func readShell(s *scan) {
	for _, line := range s.lines {
		m := matchContaining(shellLine, ": ", line)
		if m == nil || !shellName.MatchString(m[1]) {
			continue
		}
		isShell := strings.Contains(line, ": line ") || strings.HasSuffix(m[1], "sh") ||
			strings.HasSuffix(m[3], ": not found") || strings.HasSuffix(m[3], ": parameter not set") ||
			strings.HasPrefix(m[3], "Syntax error: ")
		if !isShell {
			continue
		}
		f := proposal.Diagnostic{Tool: "shell", Message: m[3]}
		if strings.HasPrefix(m[3], "`") && len(s.found) > 0 {
			continue // the line that bash quotes below its message
		}
		s.addAt(rankStack, f, place{name: m[1], row: parseNumber(m[2])})
	}
}

// readPlaces reads lines that begin with a place in a file of the workspace.
func readPlaces(s *scan) {
	for _, line := range s.lines {
		m := matchContaining(genericPlace, ":", line)
		if m == nil {
			continue
		}
		f := proposal.Diagnostic{Tool: "output", Message: strings.TrimPrefix(m[4], "- ")}
		if s.setPlace(&f, place{name: m[1], row: parseNumber(m[2]), col: parseNumber(m[3])}) {
			s.addReport(rankLine, f)
		}
	}
}
