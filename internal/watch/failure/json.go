// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits of JSON that commands print.
const (
	maxJSONDepth  = 24
	maxJSONValues = 50000 // of one piece of output
)

// A value is a JSON value: map[string]value, []value, string, float64, bool or nil.
type value = any

// readJSON reads what the reporters of test runners and linters print as JSON: documents that begin
// a line. A document that is cut is read as far as it goes.
func (s *scan) readJSON(pieces [][]byte) {
	var docs []value
	for _, piece := range pieces {
		docs = append(docs, parseJSON(piece)...)
	}
	before := len(s.found)
	for _, doc := range docs {
		s.jsonTests(doc)
	}
	if !s.Every && len(s.found) > before {
		s.dropKnown(before)
	}
	for _, doc := range docs {
		s.jsonProblems(doc, "")
	}
}

// dropKnown drops the reports from an index on of which the runner prints the test and the place for people, too.
func (s *scan) dropKnown(before int) {
	known := map[string]bool{}
	key := func(r report) string { return fmt.Sprintf("%s\x00%s:%d", r.Test, r.File, r.Line) }
	for _, r := range s.found[:before] {
		known[key(r)] = known[key(r)] || r.rank == rankTest
	}
	s.found = append(s.found[:before],
		slices.DeleteFunc(s.found[before:], func(r report) bool { return known[key(r)] })...)
}

// parseJSON returns the objects and lists that begin a line of a piece of output.
func parseJSON(piece []byte) (docs []value) {
	piece = piece[:min(len(piece), maxBytes)]
	left := maxJSONValues
	for len(piece) > 0 && left > 0 {
		if piece[0] == '{' || piece[0] == '[' {
			decoder := json.NewDecoder(bytes.NewReader(piece))
			doc, err := decodeJSON(decoder, 0, &left)
			if doc != nil {
				docs = append(docs, doc)
			}
			n := int(decoder.InputOffset())
			if err != nil {
				n = max(n, 1)
			}
			piece = piece[n:]
		}
		i := bytes.IndexByte(piece, '\n')
		if i < 0 {
			break
		}
		piece = bytes.TrimLeft(piece[i+1:], " \t\r\n")
	}
	return docs
}

var errDeepJSON = errors.New("JSON is too deep or too long")

// decodeJSON returns the next value and, of one that is cut or wrong, what there is.
func decodeJSON(decoder *json.Decoder, depth int, left *int) (value, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	if *left--; *left < 0 || depth > maxJSONDepth {
		return nil, errDeepJSON
	}
	switch token {
	case json.Delim('{'):
		object := map[string]value{}
		for decoder.More() {
			key, err := decoder.Token()
			name, ok := key.(string)
			if err != nil || !ok {
				return object, cmp.Or(err, errDeepJSON)
			}
			v, err := decodeJSON(decoder, depth+1, left)
			if v != nil {
				object[name] = v
			}
			if err != nil {
				return object, err
			}
		}
		_, err = decoder.Token()
		return object, err
	case json.Delim('['):
		list := []value{}
		for decoder.More() {
			v, err := decodeJSON(decoder, depth+1, left)
			if v != nil {
				list = append(list, v)
			}
			if err != nil {
				return list, err
			}
		}
		_, err = decoder.Token()
		return list, err
	}
	return token, nil
}

// get returns the value at a path of keys, or nil.
func valueAt(v value, keys ...string) value {
	for _, key := range keys {
		object, _ := v.(map[string]value)
		v = object[key]
	}
	return v
}

func listAt(v value, keys ...string) []value {
	l, _ := valueAt(v, keys...).([]value)
	return l
}

// text returns a string without control characters, or "".
func textAt(v value, keys ...string) string {
	s, _ := valueAt(v, keys...).(string)
	return plainText([]byte(s), maxJUnitText)
}

func integerAt(v value, keys ...string) int {
	n, _ := valueAt(v, keys...).(float64)
	if n < 0 || n > 9999999 {
		return 0
	}
	return int(n)
}

// jsonTests reads the tests that failed in a document of Jest or Vitest, Mocha, or RSpec.
func (s *scan) jsonTests(doc value) {
	for _, file := range listAt(doc, "testResults") {
		failed := false
		for _, test := range listAt(file, "assertionResults") {
			if textAt(test, "status") != "failed" {
				continue
			}
			failed = true
			var names []string
			for _, title := range append(listAt(test, "ancestorTitles"), valueAt(test, "title")) {
				names = append(names, textAt(title))
			}
			said := ""
			if messages := listAt(test, "failureMessages"); len(messages) > 0 {
				said = textAt(messages[0])
			}
			s.addJSONTest("jest", strings.Join(names, " > "), said,
				place{name: textAt(file, "name"), row: integerAt(test, "location", "line")})
		}
		if textAt(file, "status") == "failed" && !failed {
			f := proposal.Diagnostic{Tool: "jest", Suite: s.workspacePath(textAt(file, "name"))}
			s.addBlock(rankRunner, f, strings.Split(textAt(file, "message"), "\n"))
		}
	}
	if valueAt(doc, "stats") != nil {
		for _, test := range listAt(doc, "failures") {
			said := textAt(test, "err", "stack")
			if message := textAt(test, "err", "message"); !strings.Contains(said, message) {
				said = message + "\n" + said
			}
			s.addJSONTest("mocha", textAt(test, "fullTitle"), said, place{name: textAt(test, "file")})
		}
	}
	for _, test := range listAt(doc, "examples") {
		if textAt(test, "status") != "failed" {
			continue
		}
		var said strings.Builder
		said.WriteString(textAt(test, "exception", "message"))
		for _, frame := range listAt(test, "exception", "backtrace") {
			if said.Len() > maxJUnitText {
				break
			}
			said.WriteString("\n" + textAt(frame))
		}
		s.addJSONTest("rspec", textAt(test, "full_description"), said.String(),
			place{name: textAt(test, "file_path"), row: integerAt(test, "line_number")})
	}
}

