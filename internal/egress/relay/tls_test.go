// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/egress/hello"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// handshake performs a handshake with the relay, configured by c.
func (w *world) handshake(c *tls.Config) (*tls.Conn, error) {
	conn, err := net.Dial("tcp", w.gate)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	if c.RootCAs == nil {
		c.RootCAs = w.trust()
	}
	client := tls.Client(conn, c)
	return client, client.Handshake()
}

func hello200(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello by %s", r.Proto) }

func TestTLSPassesByItsHello(t *testing.T) {
	tests := []struct {
		name   string
		port   int
		way    proposal.EgressDecision
		target string
		config *tls.Config
		code   string
	}{
		{"the name", 443, allow, "allowed.example", &tls.Config{ServerName: "allowed.example"}, ""},
		{"the name in capitals", 443, allow, "allowed.example", &tls.Config{ServerName: "ALLOWED.example"}, ""},
		{"TLS 1.2", 443, allow, "allowed.example", &tls.Config{ServerName: "allowed.example", MaxVersion: tls.VersionTLS12}, ""},
		{"another name", 443, allow, "allowed.example", &tls.Config{ServerName: "other.example"}, "mismatch"},
		{"a name below", 443, allow, "allowed.example", &tls.Config{ServerName: "x.allowed.example"}, "mismatch"},
		{"no name", 443, allow, "allowed.example", &tls.Config{InsecureSkipVerify: true}, "mismatch"},
		{"a name at an address", 443, allow, "", &tls.Config{ServerName: "other.example"}, "mismatch"},
		{"no name at an address", 443, allow, "", &tls.Config{InsecureSkipVerify: true}, ""},
		{"intercepted, the name", 443, intercept, "allowed.example", &tls.Config{ServerName: "allowed.example"}, ""},
		{"intercepted, another name", 443, intercept, "allowed.example", &tls.Config{ServerName: "other.example"}, "mismatch"},
		{"intercepted, no name", 443, intercept, "allowed.example", &tls.Config{InsecureSkipVerify: true}, "mismatch"},
		{"raw, another name", 443, raw, "allowed.example", &tls.Config{ServerName: "allowed.example"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.port, test.way)
			w.https(http.HandlerFunc(hello200))
			w.name = test.target
			w.start()
			c, err := w.handshake(test.config)
			if (err == nil) != (test.code == "") {
				t.Errorf("handshake: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "access denied") {
				t.Errorf("the program is reported %q", err)
			}
			c.NetConn().Close()
			var f []proposal.Flow
			for end := time.Now().Add(time.Minute); len(f) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
				f = append(w.reported(points.EgressConnect, 0), w.reported(points.EgressHello, 0)...)
			}
			if len(f) != 1 || f[0].Code != test.code || test.code != "" && f[0].Sent != 0 {
				t.Errorf("reported %+v", f)
			}
		})
	}
}

func TestPolicyIsAskedAboutTheHello(t *testing.T) {
	lanetest.SkipShort(t)
	w := newWorld(t, 443, allow)
	w.https(http.HandlerFunc(hello200))
	w.policy = func(e proposal.Egress) proposal.EgressDecision { return deny }
	w.start()
	if _, err := w.handshake(&tls.Config{ServerName: "allowed.example"}); err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("handshake: %v", err)
	}
	f := w.reported(points.EgressHello, 1)[0]
	if f.Code != "policy" || f.Sent != 0 || f.Egress.SNI != "allowed.example" || f.Egress.Protocol != "tls" || f.Decision.Reason.Rule != "test.deny" {
		t.Errorf("reported %+v", f)
	}
}

func TestPassedTLSIsTheServersOwn(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		w := newWorld(t, 443, allow)
		w.https(http.HandlerFunc(hello200))
		w.start()
		c := w.client(h2)
		_, body := get(t, c, "https://allowed.example/")
		if want := map[bool]string{false: "hello by HTTP/1.1", true: "hello by HTTP/2.0"}[h2]; body != want {
			t.Errorf("got %q, want %q", body, want)
		}
		c.CloseIdleConnections()
		if f := w.reported(points.EgressHello, 1)[0]; f.Code != "" || f.Sent < 200 || f.Received < 500 || len(w.questions(points.EgressRequest)) != 0 {
			t.Errorf("reported %+v", f)
		}
	}
}

