// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Snapshot is a session's sandbox at rest on the disk: files, interpreters and shells with their state. Any number of
// sessions can begin with a copy of it, also at once: see SessionOptions.From. Close must be called.
//
// It is used in this process only, and takes what the sandbox has in memory and has written. Random generators of its
// processes are the same in every copy, except for random and numpy.random of Python: seed others again.
type Snapshot struct{ inner *order.Snapshot }

// ID returns the snapshot's name in the logs of its session and of those that begin with it.
func (n *Snapshot) ID() string { return n.inner.ID() }

// Bytes returns its size on the disk.
func (n *Snapshot) Bytes() int64 { return n.inner.Bytes() }

// Close removes it from the disk, after sessions that are beginning with it. Those that have begun go on.
func (n *Snapshot) Close() error { return n.inner.Close() }

// A Snapshotter is a Session whose sandbox can be saved, as that of Gate.Open can.
type Snapshotter interface {
	Session

	// Snapshot saves the sandbox when the running command has ended; ctx is for the wait. The session goes on, and its
	// log has the snapshot.
	//
	// It is refused with sandbox.save, and nothing has changed, if the session has a network or services, its set-up
	// has not run or has failed, or commands or code run in the background. Any other error is as for Do.
	Snapshot(ctx context.Context) (*Snapshot, error)
}

func (s *session) Snapshot(ctx context.Context) (n *Snapshot, err error) {
	err = s.callInTurn(ctx, func(ctx context.Context) error {
		if len(s.setup) > 0 && !s.ready.Load() {
			return &proposal.StopError{Code: "sandbox.save",
				Message: "cannot save the sandbox: its set-up has not run", Hint: "call SetUp first"}
		}
		inner, err := s.inner.Snapshot(ctx, s.run.log.Checkpoint)
		if err == nil {
			n = &Snapshot{inner}
		}
		return err
	})
	return n, err
}
