// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options configure Host. All functions are required.
type Options struct {
	Name      string
	Workspace string // for Info
	// Gate makes the gate. Host closes it.
	Gate func() (*gate.Gate, error)
	gate.SessionOptions
	// Stderr, if set, is where Gate prints.
	Stderr *Relay
	// Ready is called when clients can connect, with the session's directory.
	Ready func(info Info, dir string) error
	// Ended is called with the report when the log is sealed.
	Ended func(proposal.Report, error)
}

// Host opens a session and serves it until a client ends it, ctx ends, or it was idle or open
// for too long. Then the running command has been killed and the log is sealed. The error, a
// *proposal.StopError, says that there was no session.
func Host(ctx context.Context, o Options) error {
	p, err := claimSessionDir(o.Name)
	if err != nil {
		return err
	}
	defer func() { _ = p.Remove() }()
	g, err := o.Gate()
	if err != nil {
		return err
	}
	defer g.Close()
	lifetime, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(o.Lifetime, gate.DefaultLifetime))
	defer cancel()
	inner, err := g.Open(lifetime, o.SessionOptions)
	if err != nil {
		return err
	}
	h := &sharedSession{Session: inner, ctx: lifetime, stderr: o.Stderr,
		info: Info{Name: o.Name, Session: inner.ID(), Log: absolutePath(inner.Log()),
			Workspace: absolutePath(o.Workspace),
			PID:       os.Getpid(), Started: time.Now()}}
	listener, err := p.listen()
	if err == nil {
		err = p.writeInfo(h.info)
	}
	if err == nil {
		err = o.Ready(h.info, p.Path)
	}
	if err == nil {
		return remote.ServeLocal(ctx, listener,
			remote.LocalOptions{Session: h, Describe: h.sessionInfo, Ended: o.Ended})
	}
	_, endErr := inner.Close()
	err = &proposal.StopError{Code: "session.start", Message: fmt.Sprintf("cannot serve the session %q", o.Name),
		Hint: "free space in the user's state directory", Err: err}
	return errors.Join(err, endErr)
}

// A sharedSession is one that several commands of the command line use. It gives proposals their
// ids, installs the dependencies once, whichever client waits for it, and has no approvals: who
// sends a proposal cannot be who approves it.
type sharedSession struct {
	gate.Session
	ctx    context.Context // ends after the session's lifetime
	stderr *Relay

	mu      sync.Mutex
	info    Info
	records []proposal.Record // of the set-up, for the first client
}

func (h *sharedSession) sessionInfo() any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.info
}

// Do is Do of the session, with an id, after the set-up.
func (h *sharedSession) Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	if err := h.awaitSetUp(ctx, p); err != nil {
		return proposal.Record{}, err
	}
	p.ID = h.beginProposal()
	defer h.endProposal()
	return h.Session.Do(ctx, p)
}

// Put is Put of the session, after the set-up, which begins with the files of the repository.
func (h *sharedSession) Put(ctx context.Context, name string, data []byte) (proposal.Output, error) {
	if err := h.awaitSetUp(ctx, proposal.Proposal{}); err != nil {
		return proposal.Output{}, err
	}
	return h.Session.Put(ctx, name, data)
}

// PutPart is PutPart of the session, after the set-up.
func (h *sharedSession) PutPart(ctx context.Context, name string, data []byte) (proposal.Output, error) {
	if err := h.awaitSetUp(ctx, proposal.Proposal{}); err != nil {
		return proposal.Output{}, err
	}
	return h.Session.PutPart(ctx, name, data)
}

// beginProposal counts a proposal, and returns its id.
func (h *sharedSession) beginProposal() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.info.Proposals++
	h.info.Running++
	return fmt.Sprintf("c%d", h.info.Proposals)
}

func (h *sharedSession) endProposal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.info.Running--
}

// Start refuses p.
func (h *sharedSession) Start(context.Context, proposal.Proposal) (gate.Process, error) {
	return nil, newStopError("session.request", "a session of the command line has no commands in the background",
		"run the command with: fumehood session exec")
}

// DoApproved refuses p.
func (h *sharedSession) DoApproved(
	context.Context, proposal.Proposal, proposal.ClientApproval,
) (r proposal.Record, err error) {
	return r, newStopError("session.request", "a session of the command line has no approvals",
		"propose what policy allows")
}

// SetUp ends with the session, not with the client that waits first: the next one needs it too.
// The first one whose context has not ended gets the records. What the process prints meanwhile is output.
func (h *sharedSession) SetUp(ctx context.Context, before proposal.Proposal, each func(proposal.Record)) error {
	defer h.stderr.addClient(order.OutputOf(ctx))()
	err := h.awaitSetUp(ctx, before)
	if ctx.Err() != nil {
		return err // the next client gets the records
	}
	h.mu.Lock()
	records := h.records
	h.records = nil
	h.mu.Unlock()
	for _, r := range records {
		each(r)
	}
	return err
}

// awaitSetUp runs what p needs of the set-up, and returns its error when it has ended.
func (h *sharedSession) awaitSetUp(ctx context.Context, p proposal.Proposal) error {
	done := make(chan error, 1)
	go func() { done <- h.Session.SetUp(h.ctx, p, h.addRecord) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return order.InterruptionError(ctx)
	}
}

func (h *sharedSession) addRecord(r proposal.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = append(h.records, r)
}

// absolutePath returns path, if there is one, for clients, which have other working directories.
func absolutePath(path string) string {
	if full, err := filepath.Abs(path); err == nil && path != "" {
		return full
	}
	return path
}
