// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/watch/hosts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxHosts is how many destinations of a run a comment and a terminal show.
const maxHosts = 10

// hostsOf returns the destinations of r to show, at most n, and a line about the others or "".
func hostsOf(r proposal.Report, n int) ([]proposal.Host, string) {
	all := hosts.ListHosts(r.Records)
	if all == nil {
		return nil, ""
	}
	rows := hosts.Select(all.Rows, min(n, maxHosts))
	var left []string
	if more := len(all.Rows) - len(rows) + all.Omitted; more > 0 {
		left = append(left, text.FormatCount(int64(more))+" more hosts")
	}
	if all.Unlisted > 0 {
		left = append(left, text.FormatCount(int64(all.Unlisted))+" network events without a host here")
	}
	if len(left) == 0 {
		return rows, ""
	}
	return rows, "Not shown: " + strings.Join(left, ", ") + "; see the report and the audit log"
}

// verdictWords say what became of a destination.
var verdictWords = map[string]string{proposal.VerdictAllowed: "allowed", proposal.VerdictRefused: "⛔ refused",
	proposal.VerdictWatched: "👁 would be refused", proposal.VerdictObserved: "👁 observed"}

// hostTable shows the destinations of a whole run.
func hostTable(d *doc, r proposal.Report, l detailLevel) {
	rows, left := hostsOf(r, l.list)
	show := func(s string) string { return formatCode(s, min(l.short, 40)) }
	if len(rows) == 0 && left == "" {
		return
	}
	lines := []string{"<table>", "<tr><th>host</th><th>network</th><th>commands</th><th>sent</th><th>received</th></tr>"}
	for _, h := range rows {
		lines = append(lines, fmt.Sprintf("<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>",
			breakableCode(h.Destination(), l.short+60), verdictWords[h.Verdict], hostUsers(h, show), text.Size(h.Sent),
			text.Size(h.Received)))
	}
	lines = append(lines, "</table>")
	if left != "" {
		lines = append(lines, "<p>"+left+".</p>")
	}
	d.addBlock(lines...)
}

// hostUsers names the commands and the programs of a row.
func hostUsers(h proposal.Host, show func(string) string) string {
	s := showSeveral(h.Commands, show)
	if names := programNames(h); len(names) > 0 {
		s += " (" + showSeveral(names, show) + ")"
	}
	if h.More > 0 {
		s += " and more"
	}
	return s
}

func programNames(h proposal.Host) []string {
	var names []string
	for _, program := range h.Programs {
		names = append(names, path.Base(program))
	}
	return distinctStrings(names)
}

// plainHosts lists the destinations of a run, for a terminal.
func plainHosts(r proposal.Report) []string {
	rows, left := hostsOf(r, maxHosts)
	var lines []string
	show := func(s string) string { return text.Inline(s, 40) }
	for _, h := range rows {
		s := fmt.Sprintf("network: %-8s %s", h.Verdict, text.Inline(h.Destination(), 120))
		if h.Sent+h.Received > 0 {
			s += fmt.Sprintf(" · %s out, %s in", text.Size(h.Sent), text.Size(h.Received))
		}
		lines = append(lines, s+" · "+hostUsers(h, show))
	}
	if left != "" {
		lines = append(lines, "network: "+left)
	}
	return lines
}
