// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"bufio"
	"encoding/base64"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// startProxy starts a proxy that is also every server behind it, and returns its address.
func startProxy(t *testing.T, authorization string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		r := bufio.NewReader(conn)
		if connect, err := http.ReadRequest(r); err != nil || connect.Method != "CONNECT" || connect.Header.Get("Proxy-Authorization") != authorization {
			io.WriteString(conn, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		if _, err := http.ReadRequest(r); err == nil {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello from behind\n")
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}

// A job behind a proxy reaches granted hosts through it. The process that runs as root gets the
// proxy although it gets no variable, and the password is in nothing that leaves the job.
func TestE2EActionProxy(t *testing.T) {
	t.Parallel()
	const password = "hidden-5ccb7d0c"
	token := base64.StdEncoding.EncodeToString([]byte("user:" + password))
	proxy := startProxy(t, "Basic "+token)
	w := newWorld(t, true, hostRule("198.51.100.7:80"), map[string]string{"get.sh": `exec 3<> /dev/tcp/198.51.100.7/80
printf 'GET / HTTP/1.0\r\nHost: 198.51.100.7\r\n\r\n' >&3
cat <&3
env
`})
	w.Process = true // proxies are read from the environment
	plan := `schema: fumehood.plan/v1
proposals:
  - id: page
    network: ['198.51.100.7:80']
    run: bash get.sh
`
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), "INPUT_PLAN="+plan, "INPUT_NETWORK=policy", "HTTP_PROXY=http://user:"+password+"@"+proxy)
	if s.Outputs["conclusion"] != "success" || s.Code != cli.OK {
		t.Fatalf("outputs %q\n%s", s.Outputs, s.Log)
	}
	told := s.Log + s.Summary
	err := filepath.WalkDir(s.Outputs["artifact-path"], func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		told += string(data)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	jobtest.CheckContains(t, "artifact", told, "hello from behind", "it connects through the upstream proxy "+proxy)
	for _, secret := range []string{password, token} {
		if strings.Contains(told, secret) {
			t.Errorf("%s is in what the job leaves", secret)
		}
	}
}
