// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxShown is the maximum length of one shown part of an output, in displayed units.
const maxShown = 1 << 20

// A Printer shows a proposal's output to people as it comes, without what a terminal or a CI
// runner would interpret.
type Printer struct{ Out, Err io.Writer }

// PrintNote shows a line about the session.
func (p Printer) PrintNote(line string) {
	fmt.Fprintf(p.Err, "fumehood: %s\n", terminal.EscapeLine(line))
}

// PrintChunk shows a part of the output.
func (p Printer) PrintChunk(c proposal.Chunk) {
	to := p.Out
	if c.Stream == proposal.ChunkStderr {
		to = p.Err
	}
	if c.Dropped > 0 {
		p.PrintNote(fmt.Sprintf("%s: %d bytes are not shown; the copy among the artifacts has them", c.Stream,
			c.Dropped))
	}
	if c.Display != nil {
		writeExcerpt(to, displayText(*c.Display))
	}
	writeExcerpt(to, string(c.Data))
	if c.Withheld != "" {
		p.PrintNote(c.Stream + " is withheld: " + c.Withheld)
	}
}

func writeExcerpt(w io.Writer, s string) {
	// the command's printer keeps the error
	_, _ = io.WriteString(w, text.Excerpt([]byte(s), nil, int64(len(s)), maxShown).Text)
}

// textForms are the forms of a display that people read, the best first.
var textForms = []string{"text/plain", "text/markdown", "application/json", "text/html", "image/svg+xml"}

func displayText(d proposal.Display) string {
	for _, mime := range textForms {
		if form := d.Forms[mime]; form != "" {
			return form + "\n"
		}
	}
	var list []string
	for mime, form := range d.Forms {
		list = append(list, fmt.Sprintf("%s, %s as base64", mime, text.Size(int64(len(form)))))
	}
	return strings.Join(list, "; ") + "\n"
}

// PrintRecord shows how a proposal ended, unless it succeeded.
func (p Printer) PrintRecord(r proposal.Record) {
	if !r.Runnable() {
		report.Decision(p.Err, r)
		return
	}
	if r.Result != nil && r.Result.Succeeded() && r.Result.Detail != "" {
		p.PrintNote(r.Result.Detail)
	}
	if r.Result == nil || r.Result.Succeeded() {
		return
	}
	if e := r.Result.Exception; e != nil {
		writeExcerpt(p.Err, cmp.Or(e.Traceback, e.Name+": "+e.Value))
	}
	words := r.Proposal.ID + ": " + r.Result.Outcome()
	for _, more := range []string{r.Result.Limit, r.Result.Detail} {
		if more != "" {
			words += ", " + more
		}
	}
	p.PrintNote(words)
	if r.Cause != nil {
		p.PrintNote("could not run: " + r.Cause.Reason)
	}
}

// WriteDiff shows a Diff: the patch, and what it lacks.
func WriteDiff(w io.Writer, d proposal.Diff) {
	for _, f := range d.Files {
		writeExcerpt(w, f.Text)
		if f.Note != "" && !strings.HasSuffix(f.Text, "# "+f.Note+"\n") {
			fmt.Fprintf(w, "# %s: %s\n", terminal.EscapeLine(f.Path), terminal.EscapeLine(f.Note))
		}
	}
	if d.Omitted > 0 {
		fmt.Fprintf(w, "# %d more paths changed\n", d.Omitted)
	}
}

// WriteFiles shows the answer of a command about files: a list, or one file.
func WriteFiles(w io.Writer, answer any) error {
	list, is := answer.(proposal.Changes)
	if !is {
		return nil
	}
	for _, f := range list.Files {
		if _, err := fmt.Fprintf(w, "%-7s %10d  %s\n", f.Type, f.Bytes, terminal.EscapeLine(f.Path)); err != nil {
			return err
		}
	}
	if list.Omitted > 0 {
		_, err := fmt.Fprintf(w, "and %d more\n", list.Omitted)
		return err
	}
	return nil
}

// WriteList shows sessions, one a line.
func WriteList(w io.Writer, list []Info) error {
	for _, s := range list {
		state := fmt.Sprintf("%d proposals, %d running", s.Proposals, s.Running)
		if s.Killed {
			state = "killed"
		}
		if _, err := fmt.Fprintf(w, "%-12s %s  %s  %s\n", s.Name, s.Started.UTC().Format("2006-01-02 15:04:05"), state,
			terminal.EscapeLine(s.Log)); err != nil {
			return err
		}
	}
	return nil
}

// WriteEnded shows a summary of a session.
func WriteEnded(w io.Writer, e Ended) error {
	t := e.Totals
	_, err := fmt.Fprintf(w, "session %s has ended: %d proposed, %d denied, %d need approval, %d succeeded, %d failed%s\nlog: %s\nkey: %s\n",
		e.Name, t.Proposed, t.Denied, t.Asked, t.Succeeded, t.Failed, t.Others(), terminal.EscapeLine(e.Log), e.Key)
	if err == nil && e.Error != nil {
		_, err = fmt.Fprintf(w, "stopped: %s: %s\n", e.Error.Code, terminal.EscapeLine(e.Error.Message))
	}
	return err
}
