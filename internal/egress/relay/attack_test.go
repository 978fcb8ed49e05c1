// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// shows fails if text contains the tests' credential in any form.
func shows(t *testing.T, where, text string) {
	t.Helper()
	encoded := strings.TrimPrefix(basicOf("me:"+value), basicScheme)
	if strings.Contains(text, value) || strings.Contains(text, encoded) {
		t.Errorf("the credential is in %s: %q", where, text)
	}
}

// A server that echoes the request returns the credential without "Bearer", or decoded.
func TestAttackCredentialComesBackInPieces(t *testing.T) {
	for name, whole := range map[string]string{"bearer": "Bearer " + value, "basic": basicOf("me:" + value), "bare": value} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 443, intercept)
			w.https(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
				_, password, _ := r.BasicAuth()
				for i, v := range []string{scheme, token, password, "a" + token, "x=" + password + ";"} {
					w.Header().Set(fmt.Sprintf("X-Echo-%d", i), v)
				}
			}))
			w.options.Credentials = []Credential{{Name: "token", Host: "allowed.example", Scheme: "https", PathPrefix: "/", Header: "Authorization", Value: whole}}
			w.start()
			res, _ := get(t, w.client(true), "https://allowed.example/")
			shows(t, "the answer's header", fmt.Sprint(res.Header))
		})
	}
}

// tls serves each connection with f, which need not speak HTTP.
func (w *world) tls(f func(request *http.Request, c net.Conn)) {
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serverCA.leafCertificate(w.certificate) }}
	w.tcp(func(c net.Conn) {
		in := tls.Server(c, config)
		if r, err := http.ReadRequest(bufio.NewReader(in)); err == nil {
			f(r, in)
		}
		in.Close()
	})
}

// The error of an HTTP reader quotes a server's answer that is not HTTP.
func TestAttackCredentialComesBackInAnError(t *testing.T) {
	for _, answer := range []string{"%s\r\n\r\n", "HTTP/1.1 %s\r\n\r\n", "HTTP/%s 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n%s\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n", "HTTP/1.1 101 %[1]s\r\nConnection: Upgrade\r\nUpgrade: %[1]s\r\n\r\n"} {
		t.Run(answer, func(t *testing.T) {
			w := newWorld(t, 443, intercept)
			w.tls(func(r *http.Request, c net.Conn) {
				token := r.Header.Get("Authorization")
				if strings.Contains(answer, "Upgrade") {
					token = strings.TrimPrefix(token, "Bearer ")
				}
				fmt.Fprintf(c, answer, token)
			})
			w.options.Credentials = []Credential{{Name: "token", Host: "allowed.example", Scheme: "https", PathPrefix: "/", Header: "Authorization", Value: "Bearer " + value}}
			w.start()
			res, err := w.client(false).Get("https://allowed.example/")
			if err == nil {
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				shows(t, "the answer", fmt.Sprint(res.Status, res.Header, string(body)))
			}
			f := w.reported(points.EgressRequest, 1)[0]
			shows(t, "the record", fmt.Sprintf("%+v %+v", f, f.Decision.Reason))
			if f.Code == "" && res.StatusCode != 200 {
				t.Errorf("reported as if nothing had happened: %+v", f)
			}
		})
	}
}

// HTTP/2 carries the target as a value, which can contain more than a request line can.
func TestAttackTargetsOfHTTP2(t *testing.T) {
	for _, target := range []string{"/a b", "/?a HTTP/1.1", "/x#/../X", "/\u00e9", "/a\u2028b", "//allowed.example/a b", "/a?b#c", "/\"", "*", "/a?\u00e9"} {
		t.Run(target, func(t *testing.T) {
			w := newWorld(t, 443, intercept)
			seen := make(chan string, 1)
			w.https(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.RequestURI }))
			w.start()
			r := &http.Request{Method: "GET", URL: &url.URL{Scheme: "https", Host: "allowed.example", Opaque: target}, Header: http.Header{}}
			res, err := w.client(true).Do(r)
			if err != nil {
				return // refused by the HTTP/2 server itself
			}
			res.Body.Close()
			select {
			case at := <-seen:
				for _, c := range []byte(at) {
					if c <= ' ' || c >= 0x7f || c == '#' {
						t.Fatalf("the server saw %q", at)
					}
				}
				if !strings.HasPrefix(target, "/\"") {
					t.Errorf("the server saw %q", at)
				}
			default:
			}
		})
	}
}

// Trailers are not searched for secrets.
func TestAttackSecretInTrailers(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		w := newWorld(t, 443, proposal.EgressDecision{Effect: proposal.Allow, Intercept: true, Filter: true})
		w.options.Scan = func(string, http.Header, []byte) []proposal.EgressSecret { return nil }
		got := make(chan http.Header, 1)
		w.https(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			got <- r.Trailer
		}))
		w.start()
		r, _ := http.NewRequest("POST", "https://allowed.example/", io.NopCloser(strings.NewReader("body")))
		r.Trailer = http.Header{"X-Secret": {value}}
		res, err := w.client(h2).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if h := <-got; len(h) > 0 && h.Get("X-Secret") != "" {
			t.Errorf("h2 %v: it left as %v", h2, h)
		}
	}
}

// With Unicode case folding, the Kelvin sign equals k.
func TestAttackFoldedCoding(t *testing.T) {
	head := "POST /X HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chun\u212aed\r\n\r\n"
	if f, why := checkHead([]byte(head)); why == "" {
		t.Errorf("taken for %+v", f)
	}
}

// A request whose body was not read is the last on its connection.
func TestAttackBodyThatIsTheNextRequest(t *testing.T) {
	w := newWorld(t, 80, allow)
	w.http(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "SERVED") }))
	w.policy = func(e proposal.Egress) proposal.EgressDecision {
		if e.Method == "POST" {
			return deny
		}
		return allow
	}
	w.start()
	inner := "GET /X HTTP/1.1\r\nHost: allowed.example\r\n\r\n"
	back := w.talk(fmt.Sprintf("POST /a HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: %d\r\n\r\n%s%[2]s", len(inner), inner))
	if strings.Contains(back, "SERVED") || !strings.Contains(back, "Connection: close") {
		t.Errorf("answered %q", back)
	}
}

// A program can choose any word as the method.
func TestAttackSecretAsMethod(t *testing.T) {
	const token = "ghx_0123456789abcdefghijABCDEFGHIJ012345"
	for _, h2 := range []bool{false, true} {
		w := newWorld(t, 443, proposal.EgressDecision{Effect: proposal.Allow, Intercept: true, Filter: true})
		w.options.Scan = func(string, http.Header, []byte) []proposal.EgressSecret { return nil }
		w.https(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Method != "M-SEARCH" {
				t.Errorf("h2 %v: %s left", h2, r.Method)
			}
		}))
		w.start()
		for name, status := range map[string]int{token: 403, strings.Repeat("A", 25): 403, "get": 403, "M-SEARCH": 200} {
			r, _ := http.NewRequest(name, "https://allowed.example/", nil)
			res, err := w.client(h2).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if res.Body.Close(); res.StatusCode != status {
				t.Errorf("h2 %v, %s: status %d, want %d", h2, name, res.StatusCode, status)
			}
		}
		if reported := fmt.Sprintf("%+v", w.reported(points.EgressRequest, 4)); strings.Contains(reported, token) {
			t.Errorf("h2 %v: it is on record: %s", h2, reported)
		}
	}
}
