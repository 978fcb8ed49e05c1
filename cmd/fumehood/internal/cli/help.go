// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// width is that of help. It does not depend on the terminal, so that it is the same
// everywhere.
const width = 100

// HelpText returns the help of cmd.
func HelpText(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(title, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s\n", title, text)
		}
	}
	b.WriteString(describeCommand(cmd) + "\n")
	section("Usage", indentLines(usageLines(cmd)))
	section("Examples", cmd.Example)
	for _, g := range commandGroups(cmd) {
		section(g.title, g.text)
	}
	for _, g := range FlagGroups(cmd) {
		section(g.Name(), flagUsages(g, width))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nRun '%s COMMAND --help' for the help of a command.\n", cmd.CommandPath())
	}
	return b.String()
}

func describeCommand(cmd *cobra.Command) string {
	if cmd.Long == "" {
		return cmd.Short + "."
	}
	return strings.TrimSpace(cmd.Long)
}

// usageLines is the line, or lines, of how the command is called.
func usageLines(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " COMMAND [flags]"
	}
	_, args, _ := strings.Cut(cmd.Use, " ")
	lines := strings.Split(args, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(cmd.CommandPath() + " " + strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

type section struct{ title, text string }

// commandGroups lists the commands below cmd by their groups.
func commandGroups(cmd *cobra.Command) (groups []section) {
	titles := map[string]string{"": "Commands"}
	order := []string{}
	for _, g := range cmd.Groups() {
		titles[g.ID], titles[""] = g.Title, "Other commands"
		order = append(order, g.ID)
	}
	for _, id := range append(order, "") {
		if text := commandList(cmd, id); text != "" {
			groups = append(groups, section{titles[id], text})
		}
	}
	return groups
}

func commandList(cmd *cobra.Command, group string) string {
	var b strings.Builder
	for _, sub := range cmd.Commands() {
		if sub.GroupID == group && sub.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-*s  %s\n", cmd.NamePadding(), sub.Name(), sub.Short)
		}
	}
	return b.String()
}

// FlagGroups returns the flags of cmd that help shows, by their titles: those of the
// command alone first.
func FlagGroups(cmd *cobra.Command) (groups []*pflag.FlagSet) {
	own := pflag.NewFlagSet("Flags", pflag.ContinueOnError)
	groups = append(groups, own)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		title := cmp.Or(TitleOf(f), own.Name())
		i := slices.IndexFunc(groups, func(g *pflag.FlagSet) bool { return g.Name() == title })
		if i < 0 {
			i = len(groups)
			groups = append(groups, pflag.NewFlagSet(title, pflag.ContinueOnError))
		}
		groups[i].SortFlags = false
		groups[i].AddFlag(f)
	})
	return groups
}

// flagUsages returns the help of flags. A switch is printed by its name alone; pflag adds
// the values that it can be given.
func flagUsages(f *pflag.FlagSet, width int) string {
	const values = "[=true|false]"
	return strings.ReplaceAll(f.FlagUsagesWrapped(width), values, strings.Repeat(" ", len(values)))
}
