// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// approvable opens a session in which policy allows a, asks about b and denies c.
func approvable(t *testing.T) (*Session, *world, *keeper) {
	t.Helper()
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Ask, "c": proposal.Deny}}
	k := &keeper{world: w}
	h := w.stages()
	h.Log = k
	s, err := h.Open(proposal.Run{ID: "run-1", Policy: "sha256:policy"}, bounds)
	if err != nil {
		t.Fatal(err)
	}
	return s, w, k
}

func byClient(a proposal.ClientApproval) proposal.ClientApproval {
	a.Client, a.Time = "MCP client x", time.Unix(1, 0).UTC()
	return a
}

// A client's approval runs what policy asks about, once more as recorded; the log and the
// report name the client.
func TestClientApproval(t *testing.T) {
	s, w, k := approvable(t)
	p := one("b")
	if r, err := s.Do(t.Context(), p); err != nil || r.Runnable() {
		t.Fatalf("%+v, %v", r.Decision, err)
	}
	approval := byClient(s.Asked(p))
	p.ID = "b2"
	w.decide["b2"] = proposal.Ask
	r, err := s.DoApproved(t.Context(), p, approval)
	if err != nil || r.Result == nil || r.ClientApproval == nil || !slices.Contains(w.did, "run b2: text of b") {
		t.Errorf("%+v, %v; did %q", r, err, w.did)
	}
	report, err := s.Close(nil)
	if err != nil || report.Records[1].ClientApproval == nil || report.Records[1].Approval != nil {
		t.Errorf("report %+v, %v", report.Records, err)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts: %q", doubts)
	}
	report.Records[1].ClientApproval.Client = "octocat"
	if len(CompareLog(report, k.entries)) == 0 {
		t.Error("another approver agrees with the log")
	}
}

// A command in the background that policy asks about runs only with an approval of it, and its
// result is in the log.
func TestBackgroundApproval(t *testing.T) {
	s, w, k := approvable(t)
	w.decide["b2"], w.decide["c"], w.decide["d"] = proposal.Ask, proposal.Ask, proposal.Deny
	approval := byClient(s.Asked(one("b")))
	start := func(id, text string, a *proposal.ClientApproval) (proposal.Record, error) {
		p := one(id)
		p.Run = one(text).Run
		running, err := s.Start(t.Context(), p, a)
		if err != nil {
			return proposal.Record{}, err
		}
		return running.Record()
	}
	for _, c := range []struct {
		id, text string
		approval *proposal.ClientApproval
		runs     bool
	}{{"b", "b", nil, false}, {"d", "d", nil, false}, {"b2", "b", &approval, true}, {"c", "c", &approval, false}} {
		r, err := start(c.id, c.text, c.approval)
		if (r.Result != nil) != c.runs || c.approval == nil && err != nil {
			t.Errorf("%s: %+v, %v", c.id, r, err)
		}
		if ran := slices.Contains(w.did, "run "+c.id+": text of "+c.text); ran != c.runs {
			t.Errorf("%s: did %q", c.id, w.did)
		}
	}
	report, err := s.Close(nil)
	if err != nil {
		t.Error(err)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts: %q", doubts)
	}
}

// Nothing runs with an approval of anything else, and the session continues.
func TestClientApprovalVoid(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *Session, *proposal.ClientApproval, *proposal.Proposal){
		"another text":      func(_ *testing.T, _ *Session, _ *proposal.ClientApproval, p *proposal.Proposal) { p.Run += " " },
		"another directory": func(_ *testing.T, _ *Session, _ *proposal.ClientApproval, p *proposal.Proposal) { p.Cwd = "x" },
		"another input":     func(_ *testing.T, _ *Session, _ *proposal.ClientApproval, p *proposal.Proposal) { p.Stdin = "x" },
		"another policy": func(_ *testing.T, _ *Session, a *proposal.ClientApproval, _ *proposal.Proposal) {
			a.Policy = "sha256:x"
		},
		"another session": func(_ *testing.T, _ *Session, a *proposal.ClientApproval, _ *proposal.Proposal) { a.Session = "run-2" },
		"no client":       func(_ *testing.T, _ *Session, a *proposal.ClientApproval, _ *proposal.Proposal) { a.Client = "" },
		"nothing": func(_ *testing.T, _ *Session, a *proposal.ClientApproval, _ *proposal.Proposal) {
			*a = proposal.ClientApproval{}
		},
		"a command since": func(t *testing.T, s *Session, _ *proposal.ClientApproval, _ *proposal.Proposal) {
			t.Helper()
			if _, err := s.Do(t.Context(), one("a")); err != nil {
				t.Fatal(err)
			}
		},
		"a file since": func(t *testing.T, s *Session, _ *proposal.ClientApproval, _ *proposal.Proposal) {
			t.Helper()
			if _, err := s.Put(t.Context(), "x", []byte("data")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, w, _ := approvable(t)
			p := one("b")
			a := byClient(s.Asked(p))
			change(t, s, &a, &p)
			if _, err := s.DoApproved(t.Context(), p, a); proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != "approval.void" {
				t.Errorf("error %v", err)
			}
			if slices.Contains(w.did, "run b: text of b") {
				t.Error("it ran")
			}
			if _, err := s.Do(t.Context(), one("c")); err != nil {
				t.Errorf("the session ended: %v", err)
			}
		})
	}
}

