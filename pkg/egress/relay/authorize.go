// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"net/http"
	"strings"
)

// A secret is what was put on a request, and what is shown for it.
type secret struct{ value, shown string }

// authorize puts on the credentials that are for this request.
func (x *exchange) authorize(out *http.Request) {
	if x.proxy.scheme != "https" {
		return
	}
	for _, c := range x.session.relay.options.Credentials {
		if !x.session.credentialed(c) || !c.covers(x.egress.Path, out.URL.EscapedPath()) {
			continue
		}
		for _, value := range c.put(out.Header) {
			x.put = append(x.put, secret{value, c.shown()})
		}
	}
}

// credentialed says whether c is for the session's host and port.
func (s *session) credentialed(c Credential) bool {
	host := asciiLower(c.Host)
	if s.target.Egress.Port == 443 && host == authority(s.name, "") {
		return true
	}
	return s.hosts(host) && host != authority(s.name, "")
}

// hide replaces credentials in the headers of an answer.
func (x *exchange) hide(h http.Header) {
	for _, p := range x.put {
		for name, values := range h {
			for i, v := range values {
				if strings.Contains(v, p.value) {
					h[name][i] = strings.ReplaceAll(v, p.value, p.shown)
				}
			}
		}
	}
}
