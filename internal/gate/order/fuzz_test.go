// SPDX-License-Identifier: Apache-2.0

package order

import (
	"encoding/json"
	"testing"

	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func seeds(f *testing.F) {
	script := started(3, 2, "/usr/bin/dash", "sh", "./run.sh")
	script.Exec.Script = "/workspace/run.sh"
	attempt, raw, connect := event(proposal.EventPrivilege, ""), event(proposal.EventConnect, ""), event(proposal.EventConnect, "")
	attempt.Call, attempt.Errno = "mount", "EPERM"
	raw.Address, connect.Address = "tcp 192.0.2.1:1", "tcp 198.18.0.5:443"
	get := reached(proposal.EventRequest, "go.example", "")
	get.Flow.Egress.Method, get.Flow.Egress.Path, get.Flow.Sent, get.Flow.Received = "GET", "/\u202e", 1<<62, -1
	lookup := reached(proposal.EventLookup, "evil.example", "r")
	lookup.Program, lookup.Flow.Inside = "", "::1"
	for _, list := range [][]proposal.Event{
		nil, {started(2, 1, "/usr/bin/bash", "bash", "-c", "x"), script, refusal(4, 3, "/usr/bin/curl", "exec.net"), exited(3, 11)},
		{event(proposal.EventWrite, "/etc/passwd"), event(proposal.EventWrite, "/tmp/\xff\u202e"), attempt, raw},
		{connect, get, lookup, {Kind: proposal.EventDatagram}},
		{{Command: "a", Kind: proposal.EventExec, Pid: -1}, {Kind: "\x00", Status: -1 << 31}},
	} {
		data, err := json.Marshal(list)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// FuzzCompareLog gives an untrusted log to the comparison: whatever it contains, what
// the report says otherwise is found.
func FuzzCompareLog(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := proposal.Record{Proposal: proposal.Proposal{ID: "a"}, Decision: proposal.Decision{Effect: proposal.Allow}, Result: &proposal.Result{Status: proposal.Exited}}
		reported := observe.RecountEvents([]journal.Events{{Events: []proposal.Event{refusal(4, 3, "/usr/bin/curl", "exec.net")}}})
		r.Result.Observations = &reported
		report := proposal.Report{Records: []proposal.Record{r}}
		var entries []journal.Entry
		for _, w := range expectedEntries(report) {
			if w.record != nil {
				entries = append(entries, journal.Entry{Kind: "events", Body: data}, journal.Entry{Kind: "events", Body: []byte(`{"id":"a","events":` + string(data) + `}`)})
			}
			body, err := json.Marshal(w.body)
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, journal.Entry{Kind: w.kind, Body: body})
		}
		if len(CompareLog(report, entries)) == 0 {
			t.Error("two events entries, one of them no such entry, give what the report says")
		}
		for _, e := range entries {
			_, _ = e.Decode()
		}
	})
}
