// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/journal"
)

func showDoor() *door {
	return &door{
		name:     "show",
		synopsis: "tell what happened in a run, in order, from its audit log",
		usage: `LOG [flags]

Times are UTC. Programs that ended well, files below the workspace, HOME and /tmp,
and what is done by habit and comes to nothing are left out unless --all is given. With --json each line is one object: an
entry, or one event of an entry; the last one is the verdict.

exit codes: 0 whole and sealed, 1 changed, cut off or not sealed, 3 cannot be read

examples:
  fumehood show audit.jsonl
  fumehood show audit.jsonl --id unit --all
  fumehood show audit.jsonl --json | jq 'select(.kind == "refused")'
`,
		run: showLog,
	}
}

// A timeline writes a log's entries, one line a thing.
type timeline struct {
	w      *bufio.Writer
	id     string // of the only proposal that is shown; "" for all
	all    bool
	json   bool
	hidden int // events that were left out
}

func showLog(c *call) int {
	var trust audit.Trust
	t := &timeline{w: bufio.NewWriter(c.stdout)}
	f := c.flags()
	f.StringVar(&trust.Key, "key", "", "verifier key that the log must be signed with, from the report")
	f.StringVar(&t.id, "id", "", "show one proposal only")
	f.BoolVar(&t.all, "all", false, "show every event")
	f.BoolVar(&t.json, "json", false, "print JSON, one object a line")
	path, code, ok := c.parseOne(f, "a log")
	if !ok {
		return code
	}
	log, err := os.Open(path)
	if err != nil {
		return c.stopped(unreadable(path, err))
	}
	defer log.Close()
	return c.tell(t, log, trust)
}

// tell verifies first, because a reader believes what stands above a verdict.
func (c *call) tell(t *timeline, log io.ReadSeeker, trust audit.Trust) int {
	summary, wrong := audit.Verify(log, trust)
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return c.stopped(unreadable("the log", err))
	}
	if wrong != nil && !t.json {
		fmt.Fprintln(t.w, "THIS LOG DOES NOT VERIFY. What stands before its first fault, and what the fault is:")
	}
	again, err := audit.Scan(log, trust, t.entry)
	var verdict *audit.VerifyError
	if err != nil && !errors.As(err, &verdict) {
		return c.stopped(err) // our own output cannot be written
	}
	if wrong == nil && (err != nil || again != summary) {
		wrong = errors.New("the log changed while it was read")
		summary.State = audit.Broken
	}
	if !t.json && t.hidden > 0 {
		fmt.Fprintf(t.w, "%s of little note are not shown: --all\n", events(t.hidden))
	}
	return c.showVerdict(t, summary, wrong)
}

func events(n int) string {
	if n == 1 {
		return "1 event"
	}
	return fmt.Sprintf("%d events", n)
}

func (c *call) showVerdict(t *timeline, summary audit.Summary, wrong error) int {
	out := *c
	out.stdout = t.w
	if t.json {
		v := struct {
			Kind    string        `json:"kind"`
			Verdict audit.Summary `json:"verdict"`
			Error   string        `json:"error,omitempty"`
		}{Kind: "verdict", Verdict: summary}
		if wrong != nil {
			v.Error = wrong.Error()
		}
		if err := t.object(v); err != nil {
			return c.stopped(err)
		}
		out.stdout = io.Discard
	}
	code := out.printVerdict(summary, wrong, false)
	if err := t.w.Flush(); err != nil {
		return c.stopped(err)
	}
	return code
}

// entry tells one entry of the log.
func (t *timeline) entry(e audit.Entry) error {
	h, err := journal.Entry{Kind: e.Kind, Body: e.Body}.Decode()
	if t.id != "" && h.ID != t.id {
		return nil
	}
	if err == nil && e.Kind == "events" {
		return t.events(e, h)
	}
	if t.json {
		return t.object(struct {
			Entry    int64           `json:"entry"`
			Time     time.Time       `json:"time"`
			Kind     string          `json:"kind"`
			ID       string          `json:"id,omitempty"`
			Unsigned bool            `json:"unsigned,omitempty"`
			Body     json.RawMessage `json:"body"`
		}{e.N, e.Time, e.Kind, h.ID, e.Unsigned, e.Body})
	}
	words := fmt.Sprintf("%d bytes that this version does not know", len(e.Body))
	if err == nil {
		words = happened(e.Kind, h)
	}
	if e.Unsigned {
		words += " (unsigned: this proves nothing)"
	}
	return t.line(e.Time, "", e.Kind, h.ID, words)
}

// object writes v as one line of JSON in which nothing is hidden.
func (t *timeline) object(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	before := ""
	for _, r := range string(data) {
		switch {
		case r > 0xffff && !unicode.IsPrint(r):
			r -= 0x10000
			fmt.Fprintf(t.w, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case !unicode.IsPrint(r), r == '[' && before == "##": // a workflow command to a runner
			fmt.Fprintf(t.w, `\u%04x`, r)
		default:
			_, _ = t.w.WriteRune(r)
		}
		before = last(before+string(r), 2)
	}
	return t.w.WriteByte('\n')
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

// line writes one line for a person.
func (t *timeline) line(at time.Time, indent, kind, id, words string) error {
	line := fmt.Sprintf("%s  %s%-*s %-8s %s", at.UTC().Format("15:04:05.000"), indent, 12-len(indent), shown(kind, 20), shown(id, 64), shown(words, 400))
	_, err := t.w.WriteString(strings.TrimRight(line, " ") + "\n")
	return err
}

// shown makes untrusted text fit for a part of a line, at most most characters.
func shown(text string, most int) string {
	text = strings.ReplaceAll(printable(cutRunes(text, most)), "##[", "## [")
	return cutRunes(text, most)
}

func cutRunes(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "…"
		}
	}
	return text
}
