// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// fenceLine is a line that begins or ends a block of code. What follows its language is for a page.
var fenceLine = pattern.New("^(`{3,}|~{3,})[ \t]*([A-Za-z0-9_+-]*)(?:[ \t]+[^`]*)?$")

// notProse is the beginning of a line that YAML may mean, before the first field of a document.
var notProse = pattern.New("^(?:[ \t#%&!|>'\"{}\\[\\],?:@`-]|\\*[^*]|[a-z_][a-zA-Z0-9_-]*:|[A-Za-z0-9_-]+:[ \t]+\\S)")

// firstField is the line with which a document begins that is YAML.
var firstField = pattern.New(`^["']?schema["']?[ \t]*:[ \t]`)

// withoutProse returns a document without what a model says before it, with empty lines in its place.
// What follows it stays: it may be a part of a command that is not indented.
func withoutProse(data []byte, lines []string) []byte {
	for i, line := range lines {
		switch {
		case firstField.MatchString(line), strings.HasPrefix(line, "{"):
			if i == 0 {
				return data
			}
			rest := bytes.SplitAfterN(data, []byte("\n"), i+1)[i]
			return append(bytes.Repeat([]byte("\n"), i), rest...)
		case strings.TrimSpace(line) != "" && notProse.MatchString(line):
			return data
		}
	}
	return data
}

// strayText is a line that is not indented and not a field, an item or a comment.
var strayText = pattern.New(`^[A-Za-z0-9*_~>(]`)
var fieldLine = pattern.New(`^[A-Za-z_][\w-]*[ \t]*:(?:[ \t]|$)`)

// findStrayText returns the number of the line in which text follows a document of YAML, or 0.
func findStrayText(data []byte) int {
	hasField := false
	for i, line := range splitLines(data) {
		if fieldLine.MatchString(line) {
			hasField = true
		} else if hasField && strayText.MatchString(line) {
			return i + 1
		}
	}
	return 0
}

// extractCodeBlock returns the only block of code in a Markdown text, with empty lines in place of the
// text around it, so that positions are the document's, and its language: "json", or "" for
// YAML or none. A document that has no such block, or is YAML with it, is returned as it is.
func extractCodeBlock(data []byte, ps *Problems) ([]byte, string) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		return data, ""
	}
	lines, fences, language, mark := splitLines(data), []int(nil), "", ""
	for i, line := range lines {
		m := fenceLine.FindStringSubmatch(line)
		if m == nil || len(fences) > 0 && m[1][0] != mark[0] {
			continue
		}
		if fences = append(fences, i); len(fences) == 1 {
			mark, language = m[1], strings.ToLower(m[2])
		}
	}
	if len(fences) == 0 {
		return withoutProse(data, lines), ""
	}
	if root, _, err := parseYAML(data); err == nil && root.Kind != yaml.ScalarNode {
		return data, ""
	}
	at := Position{fences[0] + 1, 1}
	switch {
	case len(fences) == 1:
		ps.Add(at, "", "the block of code has no end: add a line with %s", mark)
		return data, ""
	case len(fences) > 2:
		ps.Add(Position{fences[2] + 1, 1}, "", "another block of code begins here; give only the %s", ps.documentName())
		return data, ""
	}
	switch language {
	case "json", "jsonc", "json5":
		language = "json"
	case "", "yaml", "yml":
		if language = ""; looksLikeJSON([]byte(strings.Join(lines[fences[0]+1:fences[1]], "\n"))) {
			language = "json"
		}
	default:
		ps.Add(at, "", "the block of code is marked as %s: mark it as yaml or json", Quote(language))
		return data, ""
	}
	all := bytes.SplitAfter(data, []byte("\n"))
	var kept bytes.Buffer
	for i, line := range all {
		if i > fences[0] && i < fences[1] {
			kept.Write(line)
		} else if i < len(all)-1 {
			kept.WriteByte('\n')
		}
	}
	return kept.Bytes(), language
}
