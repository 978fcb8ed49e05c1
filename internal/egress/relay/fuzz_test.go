// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// scripted is a connection that returns the bytes it was given.
type scripted struct {
	net.Conn
	io.Reader
}

func (s scripted) Read(p []byte) (int, error) { return s.Reader.Read(p) }

// FuzzStrict compares what a strict lets through with net/http's parse: every head that
// it passes is one request there, with the same framing, and nothing else is a request.
func FuzzStrict(f *testing.F) {
	lanetest.SkipShort(f)
	for _, s := range smuggles {
		f.Add([]byte(s.text))
	}
	for _, body := range badChunks {
		f.Add([]byte("POST /a HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\n\r\n" + body))
	}
	over := make(chan struct{})
	close(over)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newStrictReader(scripted{Reader: bytes.NewReader(data)}, over)
		out, err := io.ReadAll(s)
		if err != nil && !errors.Is(err, errMalformed) {
			t.Fatalf("ended with %v", err)
		}
		bad := bytes.Index(out, []byte(refusedHead))
		if s.malformedReason() == "" && !bytes.HasPrefix(data, out) {
			t.Fatalf("%q became %q", data, out)
		}
		heads, in := 0, bufio.NewReaderSize(bytes.NewReader(out), 1<<20)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				break
			}
			heads++
			if r.Method == http.MethodConnect {
				return // the two parsers differ on what follows a CONNECT
			}
			if n := len(r.TransferEncoding); n > 1 || n == 1 && r.ContentLength != -1 {
				t.Fatalf("two framings of %q", out)
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				break
			}
		}
		if given := int(s.open.Load()); heads != given {
			t.Fatalf("gave %d heads, net/http reads %d, in %q (refused at %d, %s)", given, heads, out, bad, s.malformedReason())
		}
	})
}

// FuzzPath: a path that is not refused is the path that policy was asked about, except
// for repeated slashes.
func FuzzPath(f *testing.F) {
	for _, p := range []string{"/", "/a/../b", "/a//b/", "/%2e", "/..;x", "/.a", "/a\\b", "/a/./b", "/././/./", "/%2e/./x"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if p == "" || p[0] != '/' {
			return
		}
		if u, err := url.ParseRequestURI(p); err == nil {
			removeDotSegments(u)
			if again, err := url.ParseRequestURI(u.EscapedPath()); err != nil || again.Path != u.Path {
				t.Fatalf("%q is sent as %q, which is another path than %q: %v", p, u.EscapedPath(), u.Path, err)
			}
		}
		if pathShape(p) != "" {
			return
		}
		squeezed := string(bytes.ReplaceAll([]byte(p), []byte("//"), []byte("/")))
		for squeezed != p {
			p, squeezed = squeezed, string(bytes.ReplaceAll([]byte(squeezed), []byte("//"), []byte("/")))
		}
		if c := mergeSlashes(p); c != p {
			t.Fatalf("%q is asked about as %q", p, c)
		}
	})
}
