// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"

	"github.com/fumehood/fumehood/pkg/proposal"
)

var hostileTexts = []string{
	"<script>x</script>", "</details><img src=x onerror=y>", "```\n\n# a\n\n<b>", "~~~\n<b>\n~~~", "`` ` `` <b>", "[a](https://evil.example)", "![a](https://evil.example/a.png)",
	"@everyone #1 https://evil.example", "\n\n---\n\n<b>", "- a\n\n      <b>", "\x1b]0;title\a\x1b[31m", "\u202egnp.exe", "a\r\n<b>", "<!-- fumehood -->", "> <b>", "|a|b|\n|-|-|\n|<b>|c|", strings.Repeat("`", 500) + "<b>", "",
	"```suggestion\n<b>\n```", "````\n```\n````suggestion\nx",
}

// Whatever a reviewer writes and a command says is text in the Markdown, and one line each on
// a terminal.
func TestHostileText(t *testing.T) {
	for _, hostile := range hostileTexts {
		f := proposal.ReviewFinding{ID: hostile, File: hostile, Line: 1, Severity: hostile, Claim: hostile, Reproducer: &proposal.Proposal{Run: hostile, Code: hostile}}
		d := Document{Reason: hostile, Base: hostile, Head: hostile, Runs: []Run{{ID: hostile, Side: hostile, Log: hostile}}, Model: &ModelUse{Provider: hostile, Model: hostile, Left: 1, Log: Run{Log: hostile}, Session: &Run{ID: hostile, Log: hostile}}}
		for _, h := range headings {
			d.Results = append(d.Results, Result{Finding: f, Verdict: h.verdict, Why: hostile, Suggestion: &Suggestion{Why: hostile}})
		}
		for _, reviewed := range []bool{true, false} {
			d.Reviewed, d.Base, d.Head = reviewed, "0123456789abcdef", "0123456789abcdef"
			onlyText(t, hostile, d.RenderMarkdown())
			if s := d.RenderText(); strings.ContainsAny(s, "\x1b\a\r\u202e") || strings.Count(s, "\n") > 50 {
				t.Errorf("%q controls the terminal: %q", hostile, s)
			}
		}
	}
}

// A comment on lines has no other elements either, whatever the texts are, and its last block of
// code is the suggestion, unchanged, or there is none.
func TestHostileRemark(t *testing.T) {
	for _, hostile := range hostileTexts {
		for _, verdict := range []Verdict{Verified, NotReproduced, PreExisting} {
			f := proposal.ReviewFinding{ID: hostile, File: hostile, Line: 1, Severity: hostile, Claim: hostile, Reproducer: &proposal.Proposal{Run: hostile}, Suggestion: &hostile}
			r := Result{Finding: f, Verdict: verdict, Why: hostile, Suggestion: &Suggestion{Offered: true}, Position: &Position{Path: hostile, Line: 1, Side: "RIGHT"}}
			d := Document{Base: "0123456789abcdef", Head: "0123456789abcdef"}
			remark := d.RenderRemark(r)
			onlyText(t, hostile, remark)
			onlyText(t, hostile, d.RenderSummary(SummaryOptions{Units: 8000, Notes: []string{hostile}}))
			suggested := strings.Contains(remark, "`suggestion\n")
			if shown := strings.Contains(remark, "suggestion\n"+strings.TrimSuffix(hostile, "\n")); suggested != (shown && verdict == Verified && !strings.ContainsAny(hostile, "\x1b\r\u202e")) && !strings.Contains(hostile, "suggestion") {
				t.Errorf("%q, %s: a suggestion: %v, its text: %v\n%s", hostile, verdict, suggested, shown, remark)
			}
		}
	}
}

// onlyText fails if rendered Markdown has other elements than ours.
func onlyText(t *testing.T, hostile, markdown string) {
	t.Helper()
	var b bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := md.Convert([]byte(markdown), &b); err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{"h3": true, "h4": true, "p": true, "strong": true, "code": true, "pre": true, "ul": true, "li": true, "details": true, "summary": true}
	z, open := nethtml.NewTokenizer(&b), 0
	for {
		kind := z.Next()
		if kind == nethtml.ErrorToken {
			break
		}
		name, _ := z.TagName()
		switch {
		case kind == nethtml.CommentToken || kind == nethtml.StartTagToken && !own[string(name)]:
			t.Fatalf("%q makes an element %q:\n%s", hostile, name, markdown)
		case kind == nethtml.StartTagToken && string(name) == "details":
			open++
		case kind == nethtml.EndTagToken && string(name) == "details":
			open--
		case kind == nethtml.TextToken && open < 0:
			t.Fatalf("%q ends a section:\n%s", hostile, markdown)
		}
	}
	if open != 0 {
		t.Errorf("%q: %d sections are open", hostile, open)
	}
}
