// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const behindProxy = `
schema: fumehood.plan/v1
proposals:
  - {id: page, run: ./task page, network: [api.example]}
`

// companyProxy is a proxy that is also every server behind it. It repeats what it was sent.
func companyProxy(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				connect, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
				if _, err := http.ReadRequest(r); err == nil {
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello from "+connect.RequestURI+" "+connect.Header.Get("Proxy-Authorization")+"\n")
				}
			}()
		}
	}()
	return l.Addr().String()
}

// On a host without names, behind a proxy with a password, a granted host is reached; the log says
// how, and nothing has the password.
func TestBehindProxy(t *testing.T) {
	needSandbox(t)
	const password = "hidden-5ccb7d0c"
	proxy := companyProxy(t)
	for _, name := range []string{"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"} {
		t.Setenv(name, "")
	}
	t.Setenv("HTTP_PROXY", "http://user:"+password+"@"+proxy)
	g, err := gate.New(t.Context(), gate.Options{
		Workspace: "testdata/project",
		Policies:  []gate.Policy{{Name: "hosts", Role: "opens", Files: map[string][]byte{"hosts.rego": []byte(hosts)}}},
		Resolvers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	report, err := g.Run(t.Context(), decode(t, behindProxy))
	if err != nil {
		t.Fatal(err)
	}
	result := report.Records[0].Result
	if result == nil || !strings.Contains(string(result.Stdout.Head), "hello from api.example:80 Basic ") {
		t.Fatalf("%+v\n%s\n%s", result, result.Stdout.Head, result.Stderr.Head)
	}
	log, err := os.ReadFile(report.Audit.File)
	if err != nil {
		t.Fatal(err)
	}
	if words := "it connects through the upstream proxy " + proxy + ", "; !strings.Contains(strings.Join(report.Run.Enforced, "\n"), words) || !strings.Contains(string(log), words) {
		t.Errorf("the report and the log do not name the proxy: %q", report.Run.Enforced)
	}
	document, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte("user:" + password))} {
		if strings.Contains(string(document)+string(log)+string(result.Stdout.Head), secret) {
			t.Errorf("%s is shown", secret)
		}
	}
}

// A variable that cannot be used stops the run, and is not quoted.
func TestInvalidProxy(t *testing.T) {
	needSandbox(t)
	t.Setenv("https_proxy", "socks5://user:hidden-5ccb7d0c@127.0.0.1:1")
	g, err := gate.New(t.Context(), gate.Options{
		Workspace: "testdata/project",
		Policies:  []gate.Policy{{Name: "hosts", Role: "opens", Files: map[string][]byte{"hosts.rego": []byte(hosts)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	report, err := g.Run(t.Context(), decode(t, behindProxy))
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != "network.proxy" || strings.Contains(err.Error(), "hidden") || report.Records[0].Result != nil && report.Records[0].Result.Succeeded() {
		t.Errorf("%v, %+v", err, report.Records[0])
	}
}
