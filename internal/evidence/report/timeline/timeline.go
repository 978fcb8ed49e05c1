// SPDX-License-Identifier: Apache-2.0

// Package timeline shows what happened in a run, in order, from its audit log.
//
// For people it writes one line per event. Names and output of programs cannot break a
// line, and no line contains hidden characters or a workflow command. As JSON it writes
// one object per line with exactly what was logged. In both forms the log is verified
// first, and the result of the verification comes last.
package timeline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options select what is shown. The zero value shows the notable events of every proposal,
// for people.
type Options struct {
	ID   string // show only this proposal; "" for all
	All  bool   // minor events, too
	JSON bool
}

// A timeline writes a log's entries, one line per event.
type timeline struct {
	Options
	w      *bufio.Writer
	add    func(report.LogLine) // in place of w, unless nil
	hidden int                  // number of events left out
	ids    []string             // of proposals, at most maxIDs
	hasID  bool                 // an entry is of Options.ID
}

// maxIDs is the maximum number of ids that an error lists.
const maxIDs = 20

// Write verifies log and writes its events to w. If the log does not verify, the entries
// before its first fault are shown, and the Finding has the fault. The error is that of
// reading log again, or of w, or that no entry is of Options.ID.
func Write(w io.Writer, log io.ReadSeeker, trust audit.Trust, o Options) (audit.Finding, error) {
	return (&timeline{Options: o, w: bufio.NewWriter(w)}).writeLog(log, trust)
}

func (t *timeline) writeLog(log io.ReadSeeker, trust audit.Trust) (audit.Finding, error) {
	found := audit.Inspect(log, trust)
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return found, audit.Unreadable("the log", err)
	}
	if found.Fault != nil && !t.JSON {
		fmt.Fprintln(t.w, "THIS LOG DOES NOT VERIFY. Entries before the first fault, then the fault:")
	}
	again, err := audit.Scan(log, trust, t.writeEntry)
	var fault *audit.VerifyError
	if err != nil && !errors.As(err, &fault) {
		return found, err // w
	}
	if found.Fault == nil && (err != nil || again != found.Summary) {
		found.Fault, found.State = errors.New("the log changed while it was read"), audit.Broken
	}
	return found, errors.Join(t.writeFinding(found), t.w.Flush(), t.checkID())
}

// checkID returns an error that lists the ids that the log has, if it does not have Options.ID.
func (t *timeline) checkID() error {
	if t.ID == "" || t.hasID {
		return nil
	}
	hint := "the log has no proposals"
	if len(t.ids) > 0 {
		hint = "use one of " + terminal.EscapePart(strings.Join(t.ids, ", "), 400)
	}
	return &proposal.StopError{Code: "audit.no-entry",
		Message: fmt.Sprintf("the log has no proposal with the id %q", t.ID), Hint: hint}
}

// maxLines is the maximum number of lines of a page.
const maxLines = 5000

// Web returns what a page shows of the log called name: its events, and the result of
// verifying it with the key and the checkpoint of r.
func Web(name string, r proposal.Report) (w report.Web, found audit.Finding, err error) {
	log, err := audit.OpenFile(name)
	if err != nil {
		return w, found, err
	}
	defer log.Close()
	var trust audit.Trust
	if r.Audit != nil {
		trust = audit.Trust{Key: r.Audit.Key, Checkpoint: r.Audit.Checkpoint}
	}
	w.Log, w.LogOmitted, found, err = firstLines(log, trust, maxLines)
	w.Verdict, w.Verified = found.String(), found.Complete()
	return w, found, err
}

// firstLines is Write for a page: it returns the first lines, at most max of them, and the number
// of events that are left out.
func firstLines(
	log io.ReadSeeker, trust audit.Trust, max int,
) (list []report.LogLine, omitted int, found audit.Finding, err error) {
	t := &timeline{w: bufio.NewWriter(io.Discard), add: func(l report.LogLine) {
		if len(list) < max {
			list = append(list, l)
		} else {
			omitted++
		}
	}}
	found, err = t.writeLog(log, trust)
	return list, omitted + t.hidden, found, err
}

// writeFinding writes the end.
func (t *timeline) writeFinding(f audit.Finding) error {
	if t.JSON {
		return t.writeObject(struct {
			Kind    string        `json:"kind"`
			Verdict audit.Summary `json:"verdict"`
			Error   string        `json:"error,omitempty"`
		}{"verdict", f.Summary, f.Message()})
	}
	if t.hidden > 0 {
		fmt.Fprintf(t.w, "%s not shown: use --all\n", countEvents(t.hidden))
	}
	_, err := fmt.Fprintln(t.w, terminal.EscapeLine(f.String()))
	return err
}

func countEvents(n int) string {
	if n == 1 {
		return "1 minor event"
	}
	return fmt.Sprintf("%d minor events", n)
}

// writeEntry writes one entry of the log.
func (t *timeline) writeEntry(e audit.Entry) error {
	h, err := journal.Entry{Kind: e.Kind, Body: e.Body}.Decode()
	if h.ID != "" && len(t.ids) < maxIDs && !slices.Contains(t.ids, h.ID) {
		t.ids = append(t.ids, h.ID)
	}
	if t.ID != "" && h.ID != t.ID {
		return nil
	}
	t.hasID = true
	if err == nil && e.Kind == "events" {
		return t.writeEvents(e, h)
	}
	if t.JSON {
		return t.writeObject(struct {
			Entry    int64           `json:"entry"`
			Time     time.Time       `json:"time"`
			Kind     string          `json:"kind"`
			ID       string          `json:"id,omitempty"`
			Unsigned bool            `json:"unsigned,omitempty"`
			Body     json.RawMessage `json:"body"`
		}{e.N, e.Time, e.Kind, h.ID, e.Unsigned, e.Body})
	}
	words := fmt.Sprintf("%d bytes in a format unknown to this version", len(e.Body))
	if err == nil {
		words = describeEntry(e.Kind, h)
	}
	if e.Unsigned {
		words += " (unsigned: this proves nothing)"
	}
	return t.writeLine(e.Time, "", e.Kind, h.ID, words)
}

// writeObject writes v as one line of JSON without hidden characters.
func (t *timeline) writeObject(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = t.w.Write(append(text.EscapeJSON(data), '\n'))
	return err
}

// writeLine writes one line for a person.
func (t *timeline) writeLine(at time.Time, indent, kind, id, words string) error {
	if t.add != nil {
		t.add(report.LogLine{Time: at, Kind: kind, ID: id, Words: words})
		return nil
	}
	line := fmt.Sprintf("%s  %s%-*s %-8s %s", at.UTC().Format("15:04:05.000"), indent, 12-len(indent),
		terminal.EscapePart(kind, 20), terminal.EscapePart(id, 64), terminal.EscapePart(words, 400))
	_, err := t.w.WriteString(strings.TrimRight(line, " ") + "\n")
	return err
}
