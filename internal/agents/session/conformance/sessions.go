// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A gate decides before it has a session, has one session at a time, and its report names it.
func testSession(t *testing.T, g gate.Opener) {
	records, err := g.Check(t.Context(),
		proposal.Plan{Proposals: []proposal.Proposal{shellProposal("a", "echo"), shellProposal("b", "shuf x")}})
	if err != nil || len(records) != 2 || records[0].Decision.Effect != proposal.Allow ||
		records[1].Decision.Effect != proposal.Deny {
		t.Fatalf("check: %+v, %v", records, err)
	}
	s, err := g.Open(t.Context(), gate.SessionOptions{Proposer: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{12}$`).MatchString(s.ID()) {
		t.Errorf("the id is %q", s.ID())
	}
	if another, err := g.Open(t.Context(), gate.SessionOptions{}); err == nil {
		t.Errorf("a second session is open: %v", another.ID())
	}
	if err := s.SetUp(t.Context(), proposal.Proposal{}, nil); err != nil {
		t.Error(err)
	}
	if r := doSuccessfully(t, s, shellProposal("a", "echo hello")); string(r.Stdout.Head) != "hello\n" {
		t.Errorf("%+v", r)
	}
	report := closeSession(t, s)
	if report.Run.ID != s.ID() || report.Run.Proposer != "a test" || report.Totals.Succeeded != 1 ||
		report.Audit == nil || report.Audit.File != s.Log() {
		t.Errorf("%+v, %+v", report.Run, report.Audit)
	}
}

// A session that was closed refuses all calls and says so again.
func testClosed(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	select {
	case <-s.Done():
		t.Fatal("it is done before it is closed")
	default:
	}
	first := closeSession(t, s)
	<-s.Done()
	if again := closeSession(t, s); again.Audit.Checkpoint != first.Audit.Checkpoint {
		t.Errorf("%+v, then %+v", first.Audit, again.Audit)
	}
	_, do := s.Do(t.Context(), shellProposal("a", "true"))
	_, put := s.Put(t.Context(), "x", nil)
	_, _, take := s.Take(t.Context(), "x")
	_, diff := s.Diff(t.Context())
	_, start := s.Start(t.Context(), shellProposal("b", "true"))
	for name, err := range map[string]error{"do": do, "put": put, "take": take, "diff": diff, "start": start} {
		if errorCode(err) != "session.closed" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// checkStopped checks that a session ended by itself with a code, and that its log is complete.
func checkStopped(t *testing.T, s gate.Session, want string) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("the session does not end")
	}
	report, err := s.Close()
	if errorCode(err) != want {
		t.Errorf("it ended with %v, want %s", err, want)
	}
	if report.Error == nil || report.Error.Code != want {
		t.Errorf("the report has %+v", report.Error)
	}
	entryKinds(t, report)
}

func testIdle(t *testing.T, g gate.Opener) {
	s, err := g.Open(t.Context(), gate.SessionOptions{Idle: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	checkStopped(t, s, "session.idle")
}

// After its lifetime a session starts no command.
func testLifetime(t *testing.T, g gate.Opener) {
	s, err := g.Open(t.Context(), gate.SessionOptions{Lifetime: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		r, err := s.Do(t.Context(), shellProposal("a", "true"))
		if err != nil || r.Result != nil && !r.Result.Succeeded() {
			return
		}
	}
	t.Error("commands still run")
}

// The end of the context of Open kills the command and seals the log.
func testCancelled(t *testing.T, g gate.Opener) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := g.Open(ctx, gate.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := gate.WithOutput(t.Context(), func(proposal.Chunk) { cancel() })
	if r, err := s.Do(began, shellProposal("long", "echo; sleep 600")); err == nil && r.Result.Succeeded() {
		t.Errorf("the command was not killed: %+v", r.Result)
	}
	checkStopped(t, s, "run.cancelled")
}
