// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The reasons of events.
const (
	reasonProgram    = "ProgramRefused"
	reasonConnection = "ConnectionRefused"
	reasonGate       = "GateFailed"
	reasonLog        = "LogIncomplete"
)

// longest is how long an event's message may be, in bytes: the API server takes 1,024.
const longest = 1000

type message struct{ reason, text string }

// messages returns what is shown of an entry.
func messages(e journal.LogEvent) (list []message) {
	for _, x := range e.Events {
		switch {
		case x.Kind == proposal.EventRefused && x.Exec != nil:
			list = append(list, message{reasonProgram, refusedProgram(x)})
		case x.Flow != nil && x.Flow.Refused():
			list = append(list, message{reasonConnection, refusedFlow(*x.Flow)})
		}
	}
	if e.Totals != nil && e.Error != nil {
		list = append(list, message{reasonGate, bounded(e.Error.Code + ": " + e.Error.Message)})
	}
	return list
}

func refusedProgram(e proposal.Event) string {
	text := "policy refused a program that " + quoted(e.Program) + " started: " + quoted(strings.Join(e.Exec.Argv, " "))
	if e.Exec.Loaded {
		text = "policy refused code that " + quoted(e.Program) + " loaded: " + quoted(e.Exec.Path)
	}
	if d := e.Decision; d != nil && d.Reason != nil {
		text += ": " + d.Reason.Message + " (" + d.Reason.Rule + ")"
	}
	return bounded(text)
}

func refusedFlow(f proposal.Flow) string {
	text := "the gateway refused " + quoted(f.Egress.Destination())
	if r := f.Decision.Reason; r != nil {
		text += ": " + r.Message + " (" + r.Rule + ")"
	} else if f.Code != "" {
		text += ": " + f.Code
	}
	return bounded(text)
}

// quoted returns s without anything that changes how text is shown, and not long.
func quoted(s string) string { return fmt.Sprintf("%+q", export.TruncateText(s, 200)) }

// bounded returns a message that can be shown.
func bounded(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return export.TruncateText(s, longest)
}
