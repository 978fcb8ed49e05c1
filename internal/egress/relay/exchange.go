// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/internal/kit/points"
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
	put      []hiddenCredential // credentials on the request
	searched bool               // for secrets
	upgrade  bool               // policy allows the other protocol that it asks for
}

// serveRequest asks policy about the request, and forwards or refuses it.
func (x *exchange) serveRequest() {
	removeDotSegments(x.in.URL)
	x.describeRequest()
	if why := x.checkRequest(); why != nil {
		x.refuseRequest(*why)
		return
	}
	if why := x.askPolicy(); why != nil {
		x.refuseRequest(*why)
		return
	}
	if why := x.permitUpgrade(); why != nil {
		x.refuseRequest(*why)
		return
	}
	x.forwardRequest()
}

// describeRequest fills in the question to policy.
func (x *exchange) describeRequest() {
	e := x.session.target.Egress
	e.Kind, e.Protocol = points.EgressRequest, x.proxy.scheme
	e.Method, e.Path = x.in.Method, mergeSlashes(x.in.URL.Path)
	e.Query, e.Size = len(x.in.URL.RawQuery), x.in.ContentLength
	e.Escaped = strings.Contains(strings.ToLower(x.in.URL.EscapedPath()), "%2f")
	if e.Protocol == "https" {
		e.SNI = e.Name
	}
	x.egress = e
}

// askPolicy asks policy, and includes what looks like secrets if policy wants that.
func (x *exchange) askPolicy() *refusal {
	filter := x.session.decision.Filter
	for {
		var f *searchedRequest
		if filter {
			var why *refusal
			if f, why = x.searchRequest(); why != nil {
				return why
			}
		}
		d, err := x.session.relay.options.Ask(x.in.Context(), x.egress)
		if err != nil {
			r := unansweredRefusal(x.in.Context())
			return &r
		}
		x.decision = d
		x.session.lowerLimit(d.Most)
		switch {
		case d.Effect != proposal.Allow:
			r := denyRefusal(d)
			return &r
		case d.Filter && !filter:
			filter = true
		case d.Redact && len(x.egress.Secrets) > 0:
			return x.redactRequest(f)
		default:
			return nil
		}
	}
}

// refuseRequest answers with r and records it.
func (x *exchange) refuseRequest(r refusal) {
	x.code = r.code
	if x.decision.Reason == nil {
		x.decision.Reason = refusalReason(r.code, r.message)
		x.decision.Reason.Suggestion = r.hint
	}
	r.last = x.in.ProtoMajor == 1 && x.in.ContentLength != 0 // the body is not read
	x.status = r.writeAnswer(x.w.ResponseWriter, x.requestSummary())
}

// requestSummary describes the request to a person.
func (x *exchange) requestSummary() string {
	return fmt.Sprintf("%s %s://%s%s", x.egress.Method, x.egress.Protocol, x.session.name, x.reportedEgress().Path)
}

// reportedEgress is egress, without its path if that contains what looks like a secret:
// records and reports reach more readers than the request did.
func (x *exchange) reportedEgress() proposal.Egress {
	e := x.egress
	if slices.ContainsFunc(e.Secrets, func(s proposal.EgressSecret) bool { return s.Where == "url" }) &&
		len(x.session.relay.options.Scan(x.in.URL.EscapedPath(), nil, nil)) > 0 {
		e.Path = "/[secret]"
	}
	return e
}

// reportFlow reports the outcome of the request.
func (x *exchange) reportFlow() {
	x.session.relay.options.Report(proposal.Flow{
		Egress: x.reportedEgress(), Decision: x.decision, Code: x.code, Inside: x.session.target.Inside,
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

// countedBody counts a request's body as it is sent.
type countedBody struct {
	io.ReadCloser
	exchange *exchange
}

func (c countedBody) Read(p []byte) (int, error) {
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
	a.exchange.hideCredentialHeaders(h)
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
