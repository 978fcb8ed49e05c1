// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fumehood/fumehood/internal/egress/hello"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The alerts that report a failure to a program's TLS library.
const (
	alertHandshake = 40
	alertDenied    = 49
	alertInternal  = 80
)

// sendAlert ends the connection with a fatal alert.
func (s *session) sendAlert(kind byte) {
	s.client.SetWriteDeadline(time.Now().Add(time.Second))
	s.client.Write([]byte{21, 3, 1, 0, 2, 2, kind})
	closeWrite(s.client)
	s.drainClient()
}

// drainClient briefly reads what is still arriving, so that the alert reaches the client
// before the connection is reset.
func (s *session) drainClient() {
	s.client.SetReadDeadline(time.Now().Add(250 * time.Millisecond))
	io.CopyN(io.Discard, s.client, hello.MaxBytes)
}

// readHello reads the client's hello and checks that it is for the target.
func (s *session) readHello() (hello.Hello, []byte, bool) {
	s.client.SetReadDeadline(time.Now().Add(s.relay.options.Limits.Hello))
	h, raw, err := hello.Read(s.client)
	s.client.SetReadDeadline(time.Time{})
	s.noteServerName(h.ServerName)
	var malformed *hello.Error
	switch {
	case errors.As(err, &malformed):
		s.refuseConnection(refusal{code: "hello", message: malformed.Error()})
	case err != nil:
		s.refuseConnection(refusal{code: "limit", message: "the client did not send its TLS hello in time"})
	default:
		if why := s.judgeHello(h); why != nil {
			s.refuseConnection(*why)
			break
		}
		return h, raw, true
	}
	s.sendAlert(alertDenied)
	return h, raw, false
}

// judgeHello returns a refusal if h cannot be for the target.
func (s *session) judgeHello(h hello.Hello) *refusal {
	want := s.target.Egress.Name
	switch {
	case h.Encrypted && !s.decision.Intercept:
		return &refusal{code: "hello", message: "the TLS hello hides a server name (ECH)"}
	case h.ServerName == want:
		return nil
	case h.ServerName == "":
		return &refusal{code: "mismatch",
			message: fmt.Sprintf("the TLS hello names no server, the connection is for %s", want)}
	case want == "":
		return &refusal{code: "mismatch",
			message: fmt.Sprintf("the TLS hello names %s, the connection is for an address", h.ServerName)}
	}
	return &refusal{code: "mismatch",
		message: fmt.Sprintf("the TLS hello names %s, the connection is for %s", h.ServerName, want)}
}

func (s *session) noteServerName(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flow.Egress.SNI = name
}

// passTLS asks policy about the hello and forwards TLS unchanged.
func (s *session) passTLS(ctx context.Context) {
	h, raw, ok := s.readHello()
	if !ok || !s.allowHello(ctx, h) {
		return
	}
	up, ok := s.dialUpstream(ctx)
	if !ok {
		s.sendAlert(alertInternal)
		return
	}
	if _, err := up.Write(raw); err != nil {
		return
	}
	if s.firstAnswer(up) {
		s.pumpBytes(up)
	}
}

// allowHello asks policy about h.
func (s *session) allowHello(ctx context.Context, h hello.Hello) bool {
	e := s.target.Egress
	e.Kind, e.Protocol, e.SNI = points.EgressHello, "tls", h.ServerName
	d, err := s.relay.options.Ask(ctx, e)
	why := denyRefusal(d)
	if err != nil {
		d, why = proposal.EgressDecision{}, unansweredRefusal(ctx)
	}
	s.mu.Lock()
	s.flow.Egress, s.flow.Decision = e, d
	s.mu.Unlock()
	s.lowerLimit(d.Most)
	if d.Effect == proposal.Allow {
		return true
	}
	s.refuseConnection(why)
	s.sendAlert(alertDenied)
	return false
}
