// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// describeEntry describes an entry in one line. The caller makes it fit.
func describeEntry(kind string, h journal.LogEvent) string {
	switch kind {
	case "run":
		return describeRun(*h.Run)
	case "decision":
		return describeDecision(h)
	case "start":
		if h.Again {
			return "rerun"
		}
	case "attempt":
		return describeResult(h.Attempt.Result()) + "; " + retryReason(h.Attempt)
	case "cached":
		return "from run " + h.Result.Cached.RunID() + ": " + describeResult(*h.Result)
	case "result":
		return describeResult(*h.Result)
	case "base":
		return "what failed runs on the base, too: commit " + h.Base
	case "transfer":
		return describeTransfer(*h.Transfer)
	case "end":
		t := h.Totals
		words := fmt.Sprintf("%d proposed: %d succeeded, %d failed%s, %d denied, %d waiting", t.Proposed, t.Succeeded,
			t.Failed, t.Others(), t.Denied, t.Asked)
		if h.Error != nil {
			words += "; stopped: " + h.Error.Code + ": " + h.Error.Message
		}
		return words
	}
	return ""
}

// describeTransfer describes a file of a session that went in or out.
func describeTransfer(t proposal.Transfer) string {
	switch {
	case t.Output.Refused != "":
		return t.Kind + " " + t.Output.Path + ": refused: " + t.Output.Refused
	case t.Kind == "pause", t.Kind == "resume":
		return t.Kind
	case t.Kind == "diff":
		return fmt.Sprintf("%s %s: %d files, %d bytes", t.Kind, cmp.Or(t.Output.Path, "."), t.Names, t.Output.Bytes)
	case t.Kind == "list":
		return fmt.Sprintf("%s %s: %d names", t.Kind, t.Output.Path, t.Names)
	}
	return fmt.Sprintf("%s %s: %d bytes", t.Kind, t.Output.Path, t.Output.Bytes)
}

func describeRun(r proposal.Run) string {
	words := r.Start.UTC().Format("2006-01-02 ") + r.ID
	for _, fact := range [][2]string{{"proposed by", r.Proposer}, {"repository", r.Repository}, {"commit", r.HeadSHA},
		{"policy", r.Policy}, {"mode", r.Mode}, {"network", r.NetworkMode()}} {
		if fact[1] != "" {
			words += ", " + fact[0] + " " + fact[1]
		}
	}
	if from := r.From; from != nil {
		words += ", begins with snapshot " + from.Snapshot + " of " + from.Run
	}
	return words
}

func describeDecision(h journal.LogEvent) string {
	words := h.Decision.Effect.String()
	if h.Approved {
		words += ", approved"
	}
	if len(h.Decision.Rules) > 0 && h.Decision.Effect != proposal.Allow {
		words += " by " + strings.Join(h.Decision.Rules, ", ")
	}
	if after := h.Proposal.Earlier.Words(); after != "" {
		words += ", " + after
	}
	text := h.Analysis.Own()
	if text == "" {
		text = h.Proposal.Run + h.Proposal.Code + strings.Join(h.Proposal.Argv, " ")
	}
	return words + ": " + strings.TrimSpace(text) + redactedWords(h.Redacted)
}

// redactedWords returns the number of redactions by rule.
func redactedWords(list []proposal.Redaction) string {
	var words []string
	for _, r := range list {
		words = append(words, fmt.Sprintf("%s (%d)", r.Rule, r.Count))
	}
	if words == nil {
		return ""
	}
	return "; redacted: " + strings.Join(words, ", ")
}

// retryReason returns why there is a second run.
func retryReason(a *proposal.Attempt) string {
	return a.Program + " crashed under gVisor (" + a.Crash + "): rerun"
}

