// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// What policy asks about runs with an approval of this proposal, in this state, and only then.
func testApprovals(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	putFile(t, s, "f", "a\nb\n")
	p := shellProposal("a", "tac f")
	if r := doProposal(t, s, p); r.Result != nil || r.Decision.Effect != proposal.Ask ||
		firstRule(r) != "conformance.tac" {
		t.Fatalf("%+v", r)
	}
	asked := func(p proposal.Proposal) proposal.ClientApproval {
		t.Helper()
		a, err := s.Asked(t.Context(), p)
		if err != nil || a.Session != s.ID() {
			t.Fatalf("%+v, %v", a, err)
		}
		return a
	}
	good := asked(p)
	good.Client, good.Time = "a test", time.Now()
	for name, change := range map[string]func(*proposal.ClientApproval){
		"no client": func(a *proposal.ClientApproval) { a.Client = "" }, "empty": func(a *proposal.ClientApproval) { *a = proposal.ClientApproval{Client: "a test"} },
		"another session": func(a *proposal.ClientApproval) { a.Session += "0" }, "another proposal": func(a *proposal.ClientApproval) { a.Proposal = asked(shellProposal("b", "tac f f")).Proposal },
		"another policy": func(a *proposal.ClientApproval) { a.Policy += "0" }, "another state": func(a *proposal.ClientApproval) { a.After++ },
	} {
		wrong := good
		change(&wrong)
		if r, err := s.DoApproved(t.Context(), shellProposal("w", "tac f"), wrong); errorCode(err) != "approval.void" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if r, err := s.DoApproved(t.Context(), shellProposal("again", "tac f"), good); err != nil || r.Result == nil ||
		string(r.Result.Stdout.Head) != "b\na\n" || r.ClientApproval == nil || r.ClientApproval.Client != "a test" {
		t.Errorf("with an approval: %+v, %v", r, err)
	}
	if r, err := s.DoApproved(t.Context(), shellProposal("c", "tac f"), good); errorCode(err) != "approval.void" {
		t.Errorf("with an approval that was used: %+v, %v", r, err)
	}
	denied := shellProposal("d", "shuf f")
	yes := asked(denied)
	yes.Client = "a test"
	if r, err := s.DoApproved(t.Context(), denied, yes); err != nil || r.Result != nil ||
		r.Decision.Effect != proposal.Deny {
		t.Errorf("an approval of what is denied: %+v, %v", r, err)
	}
	closeSession(t, s)
}

// Policy decides a command before it runs, and each program that it starts.
func testDecisions(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	for want, text := range map[string]string{"conformance.shuf": "echo ran > ran; shuf ran",
		"conformance.tac": "echo ran > ran; tac ran"} {
		r := doProposal(t, s, shellProposal(want, text))
		if r.Result != nil || firstRule(r) != want {
			t.Errorf("%q: %+v", text, r)
		}
	}
	if _, err := s.Put(t.Context(), "inside.sh", []byte("factor 6 2>/dev/null || echo refused\n")); err != nil {
		t.Fatal(err)
	}
	r := doSuccessfully(t, s, shellProposal("inside", "sh inside.sh"))
	if string(r.Stdout.Head) != "refused\n" || r.Observations == nil || r.Observations.Counts.Refused == 0 {
		t.Errorf("a program that policy refuses: %q, %q, %+v", r.Stdout.Head, r.Stderr.Head, r.Observations)
	}
	if found, err := s.List(t.Context(), "ran"); err != nil || len(found.Files) > 0 {
		t.Errorf("a denied command left %+v, %v", found, err)
	}
	report := closeSession(t, s)
	if report.Totals.Denied != 1 || report.Totals.Asked != 1 {
		t.Errorf("%+v", report.Totals)
	}
}

// entryKinds returns the kinds of the entries of a log, which must be complete.
func entryKinds(t *testing.T, r proposal.Report) (kinds []string) {
	t.Helper()
	if r.Audit == nil {
		t.Fatal("the report has no log")
	}
	f, err := os.Open(r.Audit.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, err := audit.Scan(f, audit.Trust{Key: r.Audit.Key, Checkpoint: r.Audit.Checkpoint}, func(e audit.Entry) error {
		kinds = append(kinds, e.Kind)
		return nil
	})
	if err != nil || !sum.Complete() || sum.Entries != r.Audit.Entries {
		t.Fatalf("the log: %+v, %v", sum, err)
	}
	return kinds
}

// The log has each proposal with its decision, each result and each transfer; no byte of it can
// be changed, and none removed.
func testLog(t *testing.T, g gate.Opener) {
	s := openSession(t, g)
	doSuccessfully(t, s, shellProposal("a", "echo a"))
	doProposal(t, s, shellProposal("b", "shuf x"))
	putFile(t, s, "f", "x")
	report := closeSession(t, s)
	kinds := entryKinds(t, report)
	count := func(kind string) (n int) {
		for _, k := range kinds {
			if k == kind {
				n++
			}
		}
		return n
	}
	if count("result") != 1 || count("transfer") != 1 || count("decision") != 2 {
		t.Errorf("the log has %q", kinds)
	}
	log, err := os.ReadFile(report.Audit.File)
	if err != nil {
		t.Fatal(err)
	}
	trust := audit.Trust{Key: report.Audit.Key, Checkpoint: report.Audit.Checkpoint}
	for i := 0; i < len(log); i += max(len(log)/40, 1) {
		changed := slices.Clone(log)
		changed[i] ^= 1
		if sum, err := audit.Verify(bytes.NewReader(changed), trust); err == nil && sum.Complete() {
			t.Errorf("the change of byte %d was not found", i)
		}
		if sum, err := audit.Verify(bytes.NewReader(log[:i]), trust); err == nil && sum.Complete() {
			t.Errorf("the end at byte %d was not found", i)
		}
	}
}
