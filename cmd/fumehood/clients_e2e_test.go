// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// fast is the time within which a client must learn that it was refused.
const fast = 10 * time.Second

// gitServer serves a repository with one commit with git's own http-backend.
func gitServer(t *testing.T) http.Handler {
	t.Helper()
	root := t.TempDir()
	script := `git init -q -b main work && cd work && echo hello > greeting && git add . && git -c user.name=a -c user.email=a@b.example commit -q -m one && cd .. && git clone -q --bare work repo.git && rm -r work`
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = root
	runCommand(t, cmd)
	path := strings.TrimSpace(string(runCommand(t, exec.CommandContext(t.Context(), "git", "--exec-path"))))
	return &cgi.Handler{Path: path + "/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}
}

// serveBanner sends an SSH server's banner, reads the client's and closes the connection.
func (n *internet) serveBanner(t *testing.T) <-chan string {
	t.Helper()
	l := n.listen(n.world, "tcp", sshAddress+":22")
	banners := make(chan string, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "SSH-2.0-the_world\r\n")
			line, _ := bufio.NewReader(c).ReadString('\n')
			banners <- strings.TrimSpace(line)
			c.Close()
		}
	}()
	return banners
}

// echo responds with the request, and redirects /away.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/away" {
		http.Redirect(w, r, "https://evil.example/", http.StatusFound)
		return
	}
	if r.URL.Path == "/big" {
		_, _ = w.Write(bytes.Repeat([]byte("0123456789abcdef"), 1<<20))
		return
	}
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s %d bytes\n", r.Proto, r.Method, r.URL.RequestURI(), len(body))
}

// Third-party clients reach what they were granted, without a proxy variable, and
// get an immediate and readable error for everything else.
func TestE2EClients(t *testing.T) {
	t.Parallel()
	n, d := newInternet(t), newDesk(t)
	n.name("evil.example", otherAddress)
	n.name("ssh.example", sshAddress)
	git := gitServer(t)
	n.serve(serverAddress, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "git.example" {
			git.ServeHTTP(w, r)
			return
		}
		echo(w, r)
	}), "allowed.example", "git.example")
	banners := n.serveBanner(t)
	report := n.take(t, d, slices.Concat(curlErrands(), gitErrands(), otherErrands()))
	checkComment(t, report, "evil.example", "egress.host", "ssh.example:22")
	select {
	case banner := <-banners:
		if !strings.HasPrefix(banner, "SSH-2.0-OpenSSH") {
			t.Errorf("the SSH server was greeted with %q", banner)
		}
	default:
		t.Error("no ssh reached its server")
	}
	for _, r := range n.requests() {
		if !strings.Contains(r, "//allowed.example/") && !strings.Contains(r, "//git.example/repo.git") {
			t.Errorf("a server got %q", r)
		}
	}
}

var toAllowed = []string{"allowed.example"}

func curlErrands() []errand {
	return []errand{
		{id: "no-proxy-variables", network: toAllowed, run: "env", hides: []string{"_proxy=", "_PROXY="}, says: []string{"SSL_CERT_FILE="}},
		{id: "curl-http", network: toAllowed, run: "curl -sS http://allowed.example/a", says: []string{"HTTP/1.1 GET /a"}},
		{id: "curl-https-1", network: toAllowed, run: "curl -sS --http1.1 'https://allowed.example/b?c=d'", says: []string{"HTTP/1.1 GET /b?c=d"}},
		{id: "curl-https-2", network: toAllowed, run: "curl -sS --http2 https://allowed.example/e", says: []string{"HTTP/2.0 GET /e"}},
		{id: "curl-post", network: toAllowed, run: "head -c 3000000 /dev/zero > /tmp/body && curl -sS --data-binary @/tmp/body https://allowed.example/f", says: []string{"HTTP/2.0 POST /f 3000000 bytes"}},
		{id: "curl-big", network: toAllowed, run: "curl -sS https://allowed.example/big | sha256sum; curl -sS http://allowed.example/big | wc -c", says: []string{"16777216"}},
		{id: "wget", network: toAllowed, run: "wget -q -O - https://allowed.example/g", says: []string{"GET /g"}},
		{id: "curl-denied", network: toAllowed, fails: true, within: fast, run: "curl -sS https://evil.example/", says: []string{"Could not resolve host: evil.example"}, refused: []string{"egress.host evil.example"}},
		{id: "curl-address", network: toAllowed, fails: true, within: fast, run: "curl -sS -k https://" + otherAddress + "/", says: []string{"curl: (7)"}, refused: []string{"egress.address " + otherAddress + ":443"}},
		{id: "curl-port", network: toAllowed, fails: true, within: fast, run: "curl -sS https://allowed.example:8443/", says: []string{"curl: (7)"}, refused: []string{"egress.port allowed.example:8443"}},
		{id: "curl-host", network: toAllowed, within: fast, run: "curl -sS -H 'Host: evil.example' http://allowed.example/", says: []string{"fumehood"}, refused: []string{"mismatch allowed.example:80"}},
		{id: "curl-away", network: toAllowed, fails: true, within: fast, run: "curl -sSL https://allowed.example/away", says: []string{"Could not resolve host: evil.example"}, refused: []string{"egress.host evil.example"}},
		{id: "curl-proxy", network: toAllowed, fails: true, within: fast, run: "curl -sS -x http://allowed.example:80 https://evil.example/", says: []string{"403"}, refused: []string{"protocol allowed.example:80"}},
		{id: "wget-denied", network: toAllowed, fails: true, within: fast, run: "wget -O - https://evil.example/", says: []string{"unable to resolve host address"}, refused: []string{"egress.host evil.example"}},
		{id: "http3", network: toAllowed, code: quicCode, within: fast, says: []string{"refused"}, refused: []string{"egress.datagram allowed.example:443"}},
	}
}

