// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/fumehood/fumehood/pkg/terminal"
)

// A family is a door behind which there are others: fumehood policy check.
type family struct {
	door  *door
	doors []*door // each named by the family's name and its own
	about string  // what the help says below the list, or ""
}

// run opens the door that the first argument names.
func (f family) run(c *call) int {
	if len(c.args) == 0 {
		f.help(c.stderr)
		return exitUsage
	}
	name, args := c.args[0], c.args[1:]
	switch {
	case name == "help" && len(args) > 0:
		name, args = args[0], []string{"--help"}
	case slices.Contains([]string{"help", "-h", "-help", "--help"}, name):
		f.help(c.stdout)
		return exitOK
	}
	for _, d := range f.doors {
		if d.name == f.door.name+" "+name {
			c.door, c.args = d, args
			return d.run(c)
		}
	}
	fmt.Fprintf(c.stderr, "fumehood: unknown command \"%s %s\"\nfumehood: hint: fumehood %[1]s --help lists the commands\n", f.door.name, terminal.Line(name))
	return exitUsage
}

func (f family) help(w io.Writer) {
	fmt.Fprintf(w, "%s\n\nusage: fumehood %s COMMAND [flags]\n\n", f.door.synopsis, f.door.name)
	own := len(f.door.name) + 1
	width := 0
	for _, d := range f.doors {
		width = max(width, len(d.name)-own)
	}
	for _, d := range f.doors {
		fmt.Fprintf(w, "  %-*s  %s\n", width, d.name[own:], d.synopsis)
	}
	fmt.Fprintf(w, "\n%sfumehood %s COMMAND --help says more about one command.\n", f.about, f.door.name)
}
