// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// findAmbiguity finds the two spellings that this parser and bash are known to read
// differently: a comment whose line ends in a backslash, and a # directly after an
// array literal. Printing fixes what runs, but not what the author meant.
func findAmbiguity(text string, file *syntax.File) (proposal.Unknown, bool) {
	at := -1
	if strings.Contains(text, ")#") {
		at = hashBehindArray(text, file)
	}
	if at < 0 && strings.Contains(text, "\\\n") && strings.Contains(text, "#") {
		at = continuedComment(text)
	}
	if at < 0 {
		return proposal.Unknown{}, false
	}
	return unknownAmbiguous.unknownAt(spanIn(text, at, at+1)), true
}

func hashBehindArray(text string, file *syntax.File) int {
	at := -1
	syntax.Walk(file, func(node syntax.Node) bool {
		if array, ok := node.(*syntax.ArrayExpr); ok && at < 0 {
			if end := int(array.Rparen.Offset()) + 1; end < len(text) && text[end] == '#' {
				at = end
			}
		}
		return true
	})
	return at
}

// continuedComment parses the text again, keeping the comments.
func continuedComment(text string) int {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash),
		syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return 0
	}
	at := -1
	syntax.Walk(file, func(node syntax.Node) bool {
		if comment, ok := node.(*syntax.Comment); ok && at < 0 {
			start := min(int(comment.Hash.Offset()), len(text))
			line, _, more := strings.Cut(text[start:], "\n")
			if more && strings.HasSuffix(line, `\`) {
				at = start
			}
		}
		return true
	})
	return at
}
