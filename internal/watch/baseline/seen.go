// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

var (
	// partReaders are programs that may print only a part of what they read from a pipe, so that a new failure is
	// missing beside an old one.
	partReaders = []string{"awk", "busybox", "cmp", "column", "comm", "cut", "diff", "egrep", "fgrep", "gawk", "grep",
		"head", "jq", "less", "mapfile", "mawk", "md5sum", "more", "node",
		"paste", "perl", "php", "python", "python3", "read", "readarray", "rg", "ruby", "sed", "sha256sum", "sort", "tail", "toybox", "tr", "uniq", "wc", "xargs", "yq"}
	dataWriters = []string{"cat", "echo", "printf"}
	// noCheck are programs whose own errors say nothing about the code.
	noCheck = []string{"[", "[[", ":", "cd", "command", "echo", "hash", "kill", "mkdir", "printf", "rm", "test", "type",
		"wait", "which"}
)

// whyUnseen returns why the output of r, a failure, may not show everything that failed, or "". isNamed says
// that failing tests are named here and on the base: a formatter behind a pipe shows them.
func whyUnseen(r proposal.Record, isNamed bool) string {
	isSilent := r.Result.Stdout.Bytes == 0 && r.Result.Stderr.Bytes == 0
	for i, c := range r.Analysis.Commands {
		name := path.Base(c.Program)
		switch {
		case i > 0 && c.StdinFrom == "pipe" && givesData(r.Analysis.Commands[i-1]):
		case c.StdinFrom == "pipe" && slices.Contains(partReaders, name):
			return "only a part of its output is seen: it goes through " + name
		case isNamed:
		case c.StdinFrom == "pipe" && !printsWhole(c):
			return "only what another program makes of its output is seen, and that names no failing test"
		case hidesErrors(c) && !slices.Contains(noCheck, name):
			return "its error output goes to a file"
		case isSilent && slices.Contains(c.Inside, "substitution"):
			return "it prints nothing, and the output of its substitution is not seen"
		}
	}
	return ""
}

// printsWhole reports whether c prints all that it reads from a pipe: tee, or cat without the name of a file.
func printsWhole(c proposal.Command) bool {
	isFile := func(w proposal.Word) bool { return !w.Static || !strings.HasPrefix(w.Value, "-") }
	return path.Base(c.Program) == "tee" ||
		path.Base(c.Program) == "cat" && !slices.ContainsFunc(c.Args[min(1, len(c.Args)):], isFile)
}

// givesData reports whether c begins a pipe with nothing but data, as in echo x | ./program.
func givesData(c proposal.Command) bool {
	return c.StdinFrom == "" && len(c.Via) == 0 && slices.Contains(dataWriters, c.Program) && len(c.Inside) > 0 &&
		c.Inside[len(c.Inside)-1] == "pipeline"
}

// hidesErrors reports whether the error output of c goes to a file, such as /dev/null, or what it
// prints to a process substitution.
func hidesErrors(c proposal.Command) bool {
	toFile, toOutput := false, false
	for _, r := range c.Redirects {
		switch {
		case strings.HasPrefix(r.Op, "<"):
		case r.Kind == "process", strings.HasPrefix(r.Op, "&>"), r.Kind == "write" && r.FD == 2:
			return true
		case r.Kind == "dup" && r.FD == 2:
			toOutput = true
		case r.Kind == "write" && r.FD == 1:
			toFile = true
		}
	}
	return toFile && toOutput
}
