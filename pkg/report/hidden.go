// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// answering are programs whose exit code is an answer: that nothing was found, or that two files
// differ.
var answering = map[string]bool{
	"grep": true, "egrep": true, "fgrep": true, "zgrep": true, "rg": true, "ag": true, "diff": true, "cmp": true, "git": true,
	"test": true, "[": true, "expr": true, "which": true, "pgrep": true, "kill": true,
}

// hiddenFailure returns the first program that failed although r succeeded, because the shell hides
// its exit code: gVisor's kernel saw it end with another code than 0, and it wrote into a pipe, or
// the output of r names what failed. A shell has the exit code of the last program in a pipe.
func hiddenFailure(r proposal.Record) (program proposal.Program, hidden bool) {
	o := seen(r)
	if o == nil || kindOf(r) != succeeded || !r.Result.Succeeded() {
		return program, false
	}
	var failing []proposal.Program
	for _, p := range o.Programs {
		if p.Failed > 0 && !answering[p.Name] && !answering[path.Base(p.Path)] {
			failing = append(failing, p)
		}
	}
	if len(failing) == 0 {
		return program, false
	}
	for _, name := range pipeWriters(r.Analysis) {
		if i := slices.IndexFunc(failing, func(p proposal.Program) bool { return p.Name == name || path.Base(p.Path) == name }); i >= 0 {
			return failing[i], true
		}
	}
	if list := failure.Of(r.Result, failure.Options{}); len(list) > 0 && list[0].Level == failure.Error {
		return failing[0], true
	}
	return program, false
}

// hidesFailure reports whether hiddenFailure finds one.
func hidesFailure(r proposal.Record) bool {
	_, hidden := hiddenFailure(r)
	return hidden
}

// hiding is what the title says of a command that hides a failure.
const hiding = "hides a failure"

// pipeWriters names the programs whose output the text gives to another one.
func pipeWriters(a proposal.Analysis) (names []string) {
	for _, c := range a.Commands {
		if !slices.Contains(c.Inside, "pipeline") || c.Program == "" || c.Builtin || c.Function {
			continue
		}
		if len(c.Via) == 0 && followedByPipe(a, c) {
			names = append(names, path.Base(c.Program))
		}
	}
	return names
}

// followedByPipe reports whether a pipe is all that is between c and the next command.
func followedByPipe(a proposal.Analysis, c proposal.Command) bool {
	next := len(a.Canonical)
	for _, other := range a.Commands {
		if start := other.Span.Start; start >= c.Span.End && start < next {
			next = start
		}
	}
	if c.Span.End > next {
		return false
	}
	between := a.Canonical[c.Span.End:next]
	return strings.Contains(between, "|") && !strings.Contains(between, "||")
}

// hiddenWords says whose exit code is hidden, and how it is shown. quote quotes a name or a command.
func hiddenWords(r proposal.Record, p proposal.Program, quote func(string) string) string {
	s := fmt.Sprintf("%s ended with exit code %d, but the command with 0", quote(p.Name), p.ExitCode)
	if slices.Contains(pipeWriters(r.Analysis), p.Name) {
		return s + ", the exit code of the last program in its pipe; begin it with " + quote(pipefail) + " to have the failure counted"
	}
	return s + ", because its text ignores that"
}

// pipefail is the command that we advise.
const pipefail = "set -o pipefail"
