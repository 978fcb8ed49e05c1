// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxFrame is the maximum length of one JSON-RPC message from a client.
const maxFrame = 8 << 20

// ServeStdio serves one client, whose messages come from in and go to out, one a line. It returns
// when in ends, ctx does, or something comes that is not a message; the running command has
// been killed and the log sealed then. Only the last is an error, a *proposal.StopError.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.setContext(ctx)
	defer s.endClients()
	err := s.mcp.Run(ctx, &mcp.IOTransport{Reader: ending{in, cancel}, Writer: nopCloseWriter{out},
		MaxLineLength: maxFrame})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return &proposal.StopError{Code: "mcp.protocol", Message: "cannot read a message from the client",
		Hint: "send JSON-RPC messages, one a line, of at most 8 MiB", Err: err}
}

// setContext makes ctx the context of all sessions.
func (s *Server) setContext(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
}

// ending calls end when its input ends: the client has gone, and what it runs must too.
type ending struct {
	io.Reader
	end context.CancelFunc
}

func (e ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if err != nil {
		e.end()
	}
	return n, err
}

func (e ending) Close() error {
	if c, ok := e.Reader.(io.Closer); ok {
		return c.Close()
	}
	return errors.ErrUnsupported
}

// nopCloseWriter is a writer that outlives the transport.
type nopCloseWriter struct{ io.Writer }

func (nopCloseWriter) Close() error { return nil }
