// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/kit/peer"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Door asks a Pod in another process, which has opened it: it is the path of a socket. There
// is one connection for each process that is started, open as long as that runs: if it ends,
// what was started through it is killed.
type Door string

// maxMessage bounds a message, in bytes: a process's argv and variables.
const maxMessage = 4 << 20

// knocking is how long either end may take for an answer that no other start can delay.
const knocking = 2 * starting

// A message is one JSON line of either end. The order is: Process; Admitted or Failure; Start; Launch
// or Failure; Launched or Failure; Running or Failure. Status may come at any time after Launched,
// and ends it.
type message struct {
	Process  *Process          `json:"process,omitempty"`
	Admitted bool              `json:"admitted,omitempty"`
	Start    bool              `json:"start,omitempty"`
	Launch   bool              `json:"launch,omitempty"`
	Launched bool              `json:"launched,omitempty"`
	Running  bool              `json:"running,omitempty"`
	Status   *int              `json:"status,omitempty"`
	Failure  *proposal.Failure `json:"failure,omitempty"`
}

// A link sends and receives messages.
type link struct {
	conn net.Conn
	in   *bufio.Scanner
	mu   sync.Mutex
	used sync.Once // it was started or dropped
	over int       // of the two that need the connection: Start and End
}

func newLink(conn net.Conn) *link {
	w := &link{conn: conn, in: bufio.NewScanner(conn)}
	w.in.Buffer(nil, maxMessage)
	return w
}

func (w *link) send(m message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(knocking))
	return json.NewEncoder(w.conn).Encode(m)
}

func (w *link) receive() (m message, err error) {
	if !w.in.Scan() {
		return m, errors.Join(errors.New("the other end is gone"), w.in.Err())
	}
	err = json.Unmarshal(w.in.Bytes(), &m)
	return m, err
}

// Listen answers Doors to p at path, which must be in a private directory, until the pod fails or
// is closed.
func (p *Pod) Listen(path string) error {
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return stop("pod.door", "cannot listen for the containers of the pod",
			"use a directory with a shorter path, which only root can write to", err)
	}
	go func() { <-p.failed; _ = l.Close() }()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.visit(conn)
		}
	}()
	return nil
}

// visit serves one connection.
func (p *Pod) visit(conn net.Conn) {
	defer conn.Close()
	if peer.CheckSameUser(conn.(*net.UnixConn)) != nil {
		return
	}
	w := newLink(conn)
	m, err := w.receive()
	if err != nil || m.Process == nil {
		return
	}
	m.Process.Pause = false // its command is the node's, and never comes through a door
	a, err := p.Admit(context.Background(), *m.Process)
	if err != nil {
		_ = w.send(message{Failure: proposal.FailureOf(err)})
		return
	}
	defer a.Drop()
	if err := w.send(message{Admitted: true}); err != nil {
		return
	}
	if m, err = w.receive(); err != nil || !m.Start {
		return
	}
	ended := make(chan struct{})
	if err = a.Start(func(r Ender) error { return w.launched(r, ended) }); err != nil {
		_ = w.send(message{Failure: proposal.FailureOf(err)})
		return
	}
	_ = w.send(message{Running: true}) // if it fails, the end comes next
	<-ended
}

// launched has the other end launch the process, and calls r.End when it says that this has
// ended, or is gone itself.
func (w *link) launched(r Ender, ended chan struct{}) error {
	if err := w.send(message{Launch: true}); err != nil {
		return err
	}
	_ = w.conn.SetReadDeadline(time.Now().Add(knocking))
	m, err := w.receive()
	switch {
	case err != nil:
		return stop("pod.door", "the container's shim does not answer", "look at its log", err)
	case m.Failure != nil:
		return &proposal.StopError{Code: m.Failure.Code, Message: m.Failure.Message, Hint: m.Failure.Hint}
	case !m.Launched:
		return stop("pod.door", "the container's shim did not launch the process", "use the shim of this version", nil)
	}
	_ = w.conn.SetReadDeadline(time.Time{})
	go func() {
		defer close(ended)
		status := Unknown
		if m, err := w.receive(); err == nil && m.Status != nil {
			status = *m.Status
		}
		r.End(status)
	}()
	return nil
}

// Admit implements Admitter.
func (d Door) Admit(ctx context.Context, x Process) (Admission, error) {
	conn, err := (&net.Dialer{Timeout: knocking}).DialContext(ctx, "unix", string(d))
	if err != nil {
		return nil, stop("pod.door", "the pod's gate does not answer",
			"look at the log of the shim of the pod's first container", err)
	}
	w := newLink(conn)
	_ = conn.SetReadDeadline(time.Now().Add(knocking)) // afterwards others may start before x
	defer conn.SetReadDeadline(time.Time{})
	if err := w.ask(message{Process: &x}, func(m message) bool { return m.Admitted }); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return w, nil
}

// Drop implements Admission.
func (w *link) Drop() {
	w.used.Do(func() { _ = w.conn.Close() })
}

// Start implements Admission.
func (w *link) Start(launch func(Ender) error) error {
	err := errUsed
	w.used.Do(func() {
		if err = w.start(launch); err != nil {
			_ = w.conn.Close()
			return
		}
		w.release()
	})
	return err
}

// release closes the connection when neither Start nor End needs it.
func (w *link) release() {
	w.mu.Lock()
	w.over++
	last := w.over == 2
	w.mu.Unlock()
	if last {
		_ = w.conn.Close()
	}
}

func (w *link) start(launch func(Ender) error) error {
	if err := w.ask(message{Start: true}, func(m message) bool { return m.Launch }); err != nil {
		return err
	}
	if err := launch(w); err != nil {
		_ = w.send(message{Failure: proposal.FailureOf(err)})
		return err
	}
	return w.ask(message{Launched: true}, func(m message) bool { return m.Running })
}

// ask sends m and expects an answer.
func (w *link) ask(m message, expected func(message) bool) error {
	if err := w.send(m); err != nil {
		return gone(err)
	}
	answer, err := w.receive()
	switch {
	case err != nil:
		return gone(err)
	case answer.Failure != nil:
		return &proposal.StopError{Code: answer.Failure.Code, Message: answer.Failure.Message,
			Hint: answer.Failure.Hint}
	case !expected(answer):
		return stop("pod.door", "the pod's gate gave an unexpected answer",
			"use the shim of this version for all containers", nil)
	}
	return nil
}

func gone(err error) error {
	return stop("pod.door", "the pod's gate is gone", "the pod has ended: see its log", err)
}

// End implements Ender.
func (w *link) End(status int) {
	_ = w.send(message{Status: &status}) // if it fails, the pod's gate is gone
	w.release()
}
