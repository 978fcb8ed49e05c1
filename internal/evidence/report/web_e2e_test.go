// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package report

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// axeVersion is the release of axe-core, which checks pages for accessibility.
const axeVersion = "4.14.1"

// axe returns the script of axe-core, from the npm registry.
func axe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", dir, "axe-core@"+axeVersion)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm: %v\n%s", err, out)
	}
	script, err := os.ReadFile(filepath.Join(dir, "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// webPages are pages of every kind of report, with the events of a log.
func webPages() map[string]Web {
	log := []LogLine{{Time: time.Unix(1795233906, 0), Kind: "run", Words: "began"}, {Time: time.Unix(1795233907, 0), Kind: "refused", ID: "unit", Words: "curl by exec.network-client"}}
	list := map[string]Web{}
	for _, name := range []string{"mixed", "watched", "networked", "fifty", "missing_setup", "stopped", "empty", "hostile"} {
		r := cases()[name]
		r.Differences = differences(proposal.Difference{Path: "calc/median.go", Kind: "changed", Text: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-return 2\n+return 2.5 // " + strings.Repeat("long ", 60) + "\n"},
			proposal.Difference{Path: "image.png", Kind: "added", Note: "binary"})
		list[name] = Web{Report: r, Log: log, LogOmitted: 7, Verdict: "sealed and complete: 24 entries", Verified: true}
	}
	return list
}

// checkPage checks what a page did, and that nothing of a report became part of it.
func checkBrowser(t *testing.T, b *browser) {
	t.Helper()
	for _, did := range b.unexpected() {
		t.Errorf("the page did %.300s", did)
	}
	var found struct {
		Violations                         []string
		Scripts, Styles, Foreign, External int
		Shown                              bool
	}
	b.eval(`({violations, scripts: document.scripts.length, styles: document.styleSheets.length,
		foreign: document.querySelectorAll("img, iframe, object, embed, video, audio, link, base, template, [style], [onclick], [onload], [onerror], [onmouseover]").length,
		external: [...document.links].filter((a) => !a.getAttribute("href").startsWith("#")).length,
		shown: !document.getElementById("search").hidden})`, &found)
	if len(found.Violations) > 0 || found.Scripts != 1 || found.Styles != 1 || found.Foreign+found.External > 0 || !found.Shown {
		t.Errorf("the page has %+v", found)
	}
}

// In a real browser, from file://, no page violates its policy, requests anything, or has an
// accessibility finding, in both color schemes, at the width of a phone and of a desktop.
func TestE2EWebBrowser(t *testing.T) {
	b, script := startBrowser(t), axe(t)
	for name, w := range webPages() {
		b.open(webOf(t, w))
		checkBrowser(t, b)
		b.eval(`document.querySelectorAll("details").forEach((d) => d.open = true)`, nil)
		b.eval(script+"; true", nil)
		for _, width := range []int{400, 1400} {
			for _, scheme := range []string{"light", "dark"} {
				b.view(width, scheme)
				b.picture(fmt.Sprintf("%s-%d-%s", name, width, scheme))
				checkAccessible(t, b, fmt.Sprintf("%s at %d, %s", name, width, scheme))
			}
		}
	}
}

// checkAccessible runs axe-core, and checks that nothing is wider than the page.
func checkAccessible(t *testing.T, b *browser, what string) {
	t.Helper()
	var found struct {
		Passed     int
		Violations []struct {
			ID, Impact, Help string
			Nodes            []json.RawMessage
		}
	}
	b.eval(`axe.run().then((r) => ({passed: r.passes.length, violations: r.violations.map((v) => ({id: v.id, impact: v.impact, help: v.help,
		nodes: v.nodes.slice(0, 3).map((n) => n.html + " " + n.failureSummary)}))}))`, &found)
	if found.Passed < 20 {
		t.Errorf("%s: axe-core checked %d rules", what, found.Passed)
	}
	for _, v := range found.Violations {
		t.Errorf("%s: %s (%s): %s: %s", what, v.ID, v.Impact, v.Help, v.Nodes)
	}
	var wide []string
	b.eval(`document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map((e) => e.outerHTML.slice(0, 200))`, &wide)
	if len(wide) > 0 {
		t.Errorf("%s: wider than the page: %s", what, wide)
	}
}

// Hostile text in every field is only shown.
func TestE2EWebBrowserHostile(t *testing.T) {
	b := startBrowser(t)
	for _, a := range append(attacks, `</script><script>alert(1)</script>`, `</style><style>*{display:none}</style>`, `"><img src=x onerror=alert(1)>`,
		`' onmouseover='alert(1)' style='position:fixed`, `</pre></details></main><form action=https://evil.example>`, `<svg onload=alert(1)>`, strings.Join(attacks, "\n"), strings.Repeat("W", 300000)) {
		w := Web{Report: everywhere(a), Log: []LogLine{{Kind: a, ID: a, Words: a}}, Verdict: a}
		b.view(400, "light")
		b.open(webOf(t, w))
		b.eval(`document.querySelectorAll("details").forEach((d) => d.open = true)`, nil)
		if checkBrowser(t, b); t.Failed() {
			t.Fatalf("with %.80q", a)
		}
		var wide bool
		if b.eval(`document.documentElement.scrollWidth > innerWidth`, &wide); wide {
			t.Errorf("the page is wider than 400 px with %.80q", a)
		}
	}
}

// The policy is in force: what a page must not do is blocked, and the other tests would see it.
func TestE2EWebBrowserPolicy(t *testing.T) {
	b := startBrowser(t)
	b.open(webOf(t, Web{Report: mixed()}))
	var blocked []string
	b.eval(`(async () => {
		const add = (name, set) => document.body.append(Object.assign(document.createElement(name), set));
		add("script", {textContent: "globalThis.ran = 1"});
		add("style", {textContent: "* { color: red }"});
		add("img", {src: "https://evil.example/p.png"});
		add("iframe", {src: "data:text/html,x"});
		add("base", {href: "https://evil.example/"});
		document.body.setAttribute("style", "color: red");
		await fetch("https://evil.example/").catch(() => 0);
		await new Promise((done) => setTimeout(done, 500));
		return [...violations.map((v) => v.split(" ")[0]), ...(globalThis.ran ? ["ran"] : [])].sort();
	})()`, &blocked)
	want := "base-uri connect-src frame-src img-src script-src-elem style-src-attr style-src-elem"
	if got := strings.Join(blocked, " "); got != want {
		t.Errorf("blocked: %s, want %s", got, want)
	}
}

// A page with 5 MB of output loads, opens and is searched in seconds.
func TestE2EWebBrowserLarge(t *testing.T) {
	r := finish(proposal.Report{Records: []proposal.Record{ran("quiet", "true", proposal.Exited, 0, "nothing here\n", ""), ran("loud", "cat log", proposal.Exited, 1, loudLog(5<<20), "")}})
	b := startBrowser(t)
	b.view(1400, "light")
	page := webOf(t, Web{Report: r})
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"load", func() { b.open(page) }},
		{"open and lay out", func() {
			b.eval(`document.querySelectorAll("details").forEach((d) => d.open = true); document.body.offsetHeight`, nil)
		}},
		{"search", func() { b.search("LINE 060000: ") }},
		{"search what is everywhere", func() { b.search("compiled") }},
	} {
		start := time.Now()
		step.do()
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %s", step.name, took)
		} else {
			t.Logf("%s took %s", step.name, took)
		}
	}
	checkBrowser(t, b)
	b.search("") // the same words again would move to the next match
	for words, want := range map[string]string{"LINE 060000: ": "1 of 1", "nothing here": "1 of 1", "compiled": "1 of 10000 or more", "a.*b": "nothing found", `<tags> & "quotes"`: "1 of 10000 or more", "": ""} {
		if got := b.search(words); got != want {
			t.Errorf("search for %q: %q, want %q", words, got, want)
		}
	}
	b.search("LINE 060000: ")
	var at float64
	b.eval(`(() => { const [r] = CSS.highlights.get("found"); return r.getBoundingClientRect().top / innerHeight })()`, &at)
	if at < 0 || at > 1 {
		t.Errorf("what was found is at %.1f heights of the window", at)
	}
	b.picture("found")
}

