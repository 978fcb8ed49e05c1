// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/internal/kit/peer"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A waitingSession has one command, which ends with its context.
type waitingSession struct {
	gate.Session
	done    chan struct{}
	started chan struct{}
}

func (s *waitingSession) ID() string            { return "20260101-000000-0123456789ab" }
func (s *waitingSession) Log() string           { return "/log" }
func (s *waitingSession) Artifacts() string     { return "/artifacts" }
func (s *waitingSession) Done() <-chan struct{} { return s.done }

func (s *waitingSession) Close() (proposal.Report, error) {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	return proposal.Report{Run: proposal.Run{ID: s.ID()}}, nil
}

func (s *waitingSession) Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	close(s.started)
	<-ctx.Done()
	return proposal.Record{Proposal: p}, nil
}

// However many clients are attached, another one attaches, interrupts its command and ends the session.
func TestAttachedClientsBlockNoOther(t *testing.T) {
	t.Parallel()
	inner := &waitingSession{done: make(chan struct{}), started: make(chan struct{})}
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- remote.ServeLocal(context.WithoutCancel(t.Context()), peer.Listener{UnixListener: l}, remote.LocalOptions{Session: inner,
			Describe: func() any { return nil }, Ended: func(proposal.Report, error) {}})
	}()
	attach := func() *remote.Session {
		s, err := remote.Attach(t.Context(), remote.AttachOptions{Lost: func(err error) error { return err }, Dial: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for range 40 {
		defer attach().Detach()
	}
	s := attach()
	_, err = s.List(t.Context(), strings.Repeat("a", 17<<10))
	if stopped := (*proposal.StopError)(nil); !errors.As(err, &stopped) || stopped.Code != "session.request" {
		t.Errorf("a long pattern: %v", err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, proposal.Proposal{Argv: []string{"x"}})
		ended <- err
	}()
	<-inner.started
	interrupt()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("an interrupted command: %v", err)
		}
	case <-time.After(20 * time.Second): // less than a client waits before it gives up
		t.Error("the command was not interrupted")
	}
	if _, _, err := s.End(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
