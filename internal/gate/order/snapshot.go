// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Snapshot is a session's sandbox at rest, with which other sessions begin: see Bounds.From. Close must be called.
type Snapshot struct {
	saved   *sandbox.Saved
	run     proposal.Run
	id      string
	entry   string // the checkpoint of the log of run that has the snapshot
	changes map[string]proposal.Change
	omitted int
	beside  bool
	probing probeCounter
}

// ID returns the snapshot's name in both logs.
func (n *Snapshot) ID() string { return n.id }

// Bytes returns the snapshot's size on the disk.
func (n *Snapshot) Bytes() int64 { return n.saved.Bytes() }

// Close removes the snapshot from the disk. Sessions that began with it go on.
func (n *Snapshot) Close() error { return n.saved.Close() }

// Snapshot saves the session's sandbox, records that, and lets the session go on. checkpoint returns that of the
// log's last entry. What cannot be saved is refused with sandbox.save: nothing is changed or recorded. Any other
// error is as for Do.
func (s *Session) Snapshot(ctx context.Context, checkpoint func() string) (*Snapshot, error) {
	if s.stopped == nil {
		s.stopped = s.collectBackground(false)
	}
	if s.stopped != nil {
		return nil, s.stopped
	}
	if slices.ContainsFunc(s.records, isFailedSetup) {
		return nil, &proposal.StopError{Code: "sandbox.save", Message: "cannot save the sandbox: its set-up failed",
			Hint: "fix the set-up, and open another session"}
	}
	if s.runner == nil {
		return nil, &proposal.StopError{Code: "sandbox.save",
			Message: "cannot save the sandbox: nothing has run in it yet", Hint: "run a command first"}
	}
	saved, err := s.runner.Save(ctx)
	var refused *proposal.StopError
	if err != nil {
		if errors.As(err, &refused) && refused.Code != "sandbox.save" {
			s.stopped = err
		}
		return nil, err
	}
	n := &Snapshot{saved: saved, run: s.run, id: "snap" + rand.Text(), changes: maps.Clone(s.changes),
		omitted: s.omitted, beside: s.beside, probing: maps.Clone(s.probing)}
	err = s.recordTransfer(transferSnapshot, func(_ string, t *proposal.Transfer) error {
		t.Output = proposal.Output{Path: n.id, Bytes: saved.Bytes()}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, saved.Close())
	}
	n.entry = checkpoint()
	return n, nil
}

// origin is what the log of a session that begins with n says.
func (n *Snapshot) origin() *proposal.SnapshotOrigin {
	return &proposal.SnapshotOrigin{Run: n.run.ID, Snapshot: n.id, Checkpoint: n.entry}
}

// checkFits returns an error unless run is decided by the policy of n's session, and has its sandbox. What ran in it
// was decided by that policy.
func (n *Snapshot) checkFits(run proposal.Run) error {
	for _, same := range []struct{ what, of, now string }{
		{"policy", n.run.Policy, run.Policy},
		{"root", n.run.Rootfs, run.Rootfs},
		{"version of gVisor", n.run.Runsc, run.Runsc},
		{"commit", n.run.HeadSHA, run.HeadSHA},
	} {
		if same.of != same.now {
			return &proposal.StopError{Code: "sandbox.restore",
				Message: "cannot restore the saved sandbox: it was saved under another " + same.what,
				Hint:    "start a new session"}
		}
	}
	return nil
}

// beginWith makes the sandbox of s a copy of n's.
func (s *Session) beginWith(ctx context.Context, n *Snapshot) error {
	s.changes, s.omitted, s.beside = maps.Clone(n.changes), n.omitted, n.beside
	s.probing = maps.Clone(n.probing)
	s.written, s.changing = true, 1 // set-up is over
	s.stages.Sandbox.Saved = n.saved
	err := s.ensureSandbox(ctx)
	if s.stages.Sandbox.Saved = nil; err == nil {
		err = s.runner.Begin(context.WithoutCancel(ctx))
	}
	return err
}
