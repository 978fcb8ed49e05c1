// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// splitLines divides a piece of output into lines as a terminal would show them, without
// color codes and control characters. A carriage return ends a line, too, so that nothing
// that a progress bar overwrote is lost. Lines are cut at maxLine bytes, the piece at
// maxBytes: of more, the beginning and the end are kept.
func splitLines(piece []byte) []string {
	text := string(piece)
	if len(text) > maxBytes {
		text = text[:maxBytes/4] + "\n\n" + text[len(text)-maxBytes*3/4:]
	}
	for _, home := range []string{"\x1b[1G", "\x1b[0G", "\x1b[G"} {
		text = strings.ReplaceAll(text, home, "\r") // the cursor returns, as with \r
	}
	lines := make([]string, 0, strings.Count(text, "\n")+1)
	for text != "" {
		n := strings.IndexAny(text, "\r\n")
		if n < 0 {
			n = len(text)
		}
		lines = append(lines, plainLine(text[:min(n, maxLine)]))
		if strings.HasPrefix(text[n:], "\r\n") {
			n++
		}
		text = text[min(n+1, len(text)):]
	}
	return lines
}

// plainLine removes escape sequences and control characters except tabs, and replaces bytes
// that are not UTF-8.
func plainLine(line string) string {
	clean := true
	for i := range len(line) {
		if line[i] < ' ' && line[i] != '\t' || line[i] >= 0x7f {
			clean = false
			break
		}
	}
	if clean {
		return line
	}
	var b strings.Builder
	for i := 0; i < len(line); {
		if line[i] == 0x1b {
			i += escapeLength(line[i:])
			continue
		}
		r, size := utf8.DecodeRuneInString(line[i:])
		switch {
		case r == 0xa0:
			b.WriteByte(' ')
		case r >= ' ' && r < 0x7f || r > 0x9f || r == '\t': // from 0x80 on are control characters, too, such as CSI
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// escapeLength returns the length of the escape sequence that s begins with.
func escapeLength(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= '@' && s[i] <= '~' {
				return i + 1
			}
			if s[i] < ' ' {
				return i
			}
		}
		return len(s)
	case ']':
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b {
				return min(i+2, len(s))
			}
		}
		return len(s)
	}
	return 2
}

// indentWidth returns the number of blanks that a line begins with.
func indentWidth(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// isRule reports whether a trimmed line is drawn of one character, as between blocks.
func isRule(trimmed string) bool {
	if len(trimmed) < 3 {
		return false
	}
	first, _ := utf8.DecodeRuneInString(trimmed)
	return strings.ContainsRune("-=_*─━⎯⎼~.", first) && strings.Trim(trimmed, string(first)+" ") == ""
}

// pnpmStarts is the line with which pnpm begins a script of one project of a workspace. What the script
// prints has the same beginning, and lines of others between.
var pnpmStarts = pattern.New(`^([\w@./-]{1,200}) ([\w:-]{1,60})\$ .`)

// withoutPrefixes returns lines with those of each project of a pnpm workspace together and without
// what pnpm puts before them, and the directories of the projects.
func withoutPrefixes(lines []string) (rest, dirs []string) {
	if !slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "Scope: ") && strings.HasSuffix(line, " workspace projects")
	}) {
		return lines, nil
	}
	var names []string
	output := map[string][]string{}
	for _, line := range lines {
		if m := matchContaining(pnpmStarts, "$ ", line); m != nil && len(names) < maxDirs {
			name := m[1] + " " + m[2]
			if output[name] == nil {
				names, dirs, output[name] = append(names, name), append(dirs, m[1]), []string{""}
			}
			continue
		}
		name, text, ok := strings.Cut(line, ":")
		if ok && output[name] != nil {
			output[name] = append(output[name], strings.TrimPrefix(text, " "))
			continue
		}
		rest = append(rest, line)
	}
	for _, name := range names {
		rest = append(append(rest, output[name]...), "")
	}
	return rest, dirs
}
