// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A progress tells a person what goes on, on a terminal only; in CI the report is
// enough, and a log full of progress lines hides it.
type progress struct {
	w     io.Writer
	on    bool
	steps bool // print the end of each step where on is false, too
}

func newProgress(w io.Writer) progress {
	return progress{w: w, on: isTerminal(w)}
}

func isTerminal(w io.Writer) bool {
	if p, ok := w.(*printer); ok {
		w = p.Writer
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// always tells of work that takes a minute, once: in CI as well.
func (p progress) always(text string) {
	fmt.Fprintf(p.w, "fumehood: %s\n", printable(text))
}

func (p progress) step(s hood.Step) {
	name := fmt.Sprintf("[%d/%d] %s", s.Number, s.Of, printable(s.Proposal))
	switch {
	case p.on && s.Result == nil:
		fmt.Fprintf(p.w, "\x1b[2mfumehood: %s …\x1b[0m\r", name)
	case p.on:
		fmt.Fprintf(p.w, "\x1b[K%s %s: %s\n", mark(s.Result), name, ended(s.Result))
	case p.steps && s.Result != nil:
		p.always(name + ": " + ended(s.Result))
	}
}

// ended says how a command ended, and after what time.
func ended(r *proposal.Result) string {
	return fmt.Sprintf("%s in %s%s", outcome(r), (time.Duration(r.WallMS) * time.Millisecond).Round(time.Millisecond), refusals(r))
}

// refusals says what a success may hide.
func refusals(r *proposal.Result) string {
	text := ""
	if a := r.Retried; a != nil {
		text = printable(fmt.Sprintf(", the second run: in the first %s crashed by %s", a.Program, a.Crash))
	}
	if r.Observations == nil {
		return text
	}
	c := r.Observations.Counts
	switch {
	case c.Refused == 1:
		text += ", 1 start of a program refused"
	case c.Refused > 1:
		text += fmt.Sprintf(", %d starts of programs refused", c.Refused)
	}
	if c.NetRefused > 0 {
		text += fmt.Sprintf(", the network refused %d×", c.NetRefused)
	}
	return text
}

func mark(r *proposal.Result) string {
	if r.Succeeded() {
		return "\x1b[32m✓\x1b[0m"
	}
	return "\x1b[31m✗\x1b[0m"
}

func outcome(r *proposal.Result) string {
	switch {
	case r.Status == proposal.Exited:
		return fmt.Sprintf("exit code %d", r.ExitCode)
	case r.Signal != "":
		return r.Signal
	}
	return r.Status.String()
}

// printable makes untrusted text fit for one line of a terminal or a CI log.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// shellWord is s as a shell reads it back, for a command line to copy.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("./_-:@%+,=", r)
	}) {
		return printable(s)
	}
	return "'" + strings.ReplaceAll(printable(s), "'", `'\''`) + "'"
}
