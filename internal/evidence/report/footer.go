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

// showFooters folds the conditions of the run.
func (p Page) showFooters(d *doc, items []item, l detailLevel) {
	if l.footers == 0 || len(p.Parts) == 0 {
		return
	}
	d.addBlock("<details>", "<summary>How this was run: programs, statistics, policy, protection and audit log</summary>")
	p.showConditions(d, items, l)
	d.addBlock("</details>")
}

// showConditions shows what each command started and used, and the conditions under which each
// part was run.
func (p Page) showConditions(d *doc, items []item, l detailLevel) {
	for _, it := range items {
		p.showMeasured(d, it, l)
	}
	if lines := p.policyLines(l); len(lines) > 0 {
		d.addBlock("<p>" + strings.Join(lines, "\n<br>") + "</p>")
	}
	for i, part := range p.Parts {
		if i == l.footers {
			d.addBlock(fmt.Sprintf("<p>The conditions of %d more runs are not shown here; see their report files.</p>",
				len(p.Parts)-i))
			return
		}
		if p.hasSeveralParts() {
			d.addBlock("<p>Conditions of " + formatCode(part.Name, 60) + ":</p>")
		}
		hostTable(d, part.Report, l)
		showFooter(d, part, l, p.Artifact != "")
	}
}

// showMeasured shows the programs and the resources of one command.
func (p Page) showMeasured(d *doc, it item, l detailLevel) {
	items := usageItems(it.Record, l)
	if len(items) == 0 || l.tree == 0 {
		return
	}
	d.addBlock("<p>"+p.partLabel(it.part)+formatCode(it.Proposal.ID, l.short)+":</p>",
		"<ul>"+strings.Join(items, "\n")+"</ul>")
	if o := observationsOf(it.Record); o != nil {
		if tree := drawPrograms(o.Programs, l.tree); tree != "" {
			d.addBlock(fencedBlock("text", text.Excerpt([]byte(tree), nil, int64(len(tree)), treeUnits).Text))
		}
	}
}

// showFooter shows the conditions of a run and how to verify it.
func showFooter(d *doc, part Part, l detailLevel, packed bool) {
	run := part.Report.Run
	lines := []string{"<table>"}
	for _, row := range [][2]string{
		{"run", run.ID}, {"plan", run.PlanDigest}, {"policy", run.Policy}, {"mode", run.Mode}, {"network", run.NetworkMode()}, {"commit", run.HeadSHA}, {"base", run.BaseSHA},
		{"repository", run.Repository}, {"fork", run.Fork}, {"working directory", run.Cwd},
		{"root file system", run.Rootfs}, {"runsc", run.Runsc}, {"fumehood", run.Version},
	} {
		if row[1] != "" {
			lines = append(lines, "<tr><th>"+row[0]+"</th><td>"+formatCode(row[1], 160)+"</td></tr>")
		}
	}
	if len(run.Toolchains) > 0 {
		lines = append(lines, "<tr><th>toolchains</th><td>"+formatCode(toolchainList(run.Toolchains), 600)+"</td></tr>")
	}
	lines = append(lines, originRows(run.Policies)...)
	if !run.Start.IsZero() {
		started := formatTime(run.Start) + ", took " + formatMilliseconds(run.WallMS)
		lines = append(lines, "<tr><th>start</th><td>"+formatCode(started, 80)+"</td></tr>")
	}
	d.addBlock(append(lines, "</table>")...)
	if len(run.Enforced) > 0 {
		enforced := "Enforced:"
		if part.Foreign {
			enforced = "That run says that it enforced:"
		}
		d.addBlock("<p>"+enforced+"</p>",
			htmlList(run.Enforced, l.run, func(s string) string { return formatProse(s, l.long) }))
	}
	showAudit(d, part.Report.Audit, packed)
	showCosigned(d, part.Report.Audit, part.Cosigned, packed)
}

// toolchainList lists names and versions, and the paths of those outside the system's directories.
func toolchainList(all []proposal.Toolchain) string {
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

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// showAudit shows the log, its checkpoint and the command that verifies them.
func showAudit(d *doc, a *proposal.Audit, packed bool) {
	if a == nil {
		d.addBlock("<p>No audit log was written.</p>")
		return
	}
	d.addBlock("<p>Audit log " + fileName(a.File, packed) + ", origin " + formatCode(a.Origin, 160) +
		": " + text.FormatCount(a.Entries) +
		" entries. This checks that it is the log of this checkpoint, or prints the first error:</p>",
	)
	d.addBlock(fencedBlock("sh", verifyCommand(a, packed)))
}

// showCosigned shows who has cosigned the log, and the command that verifies it with that key alone.
func showCosigned(d *doc, a *proposal.Audit, c *Cosigned, packed bool) {
	if a == nil || c == nil {
		return
	}
	d.addBlock("<p>The job that reported the run cosigned the log on " + formatTime(c.Time) + ": file " +
		formatCode(c.File, 160) + " of artifact " + formatCode(c.Artifact, 160) +
		". This checks that it is that log:</p>")
	d.addBlock(fencedBlock("sh", shellLine(logName(a, packed), "--cosigned", path.Base(c.File), "--key", c.Key)))
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