// addJSONTest adds a report of a test, which is at a place if its stack does not have another.
func (s *scan) addJSONTest(tool, name, said string, at place) {
	f := proposal.Diagnostic{Tool: tool, Test: name}
	if s.setPlace(&f, place{name: at.name, row: max(1, at.row)}) {
		f.Line, f.Suite = at.row, f.File
	}
	s.addBlock(rankTest, f, strings.Split(said, "\n"))
}

// fileKeys are the keys of the name of a file, of which the problems are in the same object or below;
// ruleKeys are those of what makes an object with a file, a line and a text a problem of a linter,
// and name it where no other has them.
var (
	fileKeys  = []string{"filePath", "filename", "file", "path", "source", "Filename"}
	ruleKeys  = []string{"ruleId", "code", "rule", "cop_name", "FromLinter"}
	textKeys  = []string{"message", "text", "Text"}
	toolOfKey = map[string]string{"ruleId": "eslint", "cop_name": "rubocop", "FromLinter": "golangci-lint"}
)

// jsonProblems reads the problems of a linter in a document, whatever their keys are.
func (s *scan) jsonProblems(v value, file string) {
	if l, ok := v.([]value); ok {
		for _, v := range l {
			s.jsonProblems(v, file)
		}
		return
	}
	object, ok := v.(map[string]value)
	if !ok {
		return
	}
	file = cmp.Or(firstText(v, fileKeys), textAt(v, "Pos", "Filename"), file)
	message, rule, tool := firstText(v, textKeys), "", "linter"
	for _, key := range ruleKeys {
		if rule = textAt(v, key); rule != "" {
			tool = cmp.Or(toolOfKey[key], tool)
			break
		}
	}
	if code := integerAt(v, "code"); rule == "" && code > 0 {
		rule, tool = fmt.Sprintf("SC%d", code), "shellcheck"
	}
	at := place{name: file, row: cmp.Or(integerAt(v, "line"), integerAt(v, "location", "row"),
		integerAt(v, "location", "line"), integerAt(v, "Pos", "Line")),
		col: cmp.Or(integerAt(v, "column"), integerAt(v, "location", "column"), integerAt(v, "Pos", "Column"))}
	// as in the Language Server Protocol
	if start := valueAt(v, "range", "start"); at.row == 0 && valueAt(start, "character") != nil {
		at.row, at.col = integerAt(start, "line")+1, integerAt(start, "character")+1
	}
	isSyntax := valueAt(v, "fatal") == true || strings.HasPrefix(message, "SyntaxError")
	if file != "" && message != "" && (rule != "" || isSyntax) && at.row > 0 {
		f := proposal.Diagnostic{Tool: tool, Rule: rule, Message: message, Level: Error}
		switch level := cmp.Or(textAt(v, "severity"), textAt(v, "level")); {
		case level != "":
			f.Level = cmp.Or(levelOf[level], Error)
		case integerAt(v, "severity") == 1: // ESLint's
			f.Level = Warning
		}
		if s.setPlace(&f, at) {
			s.addReport(rankTool, f)
		}
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		s.jsonProblems(object[key], file)
	}
}

func firstText(v value, keys []string) string {
	for _, key := range keys {
		if t := textAt(v, key); t != "" {
			return t
		}
	}
	return ""
}

// jsonFixes returns the fixes that ESLint prints beside the source: ranges in UTF-16, as JavaScript has them.
func (o Options) jsonFixes(piece []byte) (fixes []Fix) {
	for _, doc := range parseJSON(piece) {
		files, _ := doc.([]value)
		for _, file := range files {
			name := o.Tree.Resolve(o.Cwd, textAt(file, "filePath"))
			source, _ := valueAt(file, "source").(string)
			if !o.Tree.Has(name) || source == "" {
				continue
			}
			units := utf16.Encode([]rune(source))
			for _, message := range listAt(file, "messages") {
				limits := listAt(message, "fix", "range")
				with, ok := valueAt(message, "fix", "text").(string)
				if !ok || len(limits) != 2 || len(fixes) == maxFixes {
					continue
				}
				if f, ok := fixOfRange(name, units, integerAt(limits[0]), integerAt(limits[1]), with); ok {
					fixes = append(fixes, f)
				}
			}
		}
	}
	return fixes
}

// fixOfRange returns the change of the lines of a file that have a range.
func fixOfRange(name string, units []uint16, from, to int, with string) (f Fix, ok bool) {
	if from > to || to > len(units) {
		return f, false
	}
	first, last := from, to
	for first > 0 && units[first-1] != '\n' {
		first--
	}
	for last < len(units) && units[last] != '\n' {
		last++
	}
	decode := func(a, b int) string { return string(utf16.Decode(units[a:b])) }
	f = Fix{File: name, Start: strings.Count(decode(0, first), "\n") + 1, Old: strings.Split(decode(first, last), "\n"),
		New: strings.Split(decode(first, from)+with+decode(to, last), "\n")}
	return f, len(f.Old) <= maxFixLines && len(f.New) <= maxFixLines
}
