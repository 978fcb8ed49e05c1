// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	_ "embed"
	"strings"
)

// words.txt lists the languages' own libraries and what they can do.
//
//go:embed words.txt
var wordsText string

// A library is a language's own modules, and what its modules, functions and names
// can do, keyed by path.
type library struct {
	modules map[string]bool
	can     map[string][]string
}

var libraries = readWords(wordsText)

// readWords reads lines of "[language]", "modules: NAME …" and "CAPABILITY: PATH …".
func readWords(text string) map[string]*library {
	all := map[string]*library{}
	var current *library
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			current = &library{map[string]bool{}, map[string][]string{}}
			all[strings.Trim(line, "[]")] = current
			continue
		}
		word, list, _ := strings.Cut(line, ":")
		for _, path := range strings.Fields(list) {
			if word == "modules" {
				current.modules[path] = true
			} else {
				current.can[path] = append(current.can[path], word)
			}
		}
	}
	return all
}

// capabilitiesOf returns what path can do: its own entry, or that of what it is part of.
func (l *library) capabilitiesOf(path string) []string {
	for path != "" {
		if can, ok := l.can[path]; ok {
			return can
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return nil
		}
		path = path[:i]
	}
	return nil
}
