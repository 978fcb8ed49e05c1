// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// answers has the programs whose exit code may be an answer, such as that nothing was found or that two
// files differ, with the highest such code.
var answers = map[string]int{
	"grep": 1, "egrep": 1, "fgrep": 1, "zgrep": 1, "rg": 1, "ag": 1, "git": 1, "diff": 1, "cmp": 1, "comm": 1, "test": 1, "[": 1, "expr": 1,
	"which": 2, "type": 1, "pgrep": 1, "pkill": 1, "kill": 1, "jq": 1, "awk": 1, "gawk": 1, "mawk": 1, "sort": 1, "make": 1, "getent": 2, "id": 1,
	"ls": 2, "cat": 1, "head": 1, "tail": 1, "wc": 1, "stat": 1, "file": 1, "find": 1, "fd": 1, "du": 1, "readlink": 1, "realpath": 1, "nm": 1, "tree": 2, "ps": 1,
	"rm": 1, "mkdir": 1, "rmdir": 1, "xargs": 123,
}

// brokenPipe is what a program prints that writes into a pipe whose reader has ended, as head does.
var brokenPipe = [][]byte{[]byte("BrokenPipeError"), []byte("Broken pipe"), []byte("EPIPE"), []byte("write error")}

// pipeSignal is the exit code of a program that was ended by SIGPIPE.
const pipeSignal = 128 + 13

// A hiddenFailure is a program that failed although its command has exit code 0.
type hiddenFailure struct {
	program proposal.Program
	piped   bool // into another program, whose exit code the pipe has
}

// findHidden returns the first program that failed although r succeeded, because its text ignores the exit
// code: gVisor's kernel saw the text's own shell start it and saw it fail, and the code is no answer. If
// the text mentions the failure, as in || echo failed, or names the program only when it runs and tests
// no other, the output must name what failed, too.
func findHidden(r proposal.Record) (h hiddenFailure, found bool) {
	o := observationsOf(r)
	if o == nil || kindOf(r) != succeeded || !r.Result.Succeeded() {
		return h, false
	}
	var failed []proposal.Program
	for _, p := range o.Programs {
		if p.Failed > 0 && p.ExitCode != pipeSignal && p.ExitCode > answers[p.Name] {
			failed = append(failed, p)
		}
	}
	if len(failed) == 0 {
		return h, false
	}
	uses := parse.ExitUses(r.Analysis.Own())
	tests := slices.Contains(slices.Collect(maps.Values(uses)), parse.Tested)
	for _, p := range failed {
		switch use, known := uses[p.Name]; {
		case known && use == parse.Tested, !known && tests:
		case !known, use == parse.Mentioned:
			if h.program.Name == "" {
				h.program = p
			}
		case use == parse.Piped && endsEarly(r):
		default:
			return hiddenFailure{p, use == parse.Piped}, true
		}
	}
	if h.program.Name == "" {
		return h, false
	}
	list := failure.CauseReports(r.Result, failure.Options{})
	return h, len(list) > 0 && list[0].Level == failure.Error
}

// endsEarly reports whether a program of r says that the reader of its pipe has ended.
func endsEarly(r proposal.Record) bool {
	return slices.ContainsFunc(brokenPipe, func(words []byte) bool {
		return bytes.Contains(r.Result.Stderr.Head, words) || bytes.Contains(r.Result.Stderr.Tail, words)
	})
}

// hidesFailure reports whether findHidden finds one.
func hidesFailure(r proposal.Record) bool {
	_, found := findHidden(r)
	return found
}

// hiding is what the title says of a command that hides a failure.
const hiding = "hides a failure"

// pipefail is the command that we advise.
const pipefail = "set -o pipefail"

// words says whose exit code is hidden, and how it is shown. quote quotes a name or a command.
func (h hiddenFailure) describeExit(quote func(string) string) string {
	s := fmt.Sprintf("%s ended with exit code %d, but the command with 0", quote(h.program.Name), h.program.ExitCode)
	if h.piped {
		return s + ", the exit code of the last program in its pipe; begin it with " + quote(pipefail) +
			" to have the failure counted"
	}
	return s + ", because its text ignores that"
}
