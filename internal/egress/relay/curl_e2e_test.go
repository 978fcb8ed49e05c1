// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package relay

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// TestE2ECurl uploads with curl, whose TLS and HTTP/2 are not Go's.
func TestE2ECurl(t *testing.T) {
	for _, way := range ways {
		for _, version := range []string{"--http1.1", "--http2"} {
			t.Run(way.name+version, func(t *testing.T) {
				w := newWorld(t, way.port, way.d)
				server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					n, _ := io.Copy(io.Discard, r.Body)
					fmt.Fprint(w, n)
				})
				if way.scheme == "http" {
					w.http(server)
				} else {
					w.https(server)
				}
				w.start()
				out, err := exec.Command("curl", "-sS", version, "--insecure", "--max-time", "10",
					"--connect-to", "::"+w.gate, "--data-binary", strings.Repeat("x", 2<<20)[:100<<10],
					way.scheme+"://allowed.example/up").CombinedOutput()
				if string(out) != "102400" || err != nil {
					t.Errorf("curl says %q, %v", out, err)
				}
			})
		}
	}
}
