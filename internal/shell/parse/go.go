// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"
)

// followGo follows "go tool test2json", which runs the program in its arguments.
func followGo(w *walker, _ int, args []arg, s scope, c call) {
	rest, ok := skipGoFlags(args[1:], "C")
	if !ok || len(rest) == 0 || rest[0].Value != "tool" {
		return // a word that is known only at run time is decided when go starts
	}
	rest, ok = skipGoFlags(rest[1:], "C", "modfile")
	if !ok || len(rest) == 0 || rest[0].Value != "test2json" {
		return
	}
	if rest, ok = skipGoFlags(rest[1:], "p"); !ok {
		w.addUnknown(unknownOption, args[0].span)
		return
	}
	if len(rest) > 0 {
		c.assigns, c.redirects = nil, stdinOnly(c.redirects)
		w.recordCommand(rest, s.inWrapper("go tool test2json"), c)
	}
}

// skipGoFlags skips the flags of a program that reads them as Go's package flag does. The values of
// valued may be in the next words. It fails at a flag that is known only at run time.
func skipGoFlags(args []arg, valued ...string) (rest []arg, ok bool) {
	for len(args) > 0 && strings.HasPrefix(args[0].Value, "-") && args[0].Value != "-" {
		if !args[0].Static || args[0].Value == "--" {
			return args[1:], args[0].Static
		}
		if slices.Contains(valued, strings.TrimLeft(args[0].Value, "-")) && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	return args, len(args) == 0 || args[0].Static
}
