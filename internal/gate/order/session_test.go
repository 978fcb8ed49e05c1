// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var bounds = Bounds{Limits: proposal.Limits{Wall: proposal.Duration(time.Hour), CPUs: 1, Memory: 9, Pids: 9, Disk: 9, Files: 9, Output: 9}}

func openSession(t *testing.T, h *Stages) *Session {
	t.Helper()
	s, err := h.Open(proposal.Run{}, bounds)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func one(id string) proposal.Proposal { return planOf(id).Proposals[0] }

// telling is a keeper that also records the entries in its world.
type telling struct{ *keeper }

func (l telling) Write(kind string, v any) (int64, error) { return l.Append(kind, v) }

func (l telling) Append(kind string, v any) (int64, error) {
	_, err := l.world.Append(kind, v)
	n, keepErr := l.keeper.Append(kind, v)
	return n, errors.Join(err, keepErr)
}

// Each proposal is decided and recorded when it comes, after the previous one has ended.
func TestSessionOrder(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "put": proposal.Allow, "c": proposal.Allow}}
	k := &keeper{world: w}
	h := w.stages()
	h.Log = telling{k}
	s := openSession(t, h)
	if d, err := s.Diff(t.Context(), nil); err != nil || len(d.Files) > 0 {
		t.Errorf("a diff before anything ran: %+v, %v", d, err)
	}
	for _, id := range []string{"b", "a"} {
		if _, err := s.Do(t.Context(), one(id)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), "x", []byte("data")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), one("c")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(t.Context(), "y"); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Diff(t.Context(), []string{"p", "q"}); err != nil || d.Files[0].Path != "p" || d.Patch.File != "~3.diff" {
		t.Errorf("diff: %+v, %v", d, err)
	}
	if diff := cmp.Diff([]proposal.Change{{Path: "x", Kind: "added", Type: "file"}}, s.Changes().Files); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	report, err := s.Close(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"log run", "decide b", "log decision b",
		"decide a", "log decision a", "open sandbox", "log start a", "run a: text of a", "log result a",
		"decide put", "put x", "log transfer",
		"decide c", "log decision c", "log start c", "run c: text of c", "log result c",
		"take ~2 y", "log transfer", "diff ~3 p q", "log transfer",
		"close sandbox", "log end",
	}
	if diff := cmp.Diff(want, w.did); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if want := (proposal.Totals{Proposed: 3, Allowed: 2, Denied: 1, Succeeded: 2}); report.Totals != want || !report.Run.Session {
		t.Errorf("totals %+v, want %+v; run %+v", report.Totals, want, report.Run)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts: %q", doubts)
	}
}

// Removing, moving or changing anything in a session's log is detected.
func TestSessionForged(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow}}
	k := &keeper{world: w}
	h := w.stages()
	h.Log = k
	s := openSession(t, h)
	_, errA := s.Do(t.Context(), one("a"))
	_, errPut := s.Put(t.Context(), "x", []byte("data"))
	_, errB := s.Do(t.Context(), one("b"))
	report, err := s.Close(nil)
	if err := errors.Join(errA, errPut, errB, err); err != nil {
		t.Fatal(err)
	}
	for i := range k.entries {
		without := append(append([]journal.Entry(nil), k.entries[:i]...), k.entries[i+1:]...)
		if len(CompareLog(report, without)) == 0 {
			t.Errorf("a log without entry %d (%s) agrees", i, k.entries[i].Kind)
		}
		if i+1 < len(k.entries) {
			swapped := append([]journal.Entry(nil), k.entries...)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			if len(CompareLog(report, swapped)) == 0 {
				t.Errorf("a log with entry %d (%s) after the next agrees", i, k.entries[i].Kind)
			}
		}
	}
	plan := report
	plan.Run.Session = false
	if len(CompareLog(plan, k.entries)) == 0 {
		t.Error("a session's log agrees with a plan's report")
	}
}

// Any failure ends the session, and nothing runs after it.
func TestSessionFailsClosed(t *testing.T) {
	stopped := &proposal.StopError{Code: "test.stop", Message: "no"}
	for _, fails := range []string{"decide a", "log decision a", "open sandbox", "log start a", "run a: text of a", "log result a", "decide put", "put x", "log transfer"} {
		w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "put": proposal.Allow, "b": proposal.Allow}, fail: map[string]error{fails: stopped}}
		s := openSession(t, w.stages())
		_, err := s.Do(t.Context(), one("a"))
		if err == nil {
			_, err = s.Put(t.Context(), "x", nil)
		}
		if !errors.Is(err, stopped) {
			t.Errorf("%s: got %v", fails, err)
		}
		if _, err := s.Do(t.Context(), one("b")); !errors.Is(err, stopped) {
			t.Errorf("%s: the next proposal: %v", fails, err)
		}
		if _, err := s.Take(t.Context(), "x"); !errors.Is(err, stopped) {
			t.Errorf("%s: a file: %v", fails, err)
		}
		report, err := s.Close(nil)
		if !errors.Is(err, stopped) || report.Error == nil || strings.Contains(strings.Join(w.did, " "), "run b") {
			t.Errorf("%s: closed with %v, %+v; %q", fails, err, report.Error, w.did)
		}
	}
	w := &world{fail: map[string]error{"log run": stopped}}
	if s, err := w.stages().Open(proposal.Run{}, bounds); s != nil || !errors.Is(err, stopped) {
		t.Errorf("no log: %v, %v", s, err)
	}
	if _, err := w.stages().Open(proposal.Run{}, Bounds{}); proposal.FailureOf(err).Code != "session.limits" {
		t.Errorf("no limits: %v", err)
	}
}