// search searches the page's outputs and returns what the page says.
func (b *browser) search(words string) (said string) {
	b.eval(fmt.Sprintf(`document.getElementById("query").value = %q; document.getElementById("search").requestSubmit(); document.getElementById("found").value`, words), &said)
	return said
}

// Without scripts, everything but the search is there, and the search is not shown.
func TestE2EWebBrowserNoScript(t *testing.T) {
	b := startBrowser(t)
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.open(webOf(t, webPages()["mixed"]))
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	b.call("Accessibility.enable", nil, nil)
	b.call("Accessibility.getFullAXTree", nil, &tree)
	roles, all := map[string]int{}, ""
	for _, n := range tree.Nodes {
		if !n.Ignored {
			roles[fmt.Sprint(n.Role.Value)]++
			all += fmt.Sprint(n.Name.Value) + "\n"
		}
	}
	for _, role := range []string{"main", "banner", "navigation", "contentinfo", "heading", "table", "columnheader", "rowheader", "article", "region"} {
		if roles[role] == 0 {
			t.Errorf("a screen reader finds no %s", role)
		}
	}
	if roles["search"]+roles["searchbox"] > 0 {
		t.Error("the search is shown, and does nothing")
	}
	for _, want := range []string{"Median([1 2 3 4]) = 2, want 2.5", "net.fetch", "sealed and complete", "Skip to the results"} {
		if !strings.Contains(all, want) {
			t.Errorf("a screen reader does not find %q in\n%s", want, all)
		}
	}
}
