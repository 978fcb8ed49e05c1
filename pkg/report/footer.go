// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// footers shows the conditions under which each part was run.
func (p Page) footers(d *doc, l level) {
	for i, part := range p.Parts {
		if i == l.footers {
			d.block(fmt.Sprintf("<p>The conditions of %d more runs are not shown here; see their report files.</p>", len(p.Parts)-i))
			return
		}
		name := "this"
		if p.several() {
			name = code(part.Name, 60)
		}
		d.block("<details>", "<summary>How "+name+" was run and how to verify it</summary>")
		footer(d, part, l, p.Artifact != "")
		d.block("</details>")
	}
}

// footer shows the conditions of a run and how to verify it.
func footer(d *doc, part Part, l level, packed bool) {
	run := part.Report.Run
	lines := []string{"<table>"}
	for _, row := range [][2]string{
		{"run", run.ID}, {"plan", run.PlanDigest}, {"policy", run.Policy}, {"mode", run.Mode}, {"commit", run.HeadSHA}, {"base", run.BaseSHA},
		{"repository", run.Repository}, {"fork", run.Fork}, {"working directory", run.Cwd},
		{"root file system", run.Rootfs}, {"runsc", run.Runsc}, {"fumehood", run.Version},
	} {
		if row[1] != "" {
			lines = append(lines, "<tr><th>"+row[0]+"</th><td>"+code(row[1], 160)+"</td></tr>")
		}
	}
	if len(run.Toolchains) > 0 {
		lines = append(lines, "<tr><th>toolchains</th><td>"+code(toolchains(run.Toolchains), 600)+"</td></tr>")
	}
	lines = append(lines, originRows(run.Policies)...)
	if !run.Start.IsZero() {
		started := moment(run.Start) + ", took " + milliseconds(run.WallMS)
		lines = append(lines, "<tr><th>start</th><td>"+code(started, 80)+"</td></tr>")
	}
	d.block(append(lines, "</table>")...)
	if len(run.Enforced) > 0 {
		d.block("<p>Enforced:</p>", list(run.Enforced, l.run, func(s string) string { return prose(s, l.long) }))
	}
	audit(d, part.Report.Audit, packed)
}

// toolchains lists names and versions, and the paths of those outside the system's directories.
func toolchains(all []proposal.Toolchain) string {
	var list []string
	for _, t := range all {
		words := t.Name
		if t.Version != "" {
			words += " " + t.Version
		}
		if dir := path.Dir(t.Path); dir != "/usr/bin" && dir != "/bin" {
			words += " (" + t.Path + ")"
		}
		list = append(list, words)
	}
	return strings.Join(list, ", ")
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// audit shows the log, its checkpoint and the command that verifies them.
func audit(d *doc, a *proposal.Audit, packed bool) {
	if a == nil {
		d.block("<p>No audit log was written.</p>")
		return
	}
	d.block("<p>Audit log " + fileName(a.File, packed) + ", origin " + code(a.Origin, 160) +
		": " + text.Count(a.Entries) + " entries. Checkpoint, signed by " + code(a.Key, 300) + ":</p>",
	)
	note := text.Excerpt([]byte(a.Checkpoint), nil, int64(len(a.Checkpoint)), 2000).Text
	d.block(fence("text", note))
	d.block("<p>To verify the log, run <code>fumehood verify</code> with its file. It checks that every entry is in this checkpoint, or prints the first error.</p>")
}