func TestHiddenNameIsRefused(t *testing.T) {
	w := newWorld(t, 443, allow)
	w.https(http.HandlerFunc(hello200))
	w.start()
	back := w.talk(string(echHello))
	if back != "\x15\x03\x01\x00\x02\x02\x31" {
		t.Errorf("answered %q, want an alert", back)
	}
	f := w.reported(points.EgressConnect, 1)[0]
	if f.Code != "hello" || f.Sent != 0 || !strings.Contains(f.Decision.Reason.Message, "ECH") {
		t.Errorf("reported %+v", f)
	}
}

// echHello is a hello for allowed.example with an encrypted_client_hello.
var echHello = func() []byte {
	ext := "\x00\x00\x00\x14\x00\x12\x00\x00\x0fallowed.example" + "\xfe\x0d\x00\x02\x00\x01"
	body := "\x03\x03" + strings.Repeat("r", 32) + "\x00" + "\x00\x02\x13\x01" + "\x01\x00" + string([]byte{0, byte(len(ext))}) + ext
	message := "\x01\x00\x00" + string([]byte{byte(len(body))}) + body
	return []byte("\x16\x03\x01\x00" + string([]byte{byte(len(message))}) + message)
}()

// A server may ask for a second hello and serve the name in it.
func TestSecondHelloIsChecked(t *testing.T) {
	lanetest.SkipShort(t)
	tests := []struct {
		name, second, code string
	}{
		{"the same name", "allowed.example", ""},
		{"another name", "evil.example", "mismatch"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, 443, allow)
			second := make(chan string, 1)
			w.tcp(func(c net.Conn) {
				hello.Read(c)
				retry := append([]byte{22, 3, 3, 0, 40, 2, 0, 0, 36, 3, 3}, helloRetry...)
				c.Write(append(retry, 0, 0x13, 0x01, 0))
				c.SetReadDeadline(time.Now().Add(time.Minute))
				io.CopyN(io.Discard, c, 6) // the change cipher spec record
				h, _, err := hello.Read(c)
				if err != nil {
					h.ServerName = "nothing"
				}
				second <- h.ServerName
			})
			w.start()
			conn, err := net.Dial("tcp", w.gate)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.Write(helloFor("allowed.example"))
			if record, err := readRecord(conn); err != nil || len(record) != 45 {
				t.Fatalf("the server's answer is %q, %v", record, err)
			}
			conn.Write([]byte{20, 3, 3, 0, 1, 1})
			conn.Write(helloFor(test.second))
			want := "nothing"
			if test.code == "" {
				want = test.second
			}
			if got := <-second; got != want {
				t.Errorf("the server saw %q, want %q", got, want)
			}
			conn.Close()
			if f := w.reported(points.EgressHello, 1)[0]; f.Code != test.code {
				t.Errorf("reported %+v", f)
			}
		})
	}
}

// helloFor returns the first message of Go's client.
func helloFor(name string) []byte {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go tls.Client(theirs, &tls.Config{ServerName: name}).HandshakeContext(context.Background())
	_, raw, _ := hello.Read(ours)
	return raw
}

// OpenSSL asks for a second hello if the first key share has the wrong group.
func TestRealSecondHello(t *testing.T) {
	w := newWorld(t, 443, allow)
	w.https(http.HandlerFunc(hello200))
	leaf, _ := serverCA.leafCertificate(w.name)
	l := listen(t)
	w.server = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*leaf}, CurvePreferences: []tls.CurveID{tls.CurveP384}}).Handshake()
		}
	}()
	w.start()
	c, err := w.handshake(&tls.Config{ServerName: "allowed.example", CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP384}})
	if err != nil || !c.ConnectionState().HelloRetryRequest {
		t.Errorf("handshake: %v, asked twice %v", err, c.ConnectionState().HelloRetryRequest)
	}
}
