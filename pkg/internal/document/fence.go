// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
)

var fenceLine = pattern.New("^`{3,}[ \t]*([A-Za-z0-9_+-]*)[ \t]*$")

// unfence returns the only block of code in a Markdown text, with empty lines in place of the
// text around it, so that positions are the document's, and its language: "json", or "" for
// YAML or none. A document that has no such block, or is YAML with it, is returned as it is.
func unfence(data []byte, ps *Problems) ([]byte, string) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		return data, ""
	}
	lines, fences, language := splitLines(data), []int(nil), ""
	for i, line := range lines {
		m := fenceLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if fences = append(fences, i); len(fences) == 1 {
			language = strings.ToLower(m[1])
		}
	}
	if len(fences) == 0 {
		return data, ""
	}
	if root, _, err := parseYAML(data); err == nil && root.Kind != yaml.ScalarNode {
		return data, ""
	}
	at := Position{fences[0] + 1, 1}
	switch {
	case len(fences) == 1:
		ps.Add(at, "", "the block of code has no end: add a line with ```")
		return data, ""
	case len(fences) > 2:
		ps.Add(Position{fences[2] + 1, 1}, "", "another block of code begins here; give only the %s", ps.document())
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
