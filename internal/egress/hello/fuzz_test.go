// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// FuzzRead checks Read's contract, and compares its result to that of Go's TLS server:
// if both accept a message, both read the same name.
func FuzzRead(f *testing.F) {
	f.Add(real(f, &tls.Config{ServerName: "allowed.example", NextProtos: []string{"h2"}}))
	f.Add(real(f, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}))
	f.Add(records(made(names("allowed.example")), 7))
	f.Add(records(made(names("a.example"), extension{0xfe0d, []byte{0, 1}}), 100))
	f.Add(records(made(names("a.example", "b.example")), 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, raw, err := Read(bytes.NewReader(data))
		if !bytes.HasPrefix(data, raw) || len(raw) > MaxBytes+recordHeader {
			t.Fatalf("took %d bytes that are not those of the input", len(raw))
		}
		if err != nil {
			var invalid *Error
			if !errors.As(err, &invalid) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if name, err := hostName(h.ServerName); h.ServerName != "" && (err != nil || name != h.ServerName) {
			t.Fatalf("accepted the name %q", h.ServerName)
		}
		if theirs, ok := goReads(raw); ok && !strings.EqualFold(theirs, h.ServerName) {
			t.Fatalf("read %q, Go's server reads %q", h.ServerName, theirs)
		}
	})
}

// goReads returns the server name that crypto/tls finds in raw.
func goReads(raw []byte) (name string, ok bool) {
	stop := errors.New("enough")
	server := tls.Server(&script{Reader: bytes.NewReader(raw)}, &tls.Config{
		MinVersion: tls.VersionTLS10,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name, ok = h.ServerName, true
			return nil, stop
		}})
	server.HandshakeContext(context.Background())
	return name, ok
}

// A script is a connection that returns the bytes it was given.
type script struct{ *bytes.Reader }

func (*script) Write(p []byte) (int, error)      { return len(p), nil }
func (*script) Close() error                     { return nil }
func (*script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*script) SetDeadline(time.Time) error      { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }
