// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"
)

// The HTTP limits, in addition to those in Limits.
const (
	maxHead         = 64 << 10
	maxResponseHead = 256 << 10
	maxStreams      = 100
	keepAlive       = time.Minute
)

var silent = log.New(io.Discard, "", 0)

// serveHTTP serves the requests on conn until it ends, and asks policy about each.
func (s *session) serveHTTP(ctx context.Context, conn net.Conn, scheme string) {
	p := newProxy(s, scheme)
	p.strict, _ = conn.(*strictReader)
	p.frames, _ = conn.(*frames)
	defer p.transport.CloseIdleConnections()
	gone := make(chan struct{})
	p.gone = sync.OnceFunc(func() { close(gone) })
	server := &http.Server{
		Handler:                      p,
		DisableGeneralOptionsHandler: true, // it would answer without asking policy
		ReadHeaderTimeout:            s.relay.options.Limits.Hello,
		IdleTimeout:                  min(keepAlive, s.relay.options.Limits.Idle),
		MaxHeaderBytes:               maxHead,
		ErrorLog:                     silent,
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				p.gone()
			}
		},
	}
	if p.frames != nil {
		// TLS is already removed. There is no other protocol to fall back to.
		server.Protocols = new(http.Protocols)
		server.Protocols.SetUnencryptedHTTP2(true)
	}
	server.Serve(&singleConnListener{conn: conn, gone: gone})
	s.closeUpstreams()
	p.running.Wait()
	if p.frames != nil {
		s.reportFault(p.frames)
	}
}

// closeUpstreams ends requests whose program is gone.
func (s *session) closeUpstreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.upstreams {
		u.Close()
	}
}

// singleConnListener is a listener that returns one connection and ends with it.
type singleConnListener struct {
	conn net.Conn
	gone <-chan struct{}
}

func (l *singleConnListener) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.gone
	return nil, net.ErrClosed
}

func (l *singleConnListener) Close() error   { return nil }
func (l *singleConnListener) Addr() net.Addr { return &net.TCPAddr{} }

// A proxy serves one connection's requests.
type proxy struct {
	session   *session
	scheme    string
	transport *http.Transport
	strict    *strictReader // for HTTP/1
	frames    *frames       // for HTTP/2
	running   sync.WaitGroup
	gone      func() // ends the serving
}

func newProxy(s *session, scheme string) *proxy {
	return &proxy{session: s, scheme: scheme, transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return s.dialTarget(ctx)
		},
		TLSClientConfig:        s.clientConfig(),
		TLSHandshakeTimeout:    s.relay.options.Limits.Hello,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // the program gets the server's answer unchanged
		ExpectContinueTimeout:  2 * time.Second,
		IdleConnTimeout:        keepAlive,
		MaxResponseHeaderBytes: maxResponseHead,
		MaxIdleConnsPerHost:    4,
	}}
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.running.Add(1)
	defer p.running.Done()
	if p.strict != nil {
		defer p.strict.markServed()
	}
	if p.frames != nil {
		p.frames.handled.Add(1)
	}
	x := &exchange{proxy: p, session: p.session, began: time.Now(), in: r}
	x.w = &answer{ResponseWriter: w, exchange: x}
	defer x.reportFlow()
	defer func() {
		if x.w.hijacked { // the server no longer knows of the connection
			p.gone()
		}
	}()
	x.serveRequest()
}

// malformedRefusal returns the refusal of malformed HTTP/1, or nil if it was not
// malformed.
func (p *proxy) malformedRefusal() *refusal {
	if p.strict == nil || p.strict.malformedReason() == "" {
		return nil
	}
	return &refusal{code: "protocol", message: "the request is malformed: " + p.strict.malformedReason(),
		status: http.StatusBadRequest}
}

// buffers provides the buffers that bodies are copied with.
type buffers struct{}

func (buffers) Get() []byte {
	b := bigBuffers.Get().(*[bigBuffer]byte)
	return b[:]
}

func (buffers) Put(b []byte) { bigBuffers.Put((*[bigBuffer]byte)(b)) }

var _ httputil.BufferPool = buffers{}
