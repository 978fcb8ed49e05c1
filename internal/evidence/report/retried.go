// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// firstAttempt returns the first run of a record's command if there were two, or nil.
func firstAttempt(r proposal.Record) *proposal.Attempt {
	if r.Result == nil {
		return nil
	}
	return r.Result.Retried
}

// crashText describes a crash: "crashed under gVisor (node, SIGSEGV)". The caller must
// have escaped program.
func crashText(program, signal string) string {
	return fmt.Sprintf("%s (%s, %s)", describeCrash(signal), program, signal)
}

// crashed says that a signal ended a program. SIGABRT is its own act: gVisor sends none.
func describeCrash(signal string) string {
	if signal == "SIGABRT" {
		return "crashed"
	}
	return "crashed under gVisor"
}

// retriedItems describes the first run: how it ended, what it left behind, and the
// state that the second run started from.
func retriedItems(r proposal.Record, l detailLevel) []string {
	a := firstAttempt(r)
	if a == nil {
		return nil
	}
	_, words := describeOutcome(r)
	place := "in the workspace that the first run left"
	if r.Result.NewSandbox {
		place = "in a new sandbox, without files of the first run"
	}
	items := []string{fmt.Sprintf("<li>💥 %s, rerun: %s, %s. The rest of this section is about the second run.</li>",
		crashText(formatCode(a.Program, l.short), signalName(a.Crash)), words, place)}
	first := a.Result()
	_, words = describeEnding(first)
	s := "first run: " + words + " · " + wallTime(first)
	if first.Observations != nil {
		s += "; " + countPrograms(first.Observations.Counts.Execs) + " started"
	}
	if n := len(first.Changes.Files) + first.Changes.Omitted; n > 0 {
		s += fmt.Sprintf("; files changed in the sandbox's workspace: %d%s", n, changeText(first.Changes, l))
	}
	if len(first.Outputs) > 0 {
		s += "; output files:" + htmlList(first.Outputs, l.list,
			func(o proposal.Output) string { return outputFile(o, l) })
	}
	items = append(items, "<li>"+s+"</li>")
	return append(items, retriedOutput(first, l)...)
}

// retriedOutput shows the last output of the first run and where the rest is.
func retriedOutput(first proposal.Result, l detailLevel) []string {
	var items []string
	for _, one := range []struct {
		name string
		s    proposal.Stream
	}{{"stdout", first.Stdout}, {"stderr", first.Stderr}} {
		if one.s.Bytes == 0 {
			continue
		}
		item := fmt.Sprintf("<li>its %s, %s", one.name, text.Size(one.s.Bytes))
		if one.s.File != "" {
			item += ", in " + formatCode(path.Base(one.s.File), l.short)
		}
		if last := lastLine(one.s.Tail); last != "" {
			item += ", last line: " + formatCode(last, l.long)
		}
		items = append(items, item+"</li>")
	}
	return items
}

func lastLine(tail []byte) string {
	s := strings.TrimRight(string(tail), " \t\r\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// retriedPlain returns a line for a terminal.
func retriedPlain(r proposal.Record) []string {
	a := firstAttempt(r)
	if a == nil {
		return nil
	}
	first := r
	result := a.Result()
	first.Result = &result
	return []string{crashText(text.Inline(a.Program, 60), text.Inline(a.Crash, 20)) + ", rerun; the first run: " +
		plainOutcome(first)}
}

// retriedWarning is the warning that the outcome is that of a second run.
func retriedWarning(r proposal.Record) []string {
	a := firstAttempt(r)
	if a == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s was rerun because %s %s with %s: the results are those of the second run",
		quoteCode(r.Proposal.ID), quoteCode(a.Program), describeCrash(a.Crash), quoteCode(a.Crash))}
}
