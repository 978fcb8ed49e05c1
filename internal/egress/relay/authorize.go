// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"net/http"
	"strconv"
	"strings"
)

// A hiddenCredential is a value that was put on a request, and the text that is shown in
// its place.
type hiddenCredential struct{ value, shown string }

// addCredentials adds the credentials for this request.
func (x *exchange) addCredentials(out *http.Request) {
	if x.proxy.scheme != "https" {
		return
	}
	for _, c := range x.session.relay.options.Credentials {
		if !x.session.isCredentialTarget(c) || !c.coversPath(x.egress.Path, out.URL.EscapedPath()) {
			continue
		}
		for _, value := range c.insertValue(out) {
			x.put = append(x.put, hiddenCredential{value, c.replacementText()})
		}
	}
	if len(x.put) > 0 {
		out.Header.Set("Accept-Encoding", "identity") // see removeEchoedSecrets
		out.Header.Del("Sec-Websocket-Extensions")    // they compress
	}
}

// isCredentialTarget reports whether c is for the session's host and port.
func (s *session) isCredentialTarget(c Credential) bool {
	host := asciiLower(c.Host)
	if s.target.Egress.Port == 443 && host == authorityFor(s.name, "") {
		return true
	}
	return s.isTargetHost(host) && host != authorityFor(s.name, "")
}

// hideCredentialHeaders replaces credentials in the headers of an answer.
func (x *exchange) hideCredentialHeaders(h http.Header) {
	if len(x.put) == 0 {
		return
	}
	for name, values := range h {
		for i, v := range values {
			h[name][i] = x.hideCredentialText(v)
		}
	}
}

// hideCredentialText replaces credentials in text, including in Go's quoted form.
func (x *exchange) hideCredentialText(text string) string {
	for _, p := range x.put {
		quoted := strconv.Quote(p.value)
		for _, form := range []string{p.value, quoted[1 : len(quoted)-1]} {
			text = strings.ReplaceAll(text, form, p.shown)
		}
	}
	return text
}
