// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const canary = "hunter2-canary"

// A book keeps what is logged.
type book struct{ entries []journal.Entry }

func (b *book) Write(kind string, v any) (int64, error) { return b.Append(kind, v) }

func (b *book) Append(kind string, v any) (int64, error) {
	body, err := json.Marshal(v)
	b.entries = append(b.entries, journal.Entry{Kind: kind, Body: body})
	return int64(len(b.entries) - 1), err
}

// Everything that is logged and reported has passed the redactor, what runs has not, and
// log and report agree.
func TestRedactor(t *testing.T) {
	log, seen := &book{}, observe.RecountEvents(nil)
	seen.Complete = true
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow}, results: map[string]proposal.Result{
		"a": {Status: proposal.Exited, Stdout: proposal.Stream{Bytes: 22, Head: []byte("printed " + canary)}, Observations: &seen}}}
	h := w.stages()
	h.Log = log
	p := planOf("a")
	p.Proposals[0].Why, p.Proposals[0].Run = "why "+canary, canary
	r, err := h.Run(t.Context(), p, proposal.Run{Proposer: canary})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(w.did, "run a: "+canary) {
		t.Errorf("what ran is not what was proposed: %q", w.did)
	}
	data, err := json.Marshal(r)
	if err != nil || strings.Contains(string(data), canary) {
		t.Errorf("%v: the report holds it: %s", err, data)
	}
	for _, e := range log.entries {
		if strings.Contains(string(e.Body), canary) {
			t.Errorf("the %s entry holds it: %s", e.Kind, e.Body)
		}
	}
	if doubts := CompareLog(r, log.entries); len(doubts) > 0 {
		t.Errorf("doubts: %v", doubts)
	}
	got := r.Records[0]
	if len(got.Redacted) != 1 || len(got.Result.Stdout.Redacted) != 1 {
		t.Errorf("not counted: %+v", got)
	}
	if f := got.Result.Observations.Findings; len(f) != 1 || f[0].Rule != "output.secret" || !strings.Contains(f[0].Message, "mask:C (1)") {
		t.Errorf("findings %+v", f)
	}
	if doubts, _, err := h.RedecidePlan(t.Context(), p, r); err != nil || len(doubts) != 1 || !strings.Contains(doubts[0], "contained a secret") {
		t.Errorf("decided again: %v, %v", doubts, err)
	}
}

// A redactor that fails ends the run, and the outcome of its command is unknown.
func TestRedactorFails(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow}}
	h := w.stages()
	w.results = map[string]proposal.Result{"a": {Status: proposal.Exited, Stdout: proposal.Stream{Bytes: 14, Head: []byte(canary)}}}
	u, err := redact.New(redact.Options{Masks: []redact.Mask{{Name: "C", Value: canary}}, Decide: func(context.Context, points.Outgoing) (points.OutputDecision, error) {
		return points.OutputDecision{}, &proposal.StopError{Code: "output.unreadable", Message: "no"}
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.Redactor = u
	r, err := h.Run(t.Context(), planOf("a", "b"), proposal.Run{})
	if f := proposal.FailureOf(err); f == nil || f.Code != "output.unreadable" || r.Error == nil {
		t.Errorf("got %v", err)
	}
	if a, b := r.Records[0].Result, r.Records[1].Result; a.Status != proposal.SandboxFailed || b.Status != proposal.NotRun {
		t.Errorf("statuses %v and %v", a.Status, b.Status)
	}
}
