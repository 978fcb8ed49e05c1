// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// serveStreams serves port 7 outside: the first byte selects the mode.
func (w *world) serveStreams() error {
	l, err := listen(w.ns, "[::]:7")
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := touching{l, w}.Accept()
			if err != nil {
				return
			}
			go stream(conn)
		}
	}()
	return nil
}

func stream(conn net.Conn) {
	defer conn.Close()
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		return
	}
	switch first[0] {
	case 'z': // endless zeros
		buf := make([]byte, 1<<20)
		for {
			if _, err := conn.Write(buf); err != nil {
				return
			}
		}
	case 'n': // sends and reads nothing
		_, _ = io.ReadFull(conn, make([]byte, 1))
		select {}
	case 'e': // echo
		_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn})
	}
}

// proxy is a small CONNECT proxy in the host's namespace.
func proxy(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			r, err := http.ReadRequest(bufio.NewReader(client))
			if err != nil || r.Method != http.MethodConnect {
				return
			}
			server, err := net.Dial("tcp", r.Host)
			if err != nil {
				return
			}
			defer server.Close()
			_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
			go func() { _, _ = io.Copy(server, client) }()
			_, _ = io.Copy(client, server)
		}()
	}
}
