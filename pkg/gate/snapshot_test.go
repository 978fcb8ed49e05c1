// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func snapshotOf(t testing.TB, s gate.Session) *gate.Snapshot {
	t.Helper()
	n, err := s.(gate.Snapshotter).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func wantCode(t testing.TB, err error, code string) {
	t.Helper()
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != code || stop.Hint == "" {
		t.Errorf("%v, want %s with a hint", err, code)
	}
}

// A session that begins with a snapshot has its files and shells, is decided as the session itself would be, and has
// a log of its own, which names the place in the other's log. What happens in one is not seen in the other.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	o := gate.Options{Workspace: t.TempDir()}
	s := open(t, newGate(t, o), gate.SessionOptions{})
	_, err := s.(gate.Snapshotter).Snapshot(t.Context())
	wantCode(t, err, "sandbox.save")
	ran(t, s, cell("a", "bash", "x=40; say() { echo $((x + $1)); }"))
	ran(t, s, run("b", "echo one > made; mkdir d"))
	n := snapshotOf(t, s)
	ran(t, s, run("c", "echo two > made"))
	var reports []proposal.Report
	for range 2 {
		f := open(t, newGate(t, o), gate.SessionOptions{From: n})
		for _, step := range []struct {
			p    proposal.Proposal
			want string
		}{
			{cell("a", "bash", "say 2"), "exit code 0; 42"},
			{cell("b", "bash", "curl https://example.com"), "deny"},
			{cell("c", "bash", "eval $(echo curl) https://example.com"), "deny"},
			{run("d", "cat made; ls; echo three > made; echo > new"), "exit code 0; one\nd\nmade"},
			{cell("e", "bash", "x=1; say 1; cat made"), "exit code 0; 2\nthree"},
		} {
			if got := described(do(t, f, step.p)); !strings.HasPrefix(got, step.want) {
				t.Errorf("%s: %q, want %q", step.p.ID, got, step.want)
			}
		}
		changes, err := f.Changes(t.Context())
		if err != nil || len(changes.Files) != 3 {
			t.Errorf("changes %+v, %v", changes, err)
		}
		snapshotOf(t, f)
		report, err := f.Close()
		if err != nil {
			t.Fatal(err)
		}
		checkLog(t, report, true)
		reports = append(reports, report)
	}
	if got := described(do(t, s, cell("d", "bash", "say 2; cat made"))); got != "exit code 0; 42\ntwo" {
		t.Errorf("%q", got)
	}
	parent, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, parent, true)
	if last := parent.Transfers[len(parent.Transfers)-1]; last.Kind != "snapshot" || last.Output.Path != n.ID() || last.After != 2 {
		t.Errorf("the log has %+v", parent.Transfers)
	}
	for _, r := range reports {
		from := r.Run.From
		if from == nil || from.Run != parent.Run.ID || from.Snapshot != n.ID() {
			t.Fatalf("from %+v", from)
		}
		log, err := os.Open(parent.Audit.File)
		if err != nil {
			t.Fatal(err)
		}
		_, err = audit.Scan(log, audit.Trust{Key: parent.Audit.Key, Checkpoint: from.Checkpoint},
			func(audit.Entry) error { return nil })
		if log.Close(); err != nil {
			t.Errorf("the other session's log does not have the checkpoint: %v", err)
		}
	}
}

// A snapshot is of one policy, commit and workspace. A session that cannot begin with it does not begin at all.
func TestSnapshotRefusal(t *testing.T) {
	t.Parallel()
	o := gate.Options{Workspace: t.TempDir()}
	s := open(t, newGate(t, o), gate.SessionOptions{})
	ran(t, s, run("a", "true"))
	n := snapshotOf(t, s)
	p, err := s.Start(t.Context(), run("b", "sleep 600"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.(gate.Snapshotter).Snapshot(t.Context())
	wantCode(t, err, "sandbox.save")
	p.Kill()
	refused := func(o gate.Options, so gate.SessionOptions) {
		t.Helper()
		g := newGate(t, o)
		so.From = n
		_, err := g.Open(t.Context(), so)
		wantCode(t, err, "sandbox.restore")
		ran(t, open(t, g, gate.SessionOptions{}), run("a", "true")) // another one can
	}
	other := o
	other.AllowTools = []string{"grype"}
	refused(other, gate.SessionOptions{})
	other = o
	other.Workspace = t.TempDir()
	refused(other, gate.SessionOptions{})
	other = o
	other.Subject.HeadSHA = strings.Repeat("a", 40)
	refused(other, gate.SessionOptions{})
	refused(o, gate.SessionOptions{Limits: proposal.Limits{Pids: 50}})
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	refused(o, gate.SessionOptions{})
}
