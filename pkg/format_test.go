// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// row matches a row of a table: an element of a composite literal that has a line of its own.
var row = regexp.MustCompile("^\\s*(\\{|\"(?:[^\"\\\\]|\\\\.)*\"[:,]|`[^`]*`:|'.':)")

// A line of the product has at most 120 columns, a tab counting four. Excepted are rows of tables, also in comments,
// and lines with a text of 40 bytes or with a note beside a declaration.
func TestLineLength(t *testing.T) {
	for _, path := range trackedFiles(t, "*.go") {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata/") || strings.Contains(path, "/internal/filter/") {
			continue
		}
		source, err := os.ReadFile("../" + path)
		if err != nil {
			t.Fatal(err)
		}
		texts := linesWithTexts(source)
		for i, line := range bytes.Split(source, []byte("\n")) {
			columns := utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t"))
			if columns > 120 && !texts[i+1] && !row.Match(line) && !bytes.HasPrefix(line, []byte("//\t")) {
				t.Errorf("%s:%d has %d columns: break it after a comma or an operator", path, i+1, columns)
			}
		}
	}
}

// linesWithTexts returns the lines that a text of 40 bytes or a comment after code is on.
func linesWithTexts(source []byte) map[int]bool {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	lines, last := map[int]bool{}, 0
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return lines
		}
		line := file.Line(pos)
		if kind == token.STRING && len(text) >= 40 || kind == token.COMMENT && line == last {
			for n := range strings.Count(text, "\n") + 1 {
				lines[line+n] = true
			}
		}
		if text != "\n" {
			last = line
		}
	}
}
