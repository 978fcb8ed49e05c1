// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"sync"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A recorder keeps what the gate asked and told.
type recorder struct {
	mu     sync.Mutex
	asked  []proposal.Exec
	events []proposal.Event
	decide func(proposal.Exec) proposal.ExecDecision
}

func (r *recorder) exec(x proposal.Exec) proposal.ExecDecision {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, x)
	if r.decide == nil {
		return proposal.ExecDecision{Effect: proposal.Allow}
	}
	return r.decide(x)
}

func (r *recorder) event(e proposal.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.events = nil, nil
}

func gated(t testing.TB, decide func(proposal.Exec) proposal.ExecDecision) (*Runner, *recorder) {
	t.Helper()
	rec := &recorder{decide: decide}
	o := testOptions(t)
	o.Exec, o.Event = rec.exec, rec.event
	return testRunner(t, o), rec
}

func TestGateSees(t *testing.T) {
	r, rec := gated(t, nil)
	result := runText(t, r, "/usr/bin/id; cp /usr/bin/id /tmp/copy; /tmp/copy; cp /usr/bin/id ./c2 && ./c2 -u; touch /tmp/x; printf '#!/bin/sh\nid' > s.sh; chmod +x s.sh; ./s.sh")
	t.Logf("%+v %s %s", result.Status, result.Stdout.Head, result.Stderr.Head)
	t.Logf("%+v %+v", result.Observations, result.Usage)
	for _, x := range rec.asked {
		t.Logf("asked %+v", x)
	}
	for _, e := range rec.events {
		x := e.Exec
		e.Exec = nil
		t.Logf("event %+v %v", e, x != nil)
	}
}