// quicCode sends the first packet of a browser's HTTP/3: a QUIC version 1 Initial.
const quicCode = `
import os, socket
a = socket.getaddrinfo("allowed.example", 443, socket.AF_INET, socket.SOCK_DGRAM)[0][4]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.connect(a)
try:
    s.send(b"\xc3\0\0\0\1\x08" + os.urandom(8) + b"\0\0\x44\x96" + os.urandom(1174))
    print("out:", s.recv(2048))
except OSError as e: print("refused:", e)
`

func gitErrands() []errand {
	toGit := []string{"git.example"}
	return []errand{
		{id: "git-clone", network: toGit, run: "git clone -q https://git.example/repo.git /tmp/repo && cat /tmp/repo/greeting", says: []string{"hello"}},
		{id: "git-shallow", network: toGit, run: "git clone -q --depth 1 https://git.example/repo.git shallow && cat shallow/greeting", says: []string{"hello"}},
		{id: "git-ls-remote", network: toGit, run: "git ls-remote https://git.example/repo.git", says: []string{"refs/heads/main"}},
		{id: "git-denied", network: toGit, fails: true, within: fast, run: "git clone https://evil.example/repo.git", says: []string{"Could not resolve host: evil.example"}, refused: []string{"egress.host evil.example"}},
		{id: "git-push", network: toGit, denied: "git.verb", run: "git push https://git.example/repo.git main"},
	}
}

func otherErrands() []errand {
	toSSH := []string{"ssh.example:22"}
	return []errand{
		{id: "dig", network: toAllowed, run: "dig +short allowed.example", says: []string{"198.18."}},
		{id: "dig-six", network: toAllowed, run: "dig +short allowed.example AAAA; dig +tcp +short allowed.example", says: []string{"198.18."}},
		{id: "dig-denied", network: toAllowed, within: fast, run: "dig evil.example", says: []string{"NXDOMAIN"}, refused: []string{"egress.host evil.example"}},
		{id: "dig-text", network: toAllowed, within: fast, run: "dig allowed.example TXT", says: []string{"ANSWER: 0"}, refused: []string{"egress.type allowed.example"}},
		{id: "dig-foreign", network: toAllowed, fails: true, within: fast, run: "dig +time=2 +tries=1 @" + foreignDNS + " allowed.example", says: []string{"refused"}, refused: []string{"egress.datagram " + foreignDNS + ":53"}},
		{id: "nc", network: toAllowed, run: `printf 'GET /nc HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n' | nc -w 5 allowed.example 80`, says: []string{"200 OK", "GET /nc"}},
		{id: "nc-denied", network: toAllowed, fails: true, within: fast, run: "nc -w 5 evil.example 443", says: []string{"Name or service not known"}, refused: []string{"egress.host evil.example"}},
		{id: "nc-port", network: toAllowed, fails: true, within: fast, run: "nc -v -w 5 allowed.example 25", says: []string{"refused"}, refused: []string{"egress.port allowed.example:25"}},
		{id: "nc-datagram", network: toAllowed, within: fast, run: "echo secret | nc -u -w 2 " + foreignDNS + " 53", refused: []string{"egress.datagram " + foreignDNS + ":53"}},
		{id: "s_client", network: toAllowed, run: "openssl s_client -connect allowed.example:443 -servername allowed.example -brief < /dev/null", says: []string{"Verification: OK"}},
		{id: "s_client-other", network: toAllowed, fails: true, within: fast, run: "openssl s_client -connect allowed.example:443 -servername evil.example -brief < /dev/null", refused: []string{"mismatch allowed.example:443"}},
		{id: "s_client-none", network: toAllowed, fails: true, within: fast, run: "openssl s_client -connect allowed.example:443 -noservername -brief < /dev/null", refused: []string{"mismatch allowed.example:443"}},
		{id: "s_client-address", network: toAllowed, fails: true, within: fast, run: "openssl s_client -connect " + serverAddress + ":443 -servername allowed.example -brief < /dev/null", says: []string{"refused"}, refused: []string{"egress.address " + serverAddress + ":443"}},
		{id: "ssh", network: toSSH, fails: true, within: fast, run: "ssh -v -o BatchMode=yes -o ConnectTimeout=8 git@ssh.example info", says: []string{"remote software version the_world"}},
		{id: "ssh-denied", network: toSSH, fails: true, within: fast, run: "ssh -o BatchMode=yes git@evil.example info", says: []string{"Could not resolve hostname evil.example"}, refused: []string{"egress.host evil.example"}},
		{id: "ssh-port", network: toSSH, fails: true, within: fast, run: "ssh -p 2222 -o BatchMode=yes git@ssh.example info", says: []string{"Connection refused"}, refused: []string{"egress.port ssh.example:2222"}},
	}
}
