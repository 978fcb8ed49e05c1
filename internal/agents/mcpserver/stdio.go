// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxFrame is the maximum length of one JSON-RPC message from a client.
const maxFrame = 8 << 20

// ServeStdio serves one client, whose messages come from in and go to out, one a line. It returns
// when in ends, ctx does, or a line is longer than maxFrame; the running command has been killed and
// the log sealed then. Only the last is an error, a *proposal.StopError. A line that is no message is
// answered with JSON-RPC's errors -32700 and -32600.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.setContext(ctx)
	defer s.endClients()
	to := &lockedWriter{Writer: out}
	from := &messageReader{lines: bufio.NewReader(ending{in, cancel}), closer: ending{in, cancel}, answer: to}
	err := s.mcp.Run(ctx, &mcp.IOTransport{Reader: from, Writer: to, MaxLineLength: maxFrame})
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

// A lockedWriter writes whole messages, and outlives the transport.
type lockedWriter struct {
	mu sync.Mutex
	io.Writer
}

func (w *lockedWriter) Write(message []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Writer.Write(message)
}

func (*lockedWriter) Close() error { return nil }

// A messageReader passes on the lines that are messages, and answers the others. A line that is too long is
// passed on, and ends the transport.
type messageReader struct {
	lines  *bufio.Reader
	closer io.Closer
	answer io.Writer
	rest   []byte // of the line that is passed on
	err    error  // after it
}

func (m *messageReader) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		m.rest, m.err = m.readLine()
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// readLine returns the next line, with its end, or nothing if it has answered it.
func (m *messageReader) readLine() (line []byte, err error) {
	for {
		part, err := m.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxFrame:
			return line, err
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case len(bytes.TrimSpace(line)) == 0:
			return nil, err
		}
		refusal := refusalOf(line)
		if refusal == "" {
			return line, err
		}
		if _, failed := io.WriteString(m.answer, refusal+"\n"); failed != nil && err == nil {
			err = failed
		}
		return nil, err
	}
}

// refusalOf returns the answer to a line that is no message, "" for a message or a batch.
func refusalOf(line []byte) string {
	const answer = `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"%s"}}`
	if !json.Valid(line) {
		return fmt.Sprintf(answer, jsonrpc.CodeParseError, "the line is not JSON")
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil && bytes.TrimSpace(line)[0] != '[' {
		return fmt.Sprintf(answer, jsonrpc.CodeInvalidRequest, "the line is not a JSON-RPC 2.0 message")
	}
	return ""
}

func (m *messageReader) Close() error { return m.closer.Close() }