func describeResult(r proposal.Result) string {
	words := r.Outcome()
	if r.FromLayer() {
		return words
	}
	if r.Limit != "" {
		words += ", limit " + r.Limit
	}
	words += " in " + (time.Duration(r.WallMS) * time.Millisecond).String()
	if l := r.Layer; l != nil {
		words += fmt.Sprintf("; left %s %.19s", l.Kind(), l.Digest)
	}
	if o := r.Observations; o != nil {
		words += fmt.Sprintf("; programs: %d started, %d refused", o.Counts.Execs, o.Counts.Refused)
		if o.Counts.Watched > 0 {
			words += fmt.Sprintf(", %d would have been refused", o.Counts.Watched)
		}
		words += trafficWords(o.Counts)
		if !o.Complete {
			words += "; INCOMPLETE RECORDING"
		}
		for _, f := range o.Findings {
			words += "; finding " + f.Rule + ": " + f.Message
		}
	}
	words += redactedWords(redaction.FindsIn(r))
	if r.Detail != "" {
		words += "; " + r.Detail
	}
	return words
}

// writeEvents writes the events of one batch, each with its own time.
func (t *timeline) writeEvents(e audit.Entry, h journal.LogEvent) error {
	for i, event := range h.Events {
		if t.JSON {
			err := t.writeObject(struct {
				Entry    int64          `json:"entry"`
				Time     time.Time      `json:"time"`
				Kind     string         `json:"kind"`
				ID       string         `json:"id"`
				Number   int64          `json:"number"` // in its command
				Unsigned bool           `json:"unsigned,omitempty"`
				Event    proposal.Event `json:"event"`
			}{e.N, event.Time, event.Kind, h.ID, h.First + int64(i), e.Unsigned, event})
			if err != nil {
				return err
			}
			continue
		}
		if !t.All && !observe.OfNote(event) {
			t.hidden++
			continue
		}
		if err := t.writeLine(event.Time, "  ", event.Kind, h.ID, eventWords(event)); err != nil {
			return err
		}
	}
	for _, more := range []struct {
		kind, words string
		n           int64
	}{{"files", "file", h.More}, {"network", "network", int64(h.Flows)}} {
		if more.n <= 0 || t.JSON {
			continue
		}
		if err := t.writeLine(e.Time, "  ", more.kind, h.ID,
			fmt.Sprintf("%d more %s events, counted but not logged", more.n, more.words)); err != nil {
			return err
		}
	}
	return nil
}

// eventWords describes what one process did, with its pid and its parent's.
func eventWords(e proposal.Event) string {
	if e.Flow != nil {
		return flowWords(e)
	}
	words := fmt.Sprintf("[%d<%d] ", e.Pid, e.Parent)
	switch {
	case e.Exec != nil:
		words += execWords(e)
	case e.Kind == proposal.EventExit:
		words += path.Base(e.Program) + " " + exitWords(syscall.WaitStatus(e.Status))
	default:
		words += path.Base(e.Program)
		if e.Kind == proposal.EventPrivilege {
			words += " " + e.Call
		}
		for _, part := range []string{e.Path, e.Target, e.Address} {
			if part != "" {
				words += " " + part
			}
		}
	}
	if e.Errno != "" {
		words += ": " + e.Errno
	}
	if e.Unverified {
		words += " (path as the process gave it)"
	}
	return words
}

func execWords(e proposal.Event) string {
	x := e.Exec
	quoted := make([]string, len(x.Argv))
	for i, word := range x.Argv {
		if quoted[i] = word; word == "" || strings.ContainsAny(word, " \t\n'\"\\") {
			quoted[i] = strconv.Quote(word)
		}
	}
	words := strings.Join(quoted, " ")
	if x.ArgvCut {
		words += " …"
	}
	words += " = " + x.Path
	if x.Loaded {
		words = path.Base(e.Program) + " loads " + x.Path
	}
	if x.Script != "" {
		words += " for " + x.Script
	}
	if x.Layer != proposal.LayerRootfs {
		words += " (" + x.Layer + ")"
	}
	if d := e.Decision; d != nil && (d.Effect != proposal.Allow || d.Observed) {
		words += " by " + ruleOf(*d)
		if d.Observed {
			words += " (observed only)"
		}
	}
	return words
}

// ruleOf returns the rule that refused a program, or would have.
func ruleOf(d proposal.ExecDecision) string {
	if d.Reason != nil && d.Reason.Rule != "" {
		return d.Reason.Rule
	}
	return strings.Join(d.Rules, ", ")
}

func exitWords(s syscall.WaitStatus) string {
	if s.Signaled() {
		return "killed by " + unix.SignalName(s.Signal())
	}
	return fmt.Sprintf("exit %d", s.ExitStatus())
}
