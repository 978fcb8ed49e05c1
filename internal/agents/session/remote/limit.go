// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// limitConnections returns a listener that closes connections beyond max at once.
func limitConnections(l net.Listener, max int) net.Listener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, max)}
}

type limitedListener struct {
	net.Listener
	slots chan struct{}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &countedConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			_ = c.Close()
		}
	}
}

// A countedConn is a connection that counts until it is closed.
type countedConn struct {
	net.Conn
	free func()
}

func (s *countedConn) Close() error {
	defer s.free()
	return s.Conn.Close()
}

// writeTime is how long a client on another machine may take to read a part of an answer. One on
// this machine may be a pager, or stopped by its user's shell.
const writeTime = 30 * time.Second

// A deadlineWriter writer gives each part of an answer its own time.
type deadlineWriter struct{ http.ResponseWriter }

func (p deadlineWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p deadlineWriter) Write(data []byte) (int, error) {
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime))
	return p.ResponseWriter.Write(data)
}

// bodyTime is how long a client may take to send the body of a request.
const bodyTime = 2 * time.Minute

// readBody reads a request's body of at most max bytes, within bodyTime.
func readBody(w http.ResponseWriter, r *http.Request, max int64) ([]byte, error) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyTime))
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	if err == nil {
		_ = c.SetReadDeadline(time.Time{}) // otherwise it would end a long answer
	}
	return data, err
}
