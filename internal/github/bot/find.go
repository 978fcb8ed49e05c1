// SPDX-License-Identifier: Apache-2.0

package bot

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// FindPlan finds the plan block in an AI reviewer's comment, which may contain any
// other text. It returns false if there is no block. A block in a quotation belongs to
// another comment, and one in a hidden HTML comment is not a block; both are
// ignored. Two blocks, an unclosed block, and one in a list are Problems.
//
// A Markdown parser determines which lines open a block, and the block is then read
// in the same way as by Read. If the two find different bytes, it is a Problem.
func FindPlan(body string) ([]byte, bool, *Problem) {
	if !strings.Contains(strings.ToLower(body), info) {
		return nil, false, nil
	}
	if p := checkReadable(body); p != nil {
		return nil, true, p
	}
	if at := findTooDeepLine(body); at >= 0 {
		return nil, true, newUsageProblem(at, "", "the line is nested too deeply")
	}
	source := []byte(body)
	found, p := findPlanBlocks(source)
	if p != nil || len(found) == 0 {
		return nil, p != nil, p
	}
	if i := loneReturn(body); i >= 0 {
		// GitHub ends a line there and the parser does not, so a block that people
		// cannot see might be one that the parser sees.
		return nil, true, newUsageProblem(strings.Count(body[:i], "\n"), "",
			"the comment has a carriage return within a line")
	}
	all := splitLines(body)
	if len(found) > 1 {
		return nil, true, newUsageProblem(lineOf(source, found[1]), "", "the comment has more than one plan")
	}
	b, p := blockAt(all, lineOf(source, found[0]))
	if p != nil {
		return nil, true, p
	}
	if at := htmlBefore(all, b.open); at >= 0 {
		return nil, true, newUsageProblem(at, "", "leave a blank line between HTML and the plan's block")
	}
	if !bytes.Equal(withoutReturns(b.document), withoutReturns(blockContent(source, found[0]))) {
		return nil, true, newUsageProblem(b.open, "", "the block can be read in two ways")
	}
	return b.document, true, nil
}

// maxNesting is the maximum number of quotations and lists that begin on one line.
// With thousands of them, a parser takes seconds.
const maxNesting = 64

// findTooDeepLine finds a line that begins more than maxNesting quotations and lists.
func findTooDeepLine(body string) int {
	for i, l := range splitLines(body) {
		if len(l.text) > maxNesting && countNesting(l.text) > maxNesting {
			return i
		}
	}
	return -1
}

var container = pattern.New(`^[ \t]*(?:>|[-+*](?:[ \t]|$)|[0-9]{1,9}[.)](?:[ \t]|$))`)

// countNesting counts the quotations and lists that begin s.
func countNesting(s string) (n int) {
	for n <= maxNesting {
		begun := container.FindString(s)
		if begun == "" {
			break
		}
		s = s[len(begun):]
		n++
	}
	return n
}

func loneReturn(s string) int {
	for i := range len(s) {
		if s[i] == '\r' && !strings.HasPrefix(s[i:], "\r\n") {
			return i
		}
	}
	return -1
}

// htmlBefore finds a line of HTML above line at without a blank line between them.
// Parsers differ on which tags alone on a line begin an HTML block, which lasts
// until a blank line.
func htmlBefore(all []line, at int) int {
	for i := at - 1; i >= 0 && !isBlank(all[i].text); i-- {
		if strings.HasPrefix(strings.TrimLeft(all[i].text, " \t>"), "<") {
			return i
		}
	}
	return -1
}

// findPlanBlocks lists the top-level plan blocks.
func findPlanBlocks(source []byte) ([]*ast.FencedCodeBlock, *Problem) {
	var found []*ast.FencedCodeBlock
	var problem *Problem
	_ = ast.Walk(parseBlocks(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Blockquote:
			return ast.WalkSkipChildren, nil
		case *ast.FencedCodeBlock:
			if !entering || !isPlan(n, source) {
				break
			}
			if n.Parent().Kind() != ast.KindDocument && problem == nil {
				problem = newUsageProblem(lineOf(source, n), "", "the plan is in a list; move it out of the list")
			}
			found = append(found, n)
		}
		return ast.WalkContinue, nil
	})
	return found, problem
}

// parseBlocks parses source into blocks, without inline content.
func parseBlocks(source []byte) ast.Node {
	return markdown.Parse(text.NewReader(source))
}

var markdown = parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	// Without it, a block that follows a link definition would not be found.
	parser.WithParagraphTransformers(util.Prioritized(parser.LinkReferenceParagraphTransformer, 100)),
)

// isPlan compares the first word of the info string, ignoring case; blockAt then
// requires an exact match.
func isPlan(n *ast.FencedCodeBlock, source []byte) bool {
	return strings.EqualFold(string(n.Language(source)), info)
}

func lineOf(source []byte, n *ast.FencedCodeBlock) int {
	return bytes.Count(source[:n.Info.Segment.Start], []byte("\n"))
}

func blockContent(source []byte, n *ast.FencedCodeBlock) []byte {
	var b []byte
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		b = append(b, segment.Value(source)...)
	}
	return b
}

// withoutReturns converts line ends to LF.
func withoutReturns(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }
