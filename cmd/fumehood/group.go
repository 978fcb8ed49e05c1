// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/fumehood/fumehood/pkg/terminal"
)

// A group is a command that has commands: fumehood policy check.
type group struct {
	command  *command
	commands []*command // each named by the group's name and its own
	about    string     // what the help says below the list, or ""
}

// run runs the command that the first argument names.
func (g group) run(c *invocation) int {
	if len(c.Args) == 0 {
		g.help(c.Stderr)
		return exitUsage
	}
	name, args := c.Args[0], c.Args[1:]
	switch {
	case name == "help" && len(args) > 0:
		name, args = args[0], []string{"--help"}
	case slices.Contains([]string{"help", "-h", "-help", "--help"}, name):
		g.help(c.Stdout)
		return exitOK
	}
	for _, d := range g.commands {
		if d.name == g.command.name+" "+name {
			c.start(d, args)
			return d.run(c)
		}
	}
	fmt.Fprintf(c.Stderr, "fumehood: unknown command \"%s %s\"\nfumehood: hint: fumehood %[1]s --help lists the commands\n", g.command.name, terminal.Line(name))
	return exitUsage
}

func (g group) help(w io.Writer) {
	fmt.Fprintf(w, "%s\n\nusage: fumehood %s COMMAND [flags]\n\n", g.command.synopsis, g.command.name)
	own := len(g.command.name) + 1
	width := 0
	for _, d := range g.commands {
		width = max(width, len(d.name)-own)
	}
	for _, d := range g.commands {
		fmt.Fprintf(w, "  %-*s  %s\n", width, d.name[own:], d.synopsis)
	}
	fmt.Fprintf(w, "\n%sfumehood %s COMMAND --help says more about one command.\n", g.about, g.command.name)
}
