// SPDX-License-Identifier: Apache-2.0

package order_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// fake returns the stages of one command that does what runner does, and a real log.
func fake(o *observe.Observer, log journal.Log, runner order.Runner) *order.Stages {
	return &order.Stages{
		Checker: order.Checker{Policy: allowing{}}, Log: log, Redactor: order.Redacting(), Lineage: order.Programs(), Observer: o,
		Start: func(sandbox.Options) (order.Runner, error) { return runner, nil }, Now: time.Now,
	}
}

// THREATS 30: the log of a fumehood killed at any moment verifies, and its events
// are the first ones, without a gap.
func TestCutAnywhere(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Create(path, audit.Options{Origin: "cut"})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	observer := order.Observing(log)
	if _, err := fake(observer, log, burst{n: 3000, see: observer.AddEvent}).Run(t.Context(), proposal.Plan{Proposals: []proposal.Proposal{{ID: "a", Run: "make"}}}, proposal.Run{}); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Seal(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	highest := 0
	for n := len(whole); n > 1000; n -= len(whole) / sample.Rounds(t, 50, 50, 10) {
		next := 0
		summary, err := audit.Scan(bytes.NewReader(whole[:n]), audit.Trust{Key: log.Key()}, func(e audit.Entry) error {
			h, err := journal.Entry{Kind: e.Kind, Body: e.Body}.Decode()
			if err != nil || e.Unsigned || e.Kind != "events" {
				return err
			}
			if h.First != int64(next) {
				t.Errorf("cut at %d: events from %d after %d", n, h.First, next)
			}
			for _, event := range h.Events {
				if event.Pid != next+2 {
					t.Fatalf("cut at %d: event %d is of process %d", n, next, event.Pid)
				}
				next++
			}
			return nil
		})
		if err != nil {
			t.Errorf("cut at %d: %v", n, err)
		}
		if summary.Complete() != (n == len(whole)) {
			t.Errorf("cut at %d: %v", n, summary.State)
		}
		highest = max(highest, next)
	}
	if highest != 3000 {
		t.Errorf("%d events in the whole log, want 3000", highest)
	}
}
