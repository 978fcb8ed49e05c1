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

// visible calls do for root and all commands below it that help lists.
func visible(root *cobra.Command, do func(*cobra.Command)) {
	walk(root, func(cmd *cobra.Command) {
		if cmd == root || cmd.IsAvailableCommand() && cmd.Name() != "help" {
			do(cmd)
		}
	})
}

// WriteManPages writes a page of the manual for each command below root to the directory
// dir: fumehood-policy-explain.1.
func WriteManPages(root *cobra.Command, dir, version string) (err error) {
	visible(root, func(cmd *cobra.Command) {
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
	m.line(".TH %q 1 \"\" %q %q", strings.ToUpper(pageName(cmd)), "fumehood "+version, "fumehood manual")
	m.section("Name")
	m.text(roff(pageName(cmd)) + ` \- ` + roff(cmd.Short))
	m.section("Synopsis")
	m.verbatim(usage(cmd))
	m.section("Description")
	m.verbatim(description(cmd))
	for _, g := range commandGroups(cmd) {
		m.section(g.title)
		m.verbatim(g.text)
	}
	for _, g := range FlagGroups(cmd) {
		m.flags(g)
	}
	if cmd.Example != "" {
		m.section("Examples")
		m.verbatim(cmd.Example)
	}
	m.seeAlso(cmd)
	return m.String()
}

// A manual is a page being written.
type manual struct{ strings.Builder }

func (m *manual) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

func (m *manual) section(title string) { m.line(".SH %q", strings.ToUpper(title)) }

// text writes a line of text in roff, which must not begin a macro.
func (m *manual) text(line string) {
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	m.line("%s", line)
}

// verbatim writes text with its line breaks.
func (m *manual) verbatim(text string) {
	m.line(".nf")
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		m.text(roff(strings.TrimSuffix(line, "\n")))
	}
	m.line(".fi")
}

// flags writes a group of flags, each with its description.
func (m *manual) flags(group *pflag.FlagSet) {
	if !group.HasAvailableFlags() {
		return
	}
	m.section(group.Name())
	group.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		placeholder, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		m.line(".TP")
		m.text(`\fB` + roff(name) + `\fR ` + `\fI` + roff(placeholder) + `\fR`)
		if f.DefValue != "" && f.NoOptDefVal == "" {
			usage += " (default " + f.DefValue + ")"
		}
		m.text(roff(usage))
	})
}

func (m *manual) seeAlso(cmd *cobra.Command) {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, roff(pageName(cmd.Parent()))+"(1)")
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			pages = append(pages, roff(pageName(sub))+"(1)")
		}
	}
	m.section("See also")
	m.text(strings.Join(pages, ", "))
}

// roff escapes text for man pages.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "→", "->", "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`).Replace(text)
}