// A session whose last transfer was a pause goes on.
func TestFullSessionResumes(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow}}
	s := openSession(t, w.stages())
	s.report.Transfers = make([]proposal.Transfer, MaxTransfers-1)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(t.Context(), "x"); proposal.FailureOf(err).Code != "session.full" {
		t.Errorf("took a file: %v", err)
	}
	if r, err := s.Do(t.Context(), one("a")); err != nil || r.Result == nil {
		t.Errorf("a proposal after the pause: %+v, %v", r, err)
	}
	if err := s.Pause(); proposal.FailureOf(err).Code != "session.full" {
		t.Errorf("paused again: %v", err)
	}
}

// A caller's mistake, or a killed command, does not end the session.
func TestSessionGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow}}
	s := openSession(t, w.stages())
	w.cancel = cancel
	w.results = map[string]proposal.Result{"a": {Status: proposal.Signaled, Detail: "the run was interrupted"}}
	if r, err := s.Do(ctx, one("a")); err != nil || r.Result.Status != proposal.Signaled {
		t.Errorf("got %+v, %v", r.Result, err)
	}
	for _, p := range []proposal.Proposal{one("a"), {ID: "n", Run: "x", Needs: []string{"later"}}} {
		if _, err := s.Do(t.Context(), p); proposal.FailureOf(err).Code != "session.proposal" {
			t.Errorf("%s: got %v", p.ID, err)
		}
	}
	needs := one("b")
	needs.Needs = []string{"a"}
	if r, err := s.Do(t.Context(), needs); err != nil || r.Result.Status != proposal.NotRun {
		t.Errorf("what needs a killed command: %+v, %v", r.Result, err)
	}
	if report, err := s.Close(nil); err != nil || report.Totals.Proposed != 2 {
		t.Errorf("got %+v, %v", report.Totals, err)
	}
	if _, err := s.Do(t.Context(), one("c")); proposal.FailureOf(err).Code != "session.closed" {
		t.Errorf("after Close: %v", err)
	}
}

// No proposal is granted more than the session's bounds.
func TestSessionBounds(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow}}
	h := w.stages()
	h.Policy = generous{w, proposal.Grant{Limits: proposal.Limits{Wall: proposal.Duration(time.Minute), CPUs: 4, Memory: 100, Pids: 100, Disk: 100, Files: 100, Output: 100}, Network: []string{"a.example"}}}
	s, err := h.Open(proposal.Run{}, Bounds{Limits: bounds.Limits, Network: []string{"b.example"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Do(t.Context(), one("a"))
	if err != nil || r.Decision.Effect != proposal.Deny || r.Decision.Reasons[0].Rule != "session.network" || r.Result != nil {
		t.Errorf("got %+v, %v", r.Decision, err)
	}
	h.Policy = generous{w, proposal.Grant{Limits: proposal.Limits{Wall: proposal.Duration(time.Minute), CPUs: 4, Memory: 100, Pids: 100, Disk: 100, Files: 100, Output: 100}}}
	s.bounds.Network = nil
	r, err = s.Do(t.Context(), one("b"))
	if err != nil || r.Decision.Grant.Limits != bounds.Limits.Under(proposal.Limits{Wall: proposal.Duration(time.Minute)}) {
		t.Errorf("got %+v, %v", r.Decision.Grant, err)
	}
}

// generous is a policy that allows everything.
type generous struct {
	*world
	grant proposal.Grant
}

func (g generous) Decide(context.Context, proposal.Proposal, proposal.Analysis) (proposal.Decision, error) {
	grant := g.grant
	return proposal.Decision{Effect: proposal.Allow, Grant: &grant}, nil
}

// A plan run as a session has the same decisions and results.
func TestSessionIsPlan(t *testing.T) {
	effects := map[string]proposal.Effect{"a": proposal.Allow, "c": proposal.Allow, "d": proposal.Ask}
	plan := planOf("a", "b", "c", "d")
	whole, err := (&world{decide: effects}).stages().Run(t.Context(), plan, proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	s := openSession(t, (&world{decide: effects}).stages())
	for _, p := range plan.Proposals {
		if _, err := s.Do(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	one, err := s.Close(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*proposal.Report{&whole, &one} {
		for i := range r.Records {
			r.Records[i].Entry = 0
		}
		r.Run.Session = false
	}
	a, _ := json.Marshal(whole)
	b, _ := json.Marshal(one)
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Errorf("the session's report is another (-plan +session):\n%s", diff)
	}
}

// A session's report lists a bounded number of events and files, and counts all of them.
func TestSessionListsAreBounded(t *testing.T) {
	s, listed, omitted, execs := &Session{}, 0, 0, 0
	for range 3 * maxListed / 100 {
		r := proposal.Result{
			Changes:      proposal.Changes{Files: make([]proposal.Change, 40), Omitted: 1},
			Observations: &proposal.Observations{Execs: make([]proposal.Event, 60), Counts: proposal.Counts{Execs: 70}, Complete: true},
		}
		short := s.shortenResult(&r)
		listed += len(short.Changes.Files) + len(short.Observations.Execs)
		omitted += len(short.Changes.Files) + short.Changes.Omitted
		execs += short.Observations.Counts.Execs
		if !short.Observations.Complete || len(r.Changes.Files) != 40 || len(r.Observations.Execs) != 60 {
			t.Fatalf("%+v of %+v", short, r)
		}
	}
	if n := 3 * maxListed / 100; listed != maxListed || omitted != 41*n || execs != 70*n {
		t.Errorf("%d listed, %d files and %d programs counted", listed, omitted, execs)
	}
}
