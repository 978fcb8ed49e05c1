// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
)

// upgradeTo is the only protocol that a request may ask for (RFC 6455).
const upgradeTo = "websocket"

// webSocket reports whether a request opens a WebSocket, in the one form that servers cannot
// read as something else.
func webSocket(r *http.Request) bool {
	only := func(name, value string) bool {
		v := r.Header[name]
		return len(v) == 1 && strings.EqualFold(strings.TrimSpace(v[0]), value)
	}
	asked := false
	for _, v := range r.Header["Connection"] {
		for token := range strings.SplitSeq(v, ",") {
			asked = asked || strings.EqualFold(strings.TrimSpace(token), "upgrade")
		}
	}
	return asked && r.Method == http.MethodGet && r.Proto == "HTTP/1.1" && r.ContentLength == 0 &&
		only("Upgrade", upgradeTo) && only("Sec-Websocket-Version", "13") && len(r.Header["Sec-Websocket-Key"]) == 1
}

// permitUpgrade refuses a request for another protocol unless policy says that bytes of any kind
// may follow it.
func (x *exchange) permitUpgrade() *refusal {
	if !requestsUpgrade(x.in.Header) {
		return nil
	}
	if !x.decision.Raw {
		return &refusal{code: "upgrade", message: "the upgrade to WebSocket is not allowed",
			hint: "a rule in the policy's set raw for this request would allow it"}
	}
	x.upgrade = true
	return nil
}

// prepareUpgrade prepares a server's agreement to speak another protocol.
func (x *exchange) prepareUpgrade(res *http.Response) error {
	both, ok := res.Body.(io.ReadWriteCloser)
	if !ok || !x.upgrade {
		return errors.New("the server speaks another protocol without being asked")
	}
	x.hideCredentialHeaders(res.Header)
	res.Header.Del("Alt-Svc")
	x.status = res.StatusCode
	x.w.received.Add(headBytes("HTTP/1.1 101 Switching Protocols", res.Header))
	res.Body = &tunnel{ReadWriteCloser: both, from: x.maskedBody(both), exchange: x}
	return nil
}

// A tunnel is the server's end after an upgrade, which counts for its request.
type tunnel struct {
	io.ReadWriteCloser
	from     io.Reader
	exchange *exchange
}

func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	t.exchange.w.received.Add(int64(n))
	return n, err
}

func (t *tunnel) Write(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Write(p)
	t.exchange.sent.Add(int64(n))
	return n, err
}

// CloseWrite closes the connection to the server for writing.
func (t *tunnel) CloseWrite() error {
	if half, ok := t.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return t.Close()
}

var errEarly = errors.New("the program sent data before the server agreed to the upgrade")

// Hijack is called when the server has agreed to an upgrade.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.hijacked = true
	checked, ok := conn.(*strictReader)
	if !ok || buffers.Reader.Buffered() > 0 || !checked.stopChecks() {
		conn.Close()
		a.early = true
		return nil, nil, errEarly
	}
	return conn, buffers, nil
}

// stopChecks ends the checks, because what follows is not HTTP. It reports false if anything after the
// request's head was read. No Read may be in progress.
func (s *strictReader) stopChecks() bool {
	if s.state != inHead || len(s.out)+len(s.head)+len(s.line)+s.in.Buffered() > 0 {
		return false
	}
	s.state, s.left, s.after = inData, math.MaxInt64, atEnd
	return true
}
