// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// checkRequest returns a refusal if the request is ambiguous or of a kind that never passes.
func (x *exchange) checkRequest() *refusal {
	r := x.in
	if why := x.proxy.malformedRefusal(); why != nil && r.Method == refusedMethod {
		x.egress.Method, x.egress.Path = "", ""
		return why
	}
	if !isKnownMethod(r.Method) {
		x.egress.Method = "" // it may be a secret
		return &refusal{code: "protocol", message: "unsupported HTTP method"}
	}
	if why := shapeOf(r); why != "" {
		return &refusal{code: "protocol", message: why}
	}
	if !x.session.isTargetHost(r.Host) {
		return &refusal{code: "mismatch",
			message: fmt.Sprintf("the request is for host %q, the connection for %s", r.Host, x.session.name)}
	}
	return nil
}

// maxMethod is longer than any real method.
const maxMethod = 24

// isKnownMethod reports whether text could be a method that a server knows. The method is sent
// and is not searched for secrets.
func isKnownMethod(text string) bool {
	return len(text) <= maxMethod && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

func shapeOf(r *http.Request) string {
	switch {
	case r.Method == http.MethodConnect:
		return "CONNECT is not allowed: there is no proxy, connect to the host directly"
	case r.Method == http.MethodTrace:
		return "TRACE is not allowed"
	case r.URL.IsAbs() || r.URL.Host != "" || r.URL.Opaque != "":
		return "the request is in the form for a proxy: there is no proxy, unset the proxy variables"
	case !strings.HasPrefix(r.URL.Path, "/"):
		return "the request has no path"
	case !isEncodedTarget(r.RequestURI): // possible in HTTP/2 too
		return "the path or query has a character that must be encoded"
	case requestsUpgrade(r.Header) && !webSocket(r):
		return "upgrades to another protocol than WebSocket are not allowed"
	case len(r.Header["Host"]) > 0:
		return "the request names two hosts"
	}
	return pathShape(r.URL.Path)
}

// removeDotSegments removes segments that are a plain dot, as in /debian/./Packages, which apt requests of
// flat repositories: for every server they mean nothing. What hides a dot in an encoding stays,
// and is refused.
func removeDotSegments(u *url.URL) {
	escaped := u.EscapedPath()
	for strings.Contains(escaped, "/./") {
		escaped = strings.ReplaceAll(escaped, "/./", "/")
	}
	if plain, err := url.PathUnescape(escaped); err == nil && escaped != u.EscapedPath() {
		u.Path, u.RawPath = plain, escaped
	}
}

// requestsUpgrade reports whether the request asks for another protocol. A mere offer of
// HTTP/2 in clear is not refused: it is removed, and HTTP/1.1 continues.
func requestsUpgrade(h http.Header) bool {
	for _, v := range h["Upgrade"] {
		if !strings.EqualFold(strings.TrimSpace(v), "h2c") {
			return true
		}
	}
	return false
}

// pathShape refuses what one server reads as a parent directory or a separator, and
// another as part of a name.
func pathShape(p string) string {
	for _, c := range []byte(p) {
		if c < ' ' || c == 0x7f || c == '\\' {
			return "the path has a character that servers interpret differently"
		}
	}
	folded := strings.ToLower(p)
	for _, twice := range []string{"%2e", "%2f", "%5c", "%25"} {
		if strings.Contains(folded, twice) {
			return "the path is encoded twice"
		}
	}
	for segment := range strings.SplitSeq(p, "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name == "." || name == ".." {
			return "the path has a . or .. segment"
		}
	}
	return ""
}

// mergeSlashes returns the path that policy is asked about: without repeated slashes.
func mergeSlashes(p string) string {
	if !strings.HasPrefix(p, "/") {
		return p
	}
	c := path.Clean(p)
	if c != "/" && strings.HasSuffix(p, "/") {
		c += "/"
	}
	return c
}

// isTargetHost reports whether a Host header is for the target.
func (s *session) isTargetHost(host string) bool {
	host = asciiLower(host)
	return host == authorityFor(s.name, "") || host == authorityFor(s.name, strconv.Itoa(s.target.Egress.Port))
}

func asciiLower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
