// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An exchange is one request and its answer.
type exchange struct {
	proxy    *proxy
	session  *session
	began    time.Time
	in       *http.Request
	w        *answer
	egress   proposal.Egress
	decision proposal.EgressDecision
	code     string
	status   int
	sent     atomic.Int64
	put      []secret // credentials on the request
	searched bool     // for secrets
	upgrade  bool     // policy allows the other protocol that it asks for
}

// serve asks policy about the request, and forwards or refuses it.
func (x *exchange) serve() {
	dotless(x.in.URL)
	x.describe()
	if why := x.shape(); why != nil {
		x.refuse(*why)
		return
	}
	if why := x.decide(); why != nil {
		x.refuse(*why)
		return
	}
	if why := x.permitUpgrade(); why != nil {
		x.refuse(*why)
		return
	}
	x.forward()
}

// describe fills in the question to policy.
func (x *exchange) describe() {
	e := x.session.target.Egress
	e.Kind, e.Protocol = proposal.EgressRequest, x.proxy.scheme
	e.Method, e.Path = x.in.Method, cleaned(x.in.URL.Path)
	e.Query, e.Size = len(x.in.URL.RawQuery), x.in.ContentLength
	if e.Protocol == "https" {
		e.SNI = e.Name
	}
	x.egress = e
}

// decide asks policy, and includes what looks like secrets if policy wants that.
func (x *exchange) decide() *refusal {
	filter := x.session.decision.Filter
	for {
		var f *filtered
		if filter {
			var why *refusal
			if f, why = x.search(); why != nil {
				return why
			}
		}
		d, err := x.session.relay.options.Ask(x.in.Context(), x.egress)
		if err != nil {
			r := unanswered(x.in.Context())
			return &r
		}
		x.decision = d
		x.session.lower(d.Most)
		switch {
		case d.Effect != proposal.Allow:
			r := denied(d)
			return &r
		case d.Filter && !filter:
			filter = true
		case d.Redact && len(x.egress.Secrets) > 0:
			return x.redact(f)
		default:
			return nil
		}
	}
}

// refuse answers with r and records it.
func (x *exchange) refuse(r refusal) {
	x.code = r.code
	if x.decision.Reason == nil {
		x.decision.Reason = reason(r.code, r.message)
		x.decision.Reason.Suggestion = r.hint
	}
	r.last = x.in.ProtoMajor == 1 && x.in.ContentLength != 0 // the body is not read
	x.status = r.answer(x.w.ResponseWriter, x.what())
}

// what describes the request to a person.
func (x *exchange) what() string {
	return fmt.Sprintf("%s %s://%s%s", x.egress.Method, x.egress.Protocol, x.session.name, x.shown().Path)
}

// shown is egress, without its path if that contains what looks like a secret:
// records and reports reach more readers than the request did.
func (x *exchange) shown() proposal.Egress {
	e := x.egress
	if slices.ContainsFunc(e.Secrets, func(s proposal.EgressSecret) bool { return s.Where == "url" }) &&
		len(x.session.relay.options.Scan(x.in.URL.EscapedPath(), nil, nil)) > 0 {
		e.Path = "/[secret]"
	}
	return e
}

// report reports the outcome of the request.
func (x *exchange) report() {
	x.session.relay.options.Report(proposal.Flow{
		Egress: x.shown(), Decision: x.decision, Code: x.code, Inside: x.session.target.Inside,
		Sent: x.sent.Load(), Received: x.w.received.Load(), Status: x.status,
		WallMS: time.Since(x.began).Milliseconds(),
	})
}

// headBytes returns the approximate size of a head in HTTP/1.1, in bytes.
func headBytes(first string, h http.Header) int64 {
	n := int64(len(first) + 4)
	for name, values := range h {
		for _, v := range values {
			n += int64(len(name) + len(v) + 4)
		}
	}
	return n
}

// counted counts a request's body as it is sent.
type counted struct {
	io.ReadCloser
	exchange *exchange
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.exchange.sent.Add(int64(n))
	return n, err
}

// An answer writes the response. It keeps what was put on the request out of the
// response's headers.
type answer struct {
	http.ResponseWriter
	exchange *exchange
	received atomic.Int64
	hijacked bool // by an upgrade
	early    bool // see errEarly
}

func (a *answer) WriteHeader(status int) {
	h := a.Header()
	a.exchange.hide(h)
	h.Del("Alt-Svc") // would send programs to QUIC, which is refused
	if status >= 200 && a.exchange.status == 0 {
		a.exchange.status = status
		a.received.Add(headBytes("HTTP/1.1 200 OK", h))
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.exchange.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.received.Add(int64(len(p)))
	return a.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
