// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// footers folds the conditions of the run.
func (p Page) footers(d *doc, items []item, l level) {
	if l.footers == 0 || len(p.Parts) == 0 {
		return
	}
	d.block("<details>", "<summary>How this was run: programs, statistics, policy, protection and audit log</summary>")
	p.conditions(d, items, l)
	d.block("</details>")
}

// conditions shows what each command started and used, and the conditions under which each
// part was run.
func (p Page) conditions(d *doc, items []item, l level) {
	for _, it := range items {
		p.measured(d, it, l)
	}
	if lines := p.grounds(l); len(lines) > 0 {
		d.block("<p>" + strings.Join(lines, "\n<br>") + "</p>")
	}
	for i, part := range p.Parts {
		if i == l.footers {
			d.block(fmt.Sprintf("<p>The conditions of %d more runs are not shown here; see their report files.</p>", len(p.Parts)-i))
			return
		}
		if p.several() {
			d.block("<p>Conditions of " + code(part.Name, 60) + ":</p>")
		}
		hostTable(d, part.Report, l)
		footer(d, part, l, p.Artifact != "")
	}
}

// measured shows the programs and the resources of one command.
func (p Page) measured(d *doc, it item, l level) {
	items := statistics(it.Record, l)
	if len(items) == 0 || l.tree == 0 {
		return
	}
	d.block("<p>"+p.label(it.part)+code(it.Proposal.ID, l.short)+":</p>", "<ul>"+strings.Join(items, "\n")+"</ul>")
	if o := seen(it.Record); o != nil {
		if tree := drawing(o.Programs, l.tree); tree != "" {
			d.block(fence("text", text.Excerpt([]byte(tree), nil, int64(len(tree)), treeUnits).Text))
		}
	}
}

// footer shows the conditions of a run and how to verify it.
func footer(d *doc, part Part, l level, packed bool) {
	run := part.Report.Run
	lines := []string{"<table>"}
	for _, row := range [][2]string{
		{"run", run.ID}, {"plan", run.PlanDigest}, {"policy", run.Policy}, {"mode", run.Mode}, {"network", run.NetworkMode()}, {"commit", run.HeadSHA}, {"base", run.BaseSHA},
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
		enforced := "Enforced:"
		if part.Foreign {
			enforced = "That run says that it enforced:"
		}
		d.block("<p>"+enforced+"</p>", list(run.Enforced, l.run, func(s string) string { return prose(s, l.long) }))
	}
	audit(d, part.Report.Audit, packed)
	cosigned(d, part.Report.Audit, part.Cosigned, packed)
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
		": " + text.Count(a.Entries) + " entries. This checks that it is the log of this checkpoint, or prints the first error:</p>",
	)
	d.block(fence("sh", verifyCommand(a, packed)))
}

// cosigned shows who has cosigned the log, and the command that verifies it with that key alone.
func cosigned(d *doc, a *proposal.Audit, c *Cosigned, packed bool) {
	if a == nil || c == nil {
		return
	}
	d.block("<p>The job that reported the run cosigned the log on " + moment(c.Time) + ": file " + code(c.File, 160) + " of artifact " + code(c.Artifact, 160) +
		". This checks that it is that log:</p>")
	d.block(fence("sh", shellLine(logName(a, packed), "--cosigned", path.Base(c.File), "--key", c.Key)))
}

// verifyCommand is a line for a shell. What a report holds is untrusted, so every word of it is
// quoted.
func verifyCommand(a *proposal.Audit, packed bool) string {
	return shellLine(logName(a, packed), "--key", a.Key, "--checkpoint", strings.TrimSuffix(a.Checkpoint, "\n"))
}

// logName is the path of the log, or its name in an artifact.
func logName(a *proposal.Audit, packed bool) string {
	name := a.File
	if packed {
		name = path.Base(name)
	}
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	return name
}

// shellLine is fumehood verify with these arguments, each as one word of a shell.
func shellLine(args ...string) string {
	words := "fumehood verify"
	for _, w := range args {
		words += " " + shellWord(text.Excerpt([]byte(w), nil, int64(len(w)), 2000).Text)
	}
	return words + "\n"
}

// shellWord returns w as one word of a POSIX shell.
func shellWord(w string) string {
	w = strings.TrimSuffix(w, "\n")
	if w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+") == "" {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
