// SPDX-License-Identifier: Apache-2.0

//go:build linux

package remote

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// limited returns a listener that closes connections beyond max at once.
func limited(l net.Listener, max int) net.Listener {
	return &limit{Listener: l, slots: make(chan struct{}, max)}
}

type limit struct {
	net.Listener
	slots chan struct{}
}

func (l *limit) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &slot{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			_ = c.Close()
		}
	}
}

// A slot is a connection that counts until it is closed.
type slot struct {
	net.Conn
	free func()
}

func (s *slot) Close() error {
	defer s.free()
	return s.Conn.Close()
}

// writeTime is how long a client may take to read a part of an answer.
const writeTime = 30 * time.Second

// A patient writer gives each part of an answer its own time.
type patient struct{ http.ResponseWriter }

func (p patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p patient) Write(data []byte) (int, error) {
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime))
	return p.ResponseWriter.Write(data)
}

// bodyTime is how long a client may take to send the body of a request.
const bodyTime = 2 * time.Minute

// receive calls read with a time limit for the request's body.
func receive[T any](w http.ResponseWriter, read func() (T, error)) (T, error) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyTime))
	v, err := read()
	if err == nil {
		_ = c.SetReadDeadline(time.Time{}) // otherwise it would end a long answer
	}
	return v, err
}
