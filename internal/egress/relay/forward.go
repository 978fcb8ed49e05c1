// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// forward forwards the request and returns its answer.
func (x *exchange) forward() {
	r := x.in
	if r.ProtoMajor == 1 {
		http.NewResponseController(x.w).EnableFullDuplex()
	}
	if !x.upgrade {
		r.Header.Del("Upgrade")
	}
	r.Header.Del("Http2-Settings")
	x.sent.Store(headBytes(r.Method+" "+r.URL.RequestURI()+" HTTP/1.1", r.Header))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = counted{r.Body, x}
	}
	defer x.aborted()
	(&httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		Transport:      x.proxy.transport,
		ModifyResponse: x.unecho,
		FlushInterval:  -1,
		BufferPool:     buffers{},
		ErrorLog:       silent,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { x.fail(err) },
	}).ServeHTTP(x.w, r)
	x.hide(x.w.Header()) // trailers
}

// rewrite makes the request that is sent.
func (x *exchange) rewrite(p *httputil.ProxyRequest) {
	port := ""
	if n := x.egress.Port; !(x.proxy.scheme == "https" && n == 443 || x.proxy.scheme == "http" && n == 80) {
		port = strconv.Itoa(n)
	}
	p.Out.URL.Scheme = x.proxy.scheme
	p.Out.URL.Host = authority(x.session.name, port)
	p.Out.URL.RawQuery = p.In.URL.RawQuery // as it was decided
	p.Out.Host = p.In.Host
	p.Out.Trailer = p.In.Trailer // filled when the body has been read
	if x.searched {
		p.Out.Trailer = nil // trailers are not searched for secrets
	}
	x.authorize(p.Out)
}

// aborted records that the answer broke off; httputil reports that by a panic.
func (x *exchange) aborted() {
	broke := recover()
	if broke == nil {
		return
	}
	if x.in.Context().Err() == nil && x.code == "" {
		x.code = "unreachable"
		x.note("unreachable", "the answer of "+x.session.name+" was cut off")
	}
	x.noteEnd()
	panic(broke)
}

// noteEnd gives the request the code and reason with which its session ended,
// if it did.
func (x *exchange) noteEnd() {
	if code, message := x.session.ended(); code != "" {
		x.code = code
		x.note(code, message)
	}
}

// note sets the reason, unless policy gave one.
func (x *exchange) note(code, message string) {
	if x.decision.Reason == nil || x.decision.Effect == proposal.Allow {
		x.decision.Reason = reason(code, message)
	}
}

// fail answers a request for which there is no answer from the server.
func (x *exchange) fail(err error) {
	why := refusal{code: "unreachable", status: http.StatusBadGateway,
		message: "cannot reach " + x.session.name + ": " + x.plain(err)}
	var certificate *tls.CertificateVerificationError
	malformed := x.proxy.malformed()
	switch {
	case malformed != nil:
		why = *malformed
	case x.w.early:
		why = refusal{code: "protocol", message: errEarly.Error(), status: http.StatusBadRequest}
	case errors.Is(err, errBudget):
		why = refusal{code: "limit", message: errBudget.Error()}
	case errors.As(err, &certificate):
		why.code = "certificate"
		why.message = "the certificate of " + x.session.name + " is not trusted: " + x.plain(certificate.Err)
	case errors.Is(err, context.Canceled):
		x.noteEnd()
		panic(http.ErrAbortHandler)
	}
	x.note(why.code, why.message)
	x.refuse(why)
}

// plain returns err's text without credentials that a server may have put in
// it.
func (x *exchange) plain(err error) string {
	text := x.conceal(err.Error())
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "")
	}
	return oneLine(text)
}
