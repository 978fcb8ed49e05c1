// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	xhtml "golang.org/x/net/html"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func webOf(t testing.TB, w Web) string {
	t.Helper()
	var b bytes.Buffer
	if err := w.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// webElements are the elements of a page, with the attributes that they may have.
var webElements = map[string]string{
	"html": "lang", "head": "", "meta": "charset http-equiv content name", "title": "", "style": "", "script": "", "body": "", "a": "href class",
	"header": "", "nav": "aria-label", "main": "id tabindex", "footer": "", "section": "aria-labelledby", "article": "aria-labelledby", "form": "id role hidden",
	"label": "for", "input": "id type autocomplete spellcheck", "button": "type id", "output": "id for aria-live", "h1": "", "h2": "id", "h3": "id",
	"ins": "", "del": "", "p": "class", "div": "class", "span": "class aria-hidden", "strong": "class", "code": "", "pre": "class", "br": "", "ul": "class", "li": "", "dl": "", "dt": "", "dd": "",
	"table": "", "caption": "", "thead": "", "tbody": "", "tr": "class", "th": "scope class", "td": "class colspan", "details": "class open", "summary": "class",
	"svg": "viewBox preserveAspectRatio aria-hidden class", "rect": "x y width height",
}

// checkWeb checks that a page has only the elements above, no link out of it, a policy with the
// hashes of its one script and style, and nothing hidden.
func checkWeb(t testing.TB, page string) {
	t.Helper()
	root, err := xhtml.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	inline, ids, targets := map[string][]string{}, map[string]bool{}, []string{}
	policy := ""
	for n := range root.Descendants() {
		if n.Type == xhtml.CommentNode {
			t.Errorf("comment %.80q", n.Data)
		}
		if n.Type == xhtml.TextNode && n.Parent.Data != "script" && n.Parent.Data != "style" {
			checkVisible(t, n.Data)
		}
		if n.Type != xhtml.ElementNode {
			continue
		}
		allowed, known := webElements[n.Data]
		if !known {
			t.Errorf("element %s", n.Data)
		}
		for _, a := range n.Attr {
			if !slices.Contains(strings.Fields(allowed), a.Key) {
				t.Errorf("attribute %s=%.80q of %s", a.Key, a.Val, n.Data)
			}
			checkVisible(t, a.Val)
			switch a.Key {
			case "id":
				if ids[a.Val] {
					t.Errorf("two elements have the id %q", a.Val)
				}
				ids[a.Val] = true
			case "href", "aria-labelledby", "for":
				targets = append(targets, strings.TrimPrefix(a.Val, "#"))
			case "content":
				if strings.Contains(a.Val, "default-src") {
					policy = a.Val
				}
			}
		}
		if n.Data == "script" || n.Data == "style" {
			inline[n.Data] = append(inline[n.Data], n.FirstChild.Data)
		}
	}
	for _, to := range targets {
		if !ids[to] {
			t.Errorf("a link or label leads to %.80q, which is not in the page", to)
		}
	}
	if len(inline["script"]) != 1 || len(inline["style"]) != 1 {
		t.Fatalf("%d scripts, %d styles", len(inline["script"]), len(inline["style"]))
	}
	want := "default-src 'none'; script-src " + cspSource(inline["script"][0]) + "; style-src " + cspSource(inline["style"][0]) + "; base-uri 'none'; form-action 'none'"
	if policy != want {
		t.Errorf("policy\n%s, want\n%s", policy, want)
	}
}

func checkVisible(t testing.TB, s string) {
	t.Helper()
	for _, r := range s {
		if r != '\n' && r != '\t' && r != '\ufe0f' && r != '\u00a0' && text.IsHidden(r) {
			t.Errorf("%U in %.80q", r, s)
		}
	}
}

func TestWeb(t *testing.T) {
	lanetest.SkipShort(t)
	for name, r := range cases() {
		t.Run(name, func(t *testing.T) {
			page := webOf(t, Web{Report: r})
			checkWeb(t, page)
			for _, rec := range r.Records {
				if name != "longtext" && !strings.Contains(html.UnescapeString(page), ">"+text.Inline(rec.Proposal.ID, maxWebLine)+"</a>") {
					t.Errorf("the page does not list %s", rec.Proposal.ID)
				}
			}
		})
	}
}

