// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/pkg/terminal"
)

// renamed is the annotation of a flag that had another name in an earlier release.
const renamed = "fumehood-renamed-from"

// Renamed accepts the flag name under its old name for one release, with a warning.
func Renamed(f *pflag.FlagSet, old, name string) {
	if err := f.SetAnnotation(name, renamed, []string{old}); err != nil {
		panic("cli: internal error: " + err.Error())
	}
}

// modernize rewrites what earlier releases accepted, and prints a warning for it: long
// flags with one dash, and old names of flags. Values and arguments stay as they are.
func (c *Invocation) modernize(root *cobra.Command, args []string) []string {
	cmd := find(root, args)
	depth := len(strings.Fields(nameOf(cmd)))
	return append(args[:depth:depth], c.Modernize(cmd.Flags(), args[depth:], cmd.Annotations[textFirst] == "")...)
}

// textFirst is the annotation of a command that reads no flags after its first argument.
const textFirst = "fumehood-text-first"

// TextFirst makes cmd read no flags after its first argument: they belong to a command
// line that it is about.
func TextFirst(cmd *cobra.Command) {
	cmd.Flags().SetInterspersed(false)
	cmd.Annotations = map[string]string{textFirst: "true"}
}

// Modernize rewrites args, which follow the name of a command with the flags f. Unless
// mixed, the first argument that is not a flag ends the flags.
func (c *Invocation) Modernize(f *pflag.FlagSet, args []string, mixed bool) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" || !mixed && !isFlag(arg) {
			return append(out, args[i:]...)
		}
		flag, now := modern(f, arg)
		if now != arg {
			was, _, _ := strings.Cut(arg, "=")
			c.Warn(terminal.Line(was) + " is deprecated: use --" + flag.Name)
		}
		out = append(out, now)
		if takesNext(flag, now) && i+1 < len(args) {
			i++
			out = append(out, args[i])
		}
	}
	return out
}

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// takesNext reports whether the value of flag, given as arg, is the next argument.
func takesNext(flag *pflag.Flag, arg string) bool {
	return flag != nil && flag.NoOptDefVal == "" && !strings.Contains(arg, "=") && (strings.HasPrefix(arg, "--") || len(arg) == 2)
}

// modern returns the flag that arg gives, or nil, and arg as it is spelled today.
func modern(f *pflag.FlagSet, arg string) (*pflag.Flag, string) {
	if !isFlag(arg) {
		return nil, arg
	}
	name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if len(name) == 1 && !strings.HasPrefix(arg, "--") {
		return f.ShorthandLookup(name), arg
	}
	flag := lookup(f, name)
	if flag == nil || flag.Name == name && strings.HasPrefix(arg, "--") {
		return flag, arg
	}
	if given {
		return flag, "--" + flag.Name + "=" + value
	}
	return flag, "--" + flag.Name
}

// lookup finds a flag by its name, or its old name.
func lookup(f *pflag.FlagSet, name string) *pflag.Flag {
	found := f.Lookup(name)
	if found != nil {
		return found
	}
	f.VisitAll(func(flag *pflag.Flag) {
		for _, old := range flag.Annotations[renamed] {
			if old == name {
				found = flag
			}
		}
	})
	return found
}
