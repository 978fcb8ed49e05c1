// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// walkVisible calls do for root and all commands below it that help lists.
func walkVisible(root *cobra.Command, do func(*cobra.Command)) {
	walkCommands(root, func(cmd *cobra.Command) {
		if cmd == root || cmd.IsAvailableCommand() && cmd.Name() != "help" {
			do(cmd)
		}
	})
}

// WriteManPages writes a page of the manual for each command below root to the directory
// dir: fumehood-policy-explain.1.
func WriteManPages(root *cobra.Command, dir, version string) (err error) {
	walkVisible(root, func(cmd *cobra.Command) {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(ManPage(cmd, version)), 0o644)
		}
	})
	return err
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// ManPage returns cmd's page of the manual, in the macros of man(7).
func ManPage(cmd *cobra.Command, version string) string {
	m := &manual{}
	m.writeLine(".TH %q 1 \"\" %q %q", strings.ToUpper(pageName(cmd)), "fumehood "+version, "fumehood manual")
	m.writeSection("Name")
	m.writeText(escapeRoff(pageName(cmd)) + ` \- ` + escapeRoff(cmd.Short))
	m.writeSection("Synopsis")
	m.writeVerbatim(usageLines(cmd))
	m.writeSection("Description")
	m.writeVerbatim(describeCommand(cmd))
	for _, g := range commandGroups(cmd) {
		m.writeSection(g.title)
		m.writeVerbatim(g.text)
	}
	for _, g := range FlagGroups(cmd) {
		m.writeFlags(g)
	}
	if cmd.Example != "" {
		m.writeSection("Examples")
		m.writeVerbatim(cmd.Example)
	}
	m.seeAlso(cmd)
	return m.String()
}

// A manual is a page being written.
type manual struct{ strings.Builder }

func (m *manual) writeLine(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

func (m *manual) writeSection(title string) { m.writeLine(".SH %q", strings.ToUpper(title)) }

// writeText writes a line of text in roff, which must not begin a macro.
func (m *manual) writeText(line string) {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	m.writeLine("%s", line)
}

// writeVerbatim writes text with its line breaks.
func (m *manual) writeVerbatim(text string) {
	m.writeLine(".nf")
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		m.writeText(escapeRoff(strings.TrimSuffix(line, "\n")))
	}
	m.writeLine(".fi")
}

// writeFlags writes a group of flags, each with its description.
func (m *manual) writeFlags(group *pflag.FlagSet) {
	if !group.HasAvailableFlags() {
		return
	}
	m.writeSection(group.Name())
	group.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		placeholder, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		m.writeLine(".TP")
		m.writeText(`\fB` + escapeRoff(name) + `\fR ` + `\fI` + escapeRoff(placeholder) + `\fR`)
		if f.DefValue != "" && f.NoOptDefVal == "" {
			usage += " (default " + f.DefValue + ")"
		}
		m.writeText(escapeRoff(usage))
	})
}

func (m *manual) seeAlso(cmd *cobra.Command) {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, escapeRoff(pageName(cmd.Parent()))+"(1)")
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			pages = append(pages, escapeRoff(pageName(sub))+"(1)")
		}
	}
	m.writeSection("See also")
	m.writeText(strings.Join(pages, ", "))
}

// escapeRoff escapes text for man pages.
func escapeRoff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "→", "->", "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~",
		`\(ti`).Replace(text)
}