func TestWebHostile(t *testing.T) {
	for _, a := range sample.EveryNth(t, append(attacks, strings.Join(attacks, " "), strings.Join(attacks, "\n"), `</script><script>alert(1)</script>`, `</style><style>*{display:none}`,
		`" onmouseover="alert(1)`, `' style='position:fixed`, `javascript:alert(1)`, `</pre></details></main>`, `{{.Report}}`), 1, 5) {
		log := []LogLine{{Kind: a, ID: a, Words: a}, {Time: time.Now(), Kind: "refused", Words: a}}
		w := Web{Report: everywhere(a), Log: log, LogOmitted: 3, Verdict: a}
		w.Report.Withheld = nil
		w.Report.Records[0].Result.Displays = []proposal.Display{{Forms: map[string]string{a: a, "text/plain": a, "text/html": a}}}
		w.Report.Run.Policies = []proposal.PolicyOrigin{{Kind: a, Spec: a, Role: a, Digest: a, Revision: a, SignedBy: a}}
		checkWeb(t, webOf(t, w))
	}
}

func FuzzWeb(f *testing.F) {
	for _, a := range sample.EveryNth(f, attacks, 1, 5) {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, s string) { checkWeb(t, webOf(t, Web{Report: everywhere(s), Verdict: s})) })
}

// A page shows all output of a report, up to its limit, in pieces that a browser lays out one
// by one.
func TestWebSize(t *testing.T) {
	lanetest.SkipShort(t)
	r := finish(proposal.Report{Records: []proposal.Record{ran("loud", "cat log", proposal.Exited, 1, loudLog(5<<20), ""), ran("last", "echo x", proposal.Exited, 0, "the last line\n", "")}})
	page := webOf(t, Web{Report: r})
	if len(page) > 7<<20 || strings.Count(page, "line 000000: ") != 1 || !strings.Contains(page, fmt.Sprintf("line %06d: ", 5<<20/80-1)) || !strings.Contains(page, "the last line") {
		t.Errorf("the page has %d bytes", len(page))
	}
	if n := strings.Count(page, `class="chunk"`); n < 200 || n > 300 {
		t.Errorf("%d pieces", n)
	}
	r.Records[0].Result.Stdout = stream(loudLog(20 << 20))
	if page := webOf(t, Web{Report: r}); len(page) > 10<<20 || !strings.Contains(page, "omitted") || !strings.Contains(page, "the last line") {
		t.Errorf("with 20 MB of output, the page has %d bytes", len(page))
	}
	checkWeb(t, page)
}

// loudLog has lines of 80 bytes.
func loudLog(size int) string {
	var b strings.Builder
	for i := range size / 80 {
		fmt.Fprintf(&b, "%-79s\n", fmt.Sprintf("line %06d: compiled file_%d.go with <tags> & \"quotes\"", i, i*7919%1000))
	}
	return b.String()
}

// A tree of programs is not deeper than a browser accepts, and all programs are in it.
func TestWebPrograms(t *testing.T) {
	var list []proposal.Program
	for i := range 1000 {
		list = append(list, proposal.Program{Parent: i - 1, Name: fmt.Sprintf("p%d", i), Path: fmt.Sprintf("/usr/bin/p%d", i), Layer: proposal.LayerRootfs, Runs: 1})
	}
	roots, omitted := webPrograms(list)
	var count, depth func(nodes []*webProgram) int
	count = func(nodes []*webProgram) (n int) {
		for _, node := range nodes {
			n += 1 + count(node.Children)
		}
		return n
	}
	depth = func(nodes []*webProgram) (n int) {
		for _, node := range nodes {
			n = max(n, 1+depth(node.Children))
		}
		return n
	}
	if count(roots) != 1000 || depth(roots) != maxWebDepth || omitted != 0 {
		t.Errorf("%d programs, %d deep, %d omitted", count(roots), depth(roots), omitted)
	}
	list = append(list, list...)
	list = append(list, list...)
	if roots, omitted := webPrograms(list); count(roots) != maxWebNodes || omitted != 2000 {
		t.Errorf("%d programs, %d omitted", count(roots), omitted)
	}
}

// The page says whether the log was verified, and never claims it without one.
func TestWebVerdict(t *testing.T) {
	for _, tt := range []struct {
		w    Web
		want string
	}{
		{Web{}, "nothing in it is verified"},
		{Web{Verdict: "sealed and complete: 9 entries", Verified: true}, `<strong class="good">sealed and complete: 9 entries</strong>`},
		{Web{Verdict: "entry 3 was altered"}, `<strong class="bad">entry 3 was altered</strong>`},
	} {
		tt.w.Report = allOK()
		if page := webOf(t, tt.w); !strings.Contains(page, tt.want) || strings.Contains(page, `class="good">sealed`) != tt.w.Verified {
			t.Errorf("the page does not say %q", tt.want)
		}
	}
}

