// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package report

import (
	"os/exec"
	"strings"
	"testing"
)

// TestE2ECmark renders with the program that GitHub's renderer is based on.
func TestE2ECmark(t *testing.T) {
	comments := map[string]string{}
	for name, r := range cases() {
		comments[name] = Markdown(r)
	}
	for name, p := range pages() {
		comments[name] = p.Markdown()
	}
	for _, a := range append(attacks, strings.Join(attacks, " "), strings.Join(attacks, "\n")) {
		comments[a] = Markdown(everywhere(a))
		comments["page "+a] = hostilePage(a).Markdown()
	}
	for name, md := range comments {
		cmd := exec.Command("cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink", "-e", "strikethrough", "-e", "tagfilter", "-e", "tasklist", "-e", "footnotes")
		cmd.Stdin = strings.NewReader(md)
		page, err := cmd.Output()
		if err != nil {
			t.Fatalf("cannot run cmark-gfm (Debian's package of that name): %v", err)
		}
		// cmark-gfm writes <pre lang="sh">, goldmark <code class="language-sh">.
		page = []byte(strings.NewReplacer(`<pre lang="text">`, "<pre>", `<pre lang="sh">`, "<pre>", `<pre lang="python">`, "<pre>").Replace(string(page)))
		if checkHTML(t, string(page)); t.Failed() {
			t.Fatalf("comment %.80q", name)
		}
	}
}
