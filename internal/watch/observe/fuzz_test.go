// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func seeds(f *testing.F) {
	script := started(3, 2, "/usr/bin/dash", "sh", "./run.sh")
	script.Exec.Script = "/workspace/run.sh"
	for _, list := range [][]proposal.Event{
		nil, {started(2, 1, "/usr/bin/bash", "bash", "-c", "x"), script, refusal(4, 3, "/usr/bin/curl", "exec.net"), exited(3, 11)},
		{event(proposal.EventWrite, "/etc/passwd"), event(proposal.EventWrite, "/tmp/\xff\u202e"), called("mount", "EPERM"), reached("tcp 192.0.2.1:1", "")},
		{dialled(0, 7, "/x", "tcp 198.18.0.5:443"), request("go.example", "GET", "/\u202e", 1<<62, -1), against(flow(0, proposal.EventLookup, "evil.example", "::1"), "r"), {Kind: proposal.EventDatagram}},
		{{Command: "a", Kind: proposal.EventExec, Pid: -1}, {Kind: "\x00", Status: -1 << 31}},
	} {
		data, err := json.Marshal(list)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// FuzzEvents gives the Observer's bookkeeping what a kernel that was broken into
// could say: what comes of it is bounded, and its tree counts each start once.
func FuzzEvents(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var events []proposal.Event
		if json.Unmarshal(data, &events) != nil {
			return
		}
		tl, flows := newTally(), 0
		var j joiner
		var list []proposal.Event
		for _, e := range events {
			if e = trimEvent(e); e.Flow != nil {
				list = append(list, j.joinGatewayEvent(e)...)
				continue
			}
			list = append(append(list, e), j.addCall(e)...)
		}
		if list = append(list, j.releaseEvents(len(j.parked))...); len(list) != len(events) {
			t.Fatalf("%d of %d events", len(list), len(events))
		}
		for _, e := range list {
			if classOf(e) == passed || classOf(e) == barred {
				flows++
			}
			if again := trimEvent(e); again.Exec != nil && !cmp.Equal(e.Exec.Argv, again.Exec.Argv) {
				t.Errorf("trimming twice changes %q to %q", e.Exec.Argv, again.Exec.Argv)
			}
			tl.addEvent(e)
		}
		o := tl.makeObservations()
		text, err := json.Marshal(o)
		if err != nil || !utf8.Valid(text) || len(text) > 2<<20 {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		counted := 0
		for i, p := range o.Programs {
			counted += p.Runs + p.Refused + p.Omitted
			if p.Parent >= i || p.Parent < 0 && i > 0 {
				t.Errorf("program %d has the parent %d", i, p.Parent)
			}
		}
		reached := 0
		for _, r := range o.Network {
			reached += r.Count
		}
		if c := o.Counts; reached > flows || c.Lookups+c.Connections+c.Requests+c.Datagrams != flows || c.NetRefused+c.NetWatched > flows {
			t.Errorf("%d flows, %d reached, %+v counted", flows, reached, c)
		}
		if counted != o.Counts.Execs+o.Counts.Refused {
			t.Errorf("%d starts in the tree, %+v counted", counted, o.Counts)
		}
	})
}