// Output that policy withholds is not in the page.
func TestWebWithheld(t *testing.T) {
	r := mixed()
	r.Withheld = &proposal.Reason{Rule: "output.all", Message: "the output is confidential"}
	r.Records[0].Result.Displays = []proposal.Display{{Forms: map[string]string{"text/plain": "Median([1]) of a cell"}}}
	if page := webOf(t, Web{Report: r}); strings.Contains(page, "Median([1") || !strings.Contains(page, "output.all") {
		t.Error("the page shows withheld output, or does not say that it is withheld")
	}
}

// Differences are folded, say in words how many lines were added and removed, and mark only
// lines of a hunk. What is left out is named with the reason.
func TestWebDifferences(t *testing.T) {
	r := mixed()
	r.Differences = differences(
		proposal.Difference{Path: "a.go", Kind: "changed", Text: "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1,3 +1,3 @@\n same\n---- old\n+++ new\n+<b>&\n"},
		proposal.Difference{Path: "big.bin", Kind: "added", Note: "left out: the difference is larger than 64 KiB"})
	r.Differences.Omitted = 7
	page := webOf(t, Web{Report: r})
	checkWeb(t, page)
	for _, want := range []string{
		"<details class=\"output\"><summary><code>a.go</code>: changed, 2 lines added, 1 removed</summary>",
		"<span>diff --git a/a.go b/a.go\n--- a/a.go\n&#43;&#43;&#43; b/a.go\n@@ -1,3 &#43;1,3 @@\n same\n</span><del>---- old\n</del><ins>&#43;&#43;&#43; new\n&#43;&lt;b&gt;&amp;\n</ins>",
		"<code>big.bin</code>: added, 0 lines added, 0 removed; left out: the difference is larger than 64 KiB</summary></details>",
		"7 more changed paths were not compared", "Lines that begin with + were added",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	r.Withheld = &proposal.Reason{Rule: "output.all", Message: "the output is confidential"}
	if page := webOf(t, Web{Report: r}); strings.Contains(page, "---- old") || !strings.Contains(page, "withheld by policy") {
		t.Error("the page shows differences that policy withholds")
	}
}

// An untrusted report with many large differences does not make a page that a browser refuses.
func TestWebDifferencesBounded(t *testing.T) {
	lanetest.SkipShort(t)
	r := allOK()
	r.Differences = &proposal.Differences{}
	for i := range 6000 {
		r.Differences.Files = append(r.Differences.Files, proposal.Difference{Path: fmt.Sprint(i), Kind: "added", Text: "@@\n" + strings.Repeat("+x\n", 1000)})
	}
	page := webOf(t, Web{Report: r})
	if n := strings.Count(page, `class="output"`); len(page) > 8<<20 || n > maxWebList+10 || !strings.Contains(page, "1,000 more changed paths") || !strings.Contains(page, "left out: the page is full") {
		t.Errorf("%d bytes, %d differences", len(page), n)
	}
}

var spaces = regexp.MustCompile(`\s+`)

// Every table has a caption and headers with a scope, every section a heading.
func TestWebStructure(t *testing.T) {
	root, err := xhtml.Parse(strings.NewReader(webOf(t, Web{Report: networkedRun()})))
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for n := range root.Descendants() {
		switch {
		case n.Type == xhtml.ElementNode && n.Data == "table":
			tables++
			var b bytes.Buffer
			if err := xhtml.Render(&b, n); err != nil {
				t.Fatal(err)
			}
			if s := spaces.ReplaceAllString(b.String(), " "); !strings.HasPrefix(s, "<table>") || !strings.Contains(s, "<caption>") || !strings.Contains(s, `<th scope="col">`) {
				t.Errorf("a table begins %.100s", s)
			}
		case n.Type == xhtml.ElementNode && n.Data == "section" && (n.FirstChild.NextSibling == nil || n.FirstChild.NextSibling.Data != "h2"):
			t.Error("a section does not begin with a heading")
		}
	}
	if tables < 3 {
		t.Errorf("%d tables", tables)
	}
}
