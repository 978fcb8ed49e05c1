// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/hello"
)

// firstBytes is an upstream that keeps the first bytes of what a program sends, only to record for
// which host they are. It checks nothing.
type firstBytes struct {
	net.Conn
	first []byte // at most hello.MaxBytes
}

func (o *firstBytes) Write(p []byte) (int, error) {
	n, err := o.Conn.Write(p)
	o.first = append(o.first, p[:min(n, hello.MaxBytes-len(o.first))]...)
	return n, err
}

// Await and CloseWrite are those of the connection.
func (o *firstBytes) Await() error {
	if patient, ok := o.Conn.(interface{ Await() error }); ok {
		return patient.Await()
	}
	return nil
}

func (o *firstBytes) CloseWrite() error { return closeWrite(o.Conn) }

// serverName returns the name in a TLS hello, or the host of an HTTP request, without a port; ""
// if the first bytes have none. It is untrusted text.
func (o *firstBytes) serverName() string {
	if len(o.first) > 0 && o.first[0] == 22 {
		h, _, _ := hello.Read(bytes.NewReader(o.first))
		return h.ServerName
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(o.first)))
	if err != nil {
		return ""
	}
	host := strings.ToLower(r.Host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