// An approval does not allow what policy denies, is used by nothing else, and is not
// recorded where it is not needed.
func TestClientApprovalOfOthers(t *testing.T) {
	s, w, k := approvable(t)
	for _, id := range []string{"c", "a"} {
		p := one(id)
		r, err := s.DoApproved(t.Context(), p, byClient(s.Asked(p)))
		if err != nil || r.ClientApproval != nil || r.Runnable() != (id == "a") {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
	}
	if slices.Contains(w.did, "run c: text of c") {
		t.Error("what is denied ran")
	}
	for _, e := range k.entries {
		if d, err := e.Decode(); err == nil && d.Approved {
			t.Errorf("entry %s is approved", e.Kind)
		}
	}
}

// Network entries of the set-up are granted to the set-up alone.
func TestSetupNetwork(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow}}
	h := w.stages()
	h.Policy = generous{w, proposal.Grant{Limits: bounds.Limits, Network: []string{"registry:npm"}}}
	s, err := h.Open(proposal.Run{}, Bounds{Limits: bounds.Limits, SetupNetwork: []string{"registry:npm"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Do(t.Context(), one("a"))
	if err != nil || r.Decision.Effect != proposal.Deny || r.Decision.Reasons[0].Rule != "session.network" {
		t.Errorf("a proposer's: %+v, %v", r.Decision, err)
	}
	p := one("b")
	p.Origin = proposal.OriginSetup
	record := proposal.Record{Proposal: p, Decision: proposal.Decision{Effect: proposal.Allow, Grant: &proposal.Grant{Network: []string{"registry:npm"}}}}
	if s.confineToBounds(&record); record.Decision.Effect != proposal.Allow {
		t.Errorf("the set-up's: %+v", record.Decision)
	}
}

// Set-up has no registry once a file was put, or a command that may write has run: it would run what they
// wrote. A command that only reads changes nothing of that.
func TestSetupNetworkAfterWrites(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*Session) error
		want   proposal.Effect
	}{
		"a command that reads":  {doText("cat a"), proposal.Allow},
		"a command that writes": {doText("cat a > b"), proposal.Deny},
		"a program":             {doText("./a"), proposal.Deny},
		"a file": {func(s *Session) error {
			_, err := s.Put(t.Context(), "x", []byte("data"))
			return err
		}, proposal.Deny},
	} {
		w := &world{decide: map[string]proposal.Effect{"before": proposal.Allow, "put": proposal.Allow}}
		s := openSession(t, w.stages())
		if err := c.before(s); err != nil {
			t.Fatal(err)
		}
		s.bounds.SetupNetwork = []string{"registry:npm"} // after the sandbox began, which has no gateway
		p := one("set-up")
		p.Origin = proposal.OriginSetup
		record := proposal.Record{Proposal: p, Decision: proposal.Decision{Effect: proposal.Allow, Grant: &proposal.Grant{Network: []string{"registry:npm"}}}}
		if s.confineToBounds(&record); record.Decision.Effect != c.want {
			t.Errorf("%s: %+v", name, record.Decision)
		}
	}
}

func doText(text string) func(*Session) error {
	return func(s *Session) error {
		_, err := s.Do(context.Background(), proposal.Proposal{ID: "before", Run: text})
		return err
	}
}
