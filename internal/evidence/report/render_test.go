// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	xhtml "golang.org/x/net/html"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// render renders GitHub-flavored Markdown with raw HTML, as GitHub does before its
// own filters, and with every extension that could give text a meaning.
func render(t testing.TB, md string) string {
	t.Helper()
	gm := goldmark.New(
		goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList),
		goldmark.WithRendererOptions(html.WithUnsafe()),
	)
	var out bytes.Buffer
	if err := gm.Convert([]byte(md), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// checkComment checks a comment for everything that the package promises.
func checkComment(t testing.TB, r proposal.Report, md string) {
	t.Helper()
	if n := text.CountUnits(md); n > MaxComment {
		t.Errorf("comment has %d units", n)
	}
	if len(md) > 4*MaxComment {
		t.Errorf("comment has %d bytes", len(md))
	}
	if !strings.HasPrefix(md, Marker+"\n\n## ") || !strings.Contains(md[:strings.Index(md[40:], "\n")+40], ": "+tallyRecords(trustedCauses(r, false))) {
		t.Errorf("comment begins %.200q", md)
	}
	checkPlain(t, "Markdown", md)
	if n := strings.Count(md, "<!-- fumehood:"); n != 1 {
		t.Errorf("%d comments that read as ours", n)
	}
	checkTree(t, md)
}

// checkPlain looks for what no output may contain: hidden characters and workflow
// commands, as the runner parses them.
func checkPlain(t testing.TB, what, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Errorf("%s is not UTF-8", what)
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && text.IsHidden(r) && r != '\ufe0f' {
			t.Errorf("%s holds %U", what, r)
		}
	}
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
			t.Errorf("%s has a workflow command: %q", what, line)
		}
	}
}

// ours are the elements that the package writes, with the attributes they may have.
var ours = map[string][]string{
	"html": nil, "head": nil, "body": nil, "h2": nil, "h3": nil, "p": nil, "b": nil, "br": nil, "ul": nil, "li": nil,
	"table": nil, "tbody": nil, "tr": nil, "td": nil, "th": {"colspan"}, "details": {"open"}, "summary": nil, "code": {"class"}, "pre": nil, "a": {"href"}, "wbr": nil,
}

// ownLink matches the links that a page may have: to runs of its repository, and to lines of
// the files of its commit.
var ownLink = regexp.MustCompile(`^https://github\.example/octo/demo/(actions/runs/\d+|blob/` + sha + `/stats/stats_test\.go#L\d+)$`)

// live matches text that GitHub interprets outside code.
var live = regexp.MustCompile(`[@#/$<>\\*_` + "`" + `|\[\]]|www\.|://|:[a-z]+:|\b[0-9a-fA-F]{7,}\b|\bGH-`)

// checkTree renders md and checks the tree: only expected elements, one comment,
// nothing live outside code, tables of two columns or of hosts.
func checkTree(t testing.TB, md string) {
	t.Helper()
	checkHTML(t, render(t, md))
}

func checkHTML(t testing.TB, page string) {
	t.Helper()
	root, err := xhtml.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	comments, headings := 0, 0
	var walk func(n *xhtml.Node, inCode bool)
	walk = func(n *xhtml.Node, inCode bool) {
		switch n.Type {
		case xhtml.CommentNode:
			comments++
			if n.Data != " fumehood:report " {
				t.Errorf("foreign comment %.80q", n.Data)
			}
		case xhtml.TextNode:
			if m := live.FindString(n.Data); m != "" && !inCode {
				t.Errorf("%q outside code: %.120q", m, n.Data)
			}
		case xhtml.ElementNode:
			checkElement(t, n, inCode)
			if n.Data == "h2" {
				headings++
			}
			// GitHub's filters skip the text of links too.
			inCode = inCode || n.Data == "code" || n.Data == "pre" || n.Data == "a"
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, inCode)
		}
	}
	walk(root, false)
	if comments != 1 || headings != 1 {
		t.Errorf("%d comments and %d verdicts, want one of each", comments, headings)
	}
}

func checkElement(t testing.TB, n *xhtml.Node, inCode bool) {
	t.Helper()
	attributes, ok := ours[n.Data]
	if !ok || inCode && n.Data != "code" && n.Data != "wbr" {
		t.Errorf("element %s (in code: %v)", n.Data, inCode)
	}
	for _, a := range n.Attr {
		if !slices.Contains(attributes, a.Key) || a.Key == "class" && !slices.Contains([]string{"language-text", "language-sh", "language-python", "language-javascript"}, a.Val) {
			if n.Data == "h2" || n.Data == "h3" { // goldmark's or cmark's anchor of a heading
				continue
			}
			t.Errorf("attribute %s=%q of %s", a.Key, a.Val, n.Data)
		}
	}
	if n.Data == "tr" {
		cells := 0
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == xhtml.ElementNode {
				cells++
				if len(c.Attr) == 1 && c.Attr[0].Val == "2" {
					cells++
				}
			}
		}
		if cells != 2 && cells != 5 { // of the table of hosts
			t.Errorf("a row of %d cells", cells)
		}
	}
	if n.Data == "a" && (len(n.Attr) != 1 || !ownLink.MatchString(n.Attr[0].Val)) {
		t.Errorf("a link that is not ours: %v", n.Attr)
	}
	if n.Data == "details" && n.Parent.Data != "body" && (n.Parent.Data != "details" || n.Parent.Parent.Data != "body") {
		t.Errorf("details inside %s inside %s: a block was not closed", n.Parent.Data, n.Parent.Parent.Data)
	}
}

func FuzzMarkdown(f *testing.F) {
	lanetest.SkipShort(f)
	for _, a := range attacks {
		f.Add([]byte(a), uint16(40000))
	}
	f.Add([]byte(strings.Join(attacks, "\n")), uint16(5000))
	f.Fuzz(func(t *testing.T, data []byte, limit uint16) {
		r := everywhere(string(data))
		checkComment(t, r, Markdown(r))
		small := max(4000, int(limit))
		if n := text.CountUnits(Page{Parts: []Part{{Report: r}}, Limit: small}.Markdown()); n > small {
			t.Errorf("%d units at limit %d", n, small)
		}
		checkPlain(t, "Text", Text(r))
		doc, err := JSON(r)
		if err != nil {
			t.Fatal(err)
		}
		checkPlain(t, "JSON", string(doc))
	})
}

func FuzzPage(f *testing.F) {
	lanetest.SkipShort(f)
	for _, a := range sample.EveryNth(f, attacks, 1, 5) {
		f.Add(a, uint16(40000))
	}
	f.Add(strings.Join(attacks, "\n"), uint16(5000))
	f.Fuzz(func(t *testing.T, s string, limit uint16) {
		p := hostilePage(s)
		checkPage(t, p, p.Markdown())
		p.Limit = max(8000, int(limit))
		if n := text.CountUnits(p.Markdown()); n > p.Limit {
			t.Errorf("%d units at limit %d", n, p.Limit)
		}
		for i := range p.Parts {
			p.Parts[i].Foreign = true
		}
		checkPage(t, p, p.Markdown())
	})
}
