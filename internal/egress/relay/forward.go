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

// forwardRequest forwards the request and returns its answer.
func (x *exchange) forwardRequest() {
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
		r.Body = countedBody{r.Body, x}
	}
	defer x.recordAborted()
	(&httputil.ReverseProxy{
		Rewrite:        x.rewriteRequest,
		Transport:      x.proxy.transport,
		ModifyResponse: x.removeEchoedSecrets,
		FlushInterval:  -1,
		BufferPool:     buffers{},
		ErrorLog:       silent,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { x.answerFailure(err) },
	}).ServeHTTP(x.w, r)
	x.hideCredentialHeaders(x.w.Header()) // trailers
}

// rewriteRequest makes the request that is sent.
func (x *exchange) rewriteRequest(p *httputil.ProxyRequest) {
	port := ""
	if n := x.egress.Port; !(x.proxy.scheme == "https" && n == 443 || x.proxy.scheme == "http" && n == 80) {
		port = strconv.Itoa(n)
	}
	p.Out.URL.Scheme = x.proxy.scheme
	p.Out.URL.Host = authorityFor(x.session.name, port)
	p.Out.URL.RawQuery = p.In.URL.RawQuery // as it was decided
	p.Out.Host = p.In.Host
	p.Out.Trailer = p.In.Trailer // filled when the body has been read
	if x.searched {
		p.Out.Trailer = nil // trailers are not searched for secrets
	}
	x.addCredentials(p.Out)
}

// recordAborted records that the answer broke off; httputil reports that by a panic.
func (x *exchange) recordAborted() {
	broke := recover()
	if broke == nil {
		return
	}
	if x.in.Context().Err() == nil && x.code == "" {
		x.code = "unreachable"
		x.setReason("unreachable", "the answer of "+x.session.name+" was cut off")
	}
	x.noteEnd()
	panic(broke)
}

// noteEnd gives the request the code and reason with which its session ended,
// if it did.
func (x *exchange) noteEnd() {
	if code, message := x.session.endReason(); code != "" {
		x.code = code
		x.setReason(code, message)
	}
}

// setReason sets the reason, unless policy gave one.
func (x *exchange) setReason(code, message string) {
	if x.decision.Reason == nil || x.decision.Effect == proposal.Allow {
		x.decision.Reason = refusalReason(code, message)
	}
}

// answerFailure answers a request for which there is no answer from the server.
func (x *exchange) answerFailure(err error) {
	why := refusal{code: "unreachable", status: http.StatusBadGateway,
		message: "cannot reach " + x.session.name + ": " + x.redactError(err)}
	var certificate *tls.CertificateVerificationError
	malformed := x.proxy.malformedRefusal()
	switch {
	case malformed != nil:
		why = *malformed
	case x.w.early:
		why = refusal{code: "protocol", message: errEarly.Error(), status: http.StatusBadRequest}
	case errors.Is(err, errBudget):
		why = refusal{code: "limit", message: errBudget.Error()}
	case errors.As(err, &certificate):
		why.code = "certificate"
		why.message = "the certificate of " + x.session.name + " is not trusted: " + x.redactError(certificate.Err)
	case errors.Is(err, context.Canceled):
		x.noteEnd()
		panic(http.ErrAbortHandler)
	}
	x.setReason(why.code, why.message)
	x.refuseRequest(why)
}

// redactError returns err's text without credentials that a server may have put in
// it.
func (x *exchange) redactError(err error) string {
	text := x.hideCredentialText(err.Error())
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "")
	}
	return oneLine(text)
}
