// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A collector records everything that is sent to it, and sends the authorization back.
type collector struct {
	mu   sync.Mutex
	sent []string // "POST https://api.example/x authorization: body"
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, fmt.Sprintf("%s %s://%s%s %s: %s", r.Method, scheme, r.Host, r.URL.RequestURI(), r.Header.Get("Authorization"), body))
	w.Header().Set("X-Echo", r.Header.Get("Authorization"))
	fmt.Fprintln(w, "taken")
}

// got fails the test unless exactly want was sent, in any order.
func (c *collector) got(t *testing.T, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := slices.Sorted(slices.Values(c.sent))
	slices.Sort(want)
	if !slices.Equal(sent, want) {
		t.Errorf("sent:\n%s\nwant:\n%s", strings.Join(sent, "\n"), strings.Join(want, "\n"))
	}
}

// leaking requests URLs that have something like a secret in different places. The
// secret is assembled only there, as if a program had read it from a file.
const leaking = `
import base64, random, urllib.request
random.seed(7)
secret = "ghp" + "_" + "".join(random.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=36))
def send(url, data=None, headers={}):
    try: print("sent:", urllib.request.urlopen(urllib.request.Request(url, data=data, headers=headers), timeout=8).read())
    except OSError as e: print("refused:", e, e.read().decode() if hasattr(e, "read") else "")
`

// If a host is allowed for writing and the sent data is visible, a secret is not
// sent, but harmless data is.
func TestE2ESecretsStay(t *testing.T) {
	t.Parallel()
	n, d, c := newInternet(t), newDesk(t), &collector{}
	n.serve(serverAddress, c, "api.example")
	d.file(t, "policy/seen.rego", "package fumehood.egress\n\nintercept contains {\"rule\": \"org.seen\"} if input.name == \"api.example\"\n")
	api := []string{"api.example"}
	refused := func(id, code string) errand {
		return errand{id: id, network: api, code: leaking + code, within: fast, says: []string{"403", "what looks like a secret ("}, hides: []string{"sent:"}}
	}
	errands := []errand{
		{id: "harmless", network: api, code: leaking + `send("https://api.example/a", b"a word")`, says: []string{"sent:"}},
		refused("body", `send("https://api.example/b", b"token=" + secret.encode())`),
		refused("plain", `send("http://api.example/c", b"token=" + secret.encode())`),
		refused("header", `send("https://api.example/d", headers={"X-Note": secret})`),
		refused("url", `send("https://api.example/e?x=" + secret)`),
		refused("path", `send("https://api.example/" + secret + "/x")`),
		refused("base64", `send("https://api.example/f", base64.b64encode(b"this is " + secret.encode()))`),
	}
	for i := range errands[1:] {
		port := "443"
		if errands[i+1].id == "plain" {
			port = "80"
		}
		errands[i+1].refused = []string{"egress.secret api.example:" + port}
	}
	report := n.take(t, d, errands)
	c.got(t, "POST https://api.example/a : a word")
	checkComment(t, report, "egress.secret", "what looks like a secret")
	if found := grep(t, d.path("it.json"), "ghp"+"_"); found != "" {
		t.Error("the report shows the secret")
	}
}

// prying looks for a value everywhere that a program can look. The value is passed
// in reverse, so that the program does not find its own copy.
const prying = `
import os, sys
want = "%s"[::-1]
seen = [k for k, v in os.environ.items() if want in v]
looked = 0
def look(path):
    global looked
    try:
        with open(path, "rb") as f: data = f.read(1 << 20)
    except (OSError, ValueError): return
    looked += 1
    if want.encode() in data: seen.append(path)
for top in ("/etc", "/home", "/tmp", "/run", "/.fumehood", "/workspace"):
    for at, dirs, files in os.walk(top):
        for name in files: look(os.path.join(at, name))
for pid in os.listdir("/proc"):
    for name in ("environ", "cmdline", "status", "maps", "mounts"): look("/proc/%%s/%%s" %% (pid, name))
print("seen:", seen, "complete" if looked > 20 else looked)
`

// A credential is sent only to its host, scheme and path, and is nowhere in the sandbox.
func TestE2ECredentialStaysOutside(t *testing.T) {
	t.Parallel()
	const value = "vq8-Zr71-not-for-the-sandbox"
	n, d, c := newInternet(t), newDesk(t).operated(t), &collector{}
	d.environ = append(d.environ, "API_TOKEN="+value)
	n.serve(serverAddress, c, "api.example")
	m := &collector{}
	n.serve(sshAddress, m, "other.example")
	hosts := []string{"api.example", "other.example"}
	backwards := []byte(value)
	slices.Reverse(backwards)
	const using = `
import os, urllib.request
token = os.environ["API_TOKEN"]
def get(url):
    r = urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": "Bearer " + token}), timeout=8)
    print(url, r.headers["X-Echo"].replace(token, "PLACEHOLDER"))
`
	const inside = `Bearer PLACEHOLDER`
	errands := []errand{
		{id: "used", network: hosts, code: using + `get("https://api.example/v1/things")`, says: []string{inside}, hides: []string{value}},
		{id: "other-path", network: hosts, code: using + `get("https://api.example/v2/things")`, says: []string{inside}},
		{id: "prefix-of-a-name", network: hosts, code: using + `get("https://api.example/v1x")`, says: []string{inside}},
		{id: "plain", network: hosts, code: using + `get("http://api.example/v1/things")`, says: []string{inside}},
		{id: "other-host", network: hosts, code: using + `get("https://other.example/v1/things")`, says: []string{inside}},
		{id: "curl", network: hosts, run: `curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $API_TOKEN" https://api.example/v1/things`, says: []string{"200"}, hides: []string{value}},
		{id: "shown", network: hosts, run: `echo "$API_TOKEN"`, denied: "read.credential"},
		{id: "prying", network: hosts, code: fmt.Sprintf(prying, backwards), says: []string{"seen: [] complete"}, hides: []string{value}},
		{id: "prying-elsewhere", code: fmt.Sprintf(prying, backwards), says: []string{"seen: [] complete"}},
	}
	n.take(t, d, errands, "--credential", "API_TOKEN@api.example/v1")
	with := 0
	for _, r := range slices.Concat(c.sent, m.sent) {
		if strings.Contains(r, value) {
			with++
			if !strings.HasPrefix(r, "GET https://api.example/v1/things ") {
				t.Errorf("the credential went with %q", r)
			}
		}
	}
	if with != 2 || len(c.sent) != 5 || len(m.sent) != 1 {
		t.Errorf("the credential went %d times; sent %q and %q", with, c.sent, m.sent)
	}
	checkHidden(t, d, value)
}
