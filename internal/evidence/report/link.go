// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// runURL matches the URL of a workflow run, in which nothing needs escaping.
var runURL = pattern.New(`^(https?://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?)/([A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100})/actions/runs/([0-9]{1,19})(?:/attempts/[0-9]{1,5})?$`)

// runLink returns an anchor to a workflow run of p's own repository on the server of
// p.RunURL, or "" for any other URL.
func (p Page) runLink(url, words string) string {
	own, m := runURL.FindStringSubmatch(p.RunURL), runURL.FindStringSubmatch(url)
	if m == nil || own == nil || m[1] != own[1] || !strings.EqualFold(m[2], p.Repository) {
		return ""
	}
	return `<a href="` + url + `">` + words + " " + m[3] + "</a>"
}

// reportLocation returns where the reports and all outputs are, or "".
func (p Page) reportLocation() string {
	run := p.runLink(p.RunURL, "workflow run")
	switch {
	case p.Artifact != "" && run != "":
		return "artifact " + formatCode(p.Artifact, 100) + " of " + run
	case p.Artifact != "":
		return "artifact " + formatCode(p.Artifact, 100)
	}
	return run
}
