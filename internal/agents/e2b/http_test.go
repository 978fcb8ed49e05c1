// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/agents/health"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func framed(message string) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))) + message
}

// frames returns the messages of a stream.
func frames(t *testing.T, body string) (list []string) {
	t.Helper()
	for len(body) > 0 {
		if len(body) < frameHead || len(body) < frameHead+int(binary.BigEndian.Uint32([]byte(body[1:]))) {
			t.Fatalf("a frame is cut: %q", body)
		}
		n := frameHead + int(binary.BigEndian.Uint32([]byte(body[1:])))
		list = append(list, body[frameHead:n])
		body = body[n:]
	}
	return list
}

const startEcho = `{"process":{"cmd":"/bin/bash","args":["-l","-c","echo hi"]}}`

// Requests without the right key or token, from a web page, for another host, too large or
// malformed are refused before anything happens in a sandbox.
func TestRefuses(t *testing.T) {
	lanetest.SkipShort(t)
	d := newDesk(t, Options{})
	mine, theirs := d.create(key, `{"templateID":"base"}`), d.create(other, `{}`)
	_, port, _ := strings.Cut(strings.TrimPrefix(d.url, "http://"), ":")
	api := map[string]string{"X-API-KEY": key}
	envd, code := mine.envd(), mine.code()
	connect := with(envd, "Content-Type", "application/connect+json")
	octets := with(envd, "Content-Type", "application/octet-stream")
	form := with(envd, "Content-Type", "multipart/form-data; boundary=x")
	for _, tt := range []struct {
		name, method, path, body string
		headers                  map[string]string
		want                     int
		words                    string
	}{
		{"no key", "POST", "/v2/sandboxes", "{}", nil, 401, "API key"},
		{"a wrong key", "POST", "/v2/sandboxes", "{}", map[string]string{"X-API-KEY": key[1:] + "x"}, 401, "API key"},
		{"part of a key", "GET", "/v2/sandboxes", "", map[string]string{"X-API-KEY": key[:31]}, 401, "API key"},
		{"two keys", "GET", "/v2/sandboxes", "", map[string]string{"X-API-KEY": key + "," + other}, 401, "API key"},
		{"a key as bearer", "GET", "/v2/sandboxes", "", map[string]string{"Authorization": "Bearer " + key}, 401, "API key"},
		{"the other key's sandbox", "GET", "/sandboxes/" + theirs.SandboxID, "", api, 404, "no sandbox"},
		{"kill the other key's", "DELETE", "/sandboxes/" + theirs.SandboxID, "", api, 404, "no sandbox"},
		{"the other key's timeout", "POST", "/sandboxes/" + theirs.SandboxID + "/timeout", `{"timeout":1}`, api, 404, "no sandbox"},
		{"connect to the other key's", "POST", "/v2/sandboxes/" + theirs.SandboxID + "/connect", `{}`, api, 404, "no sandbox"},
		{"a web page", "GET", "/v2/sandboxes", "", with(api, "Origin", "https://evil.example"), 403, "origins"},
		{"a file", "GET", "/v2/sandboxes", "", with(api, "Origin", "null"), 403, "origins"},
		{"rebinding", "GET", "/v2/sandboxes", "", with(api, "Host", "evil.example:"+port), 403, "Host"},
		{"rebinding inside", "POST", "/process.Process/List", "{}", with(envd, "Host", "49983-"+mine.SandboxID+".evil.example"), 403, "Host"},
		{"no sandbox", "POST", "/process.Process/List", "{}", map[string]string{"Content-Type": "application/json"}, 401, "names no sandbox"},
		{"no sandbox with this token", "POST", "/process.Process/List", "{}", with(with(envd, "E2b-Sandbox-Id", ""), "X-Access-Token", mine.TrafficAccessToken), 502, "was not found"},
		{"an unknown sandbox", "POST", "/process.Process/List", "{}", with(envd, "E2b-Sandbox-Id", "sbx"), 502, "was not found"},
		{"no token", "POST", "/process.Process/List", "{}", with(envd, "X-Access-Token", ""), 401, "access token"},
		{"a wrong token", "POST", "/process.Process/List", "{}", with(envd, "X-Access-Token", mine.EnvdAccessToken[1:]+"A"), 401, "access token"},
		{"the other sandbox's token", "POST", "/process.Process/List", "{}", with(envd, "X-Access-Token", theirs.EnvdAccessToken), 401, "access token"},
		{"the other token", "POST", "/process.Process/List", "{}", with(envd, "X-Access-Token", mine.TrafficAccessToken), 401, "access token"},
		{"a key in place of the token", "POST", "/process.Process/List", "{}", with(envd, "X-Access-Token", key), 401, "access token"},
		{"another port", "POST", "/process.Process/List", "{}", with(envd, "E2b-Sandbox-Port", "22"), 404, "nothing is served"},
		{"the other port", "POST", "/execute", `{"code":"1"}`, envd, 404, "nothing is served"},
		{"code without a token", "POST", "/execute", `{"code":"1"}`, with(code, "E2B-Traffic-Access-Token", ""), 404, "access token"},
		{"health without a token", "GET", "/health", "", with(envd, "X-Access-Token", ""), 401, "access token"},
		{"a wrong signature", "GET", "/files?path=a&signature=v1_x", "", nil, 401, "the signature"},

		{"not JSON", "POST", "/v2/sandboxes", `{"templateID":`, api, 400, "invalid request"},
		{"bad JSON", "POST", "/v2/sandboxes", `{]`, api, 400, "at byte 2"},
		{"two documents", "POST", "/v2/sandboxes", `{}{}`, api, 400, "data after"},
		{"a wrong type", "POST", "/v2/sandboxes", `{"metadata":{"a":1}}`, api, 400, "invalid request"},
		{"a large request", "POST", "/v2/sandboxes", `{"templateID":"` + strings.Repeat("x", maxAPI) + `"}`, api, 429, "more than"},
		{"much metadata", "POST", "/v2/sandboxes", `{"metadata":{"a":"` + strings.Repeat("x", maxText) + `"}}`, api, 400, "metadata"},
		{"much environment", "POST", "/v2/sandboxes", `{"envVars":{"A":"` + strings.Repeat("x", maxText) + `"}}`, api, 400, "envs"},
		{"a denied variable", "POST", "/v2/sandboxes", `{"envVars":{"A":"deny"}}`, api, 403, "test.deny: it is denied"},
		{"another template", "POST", "/v2/sandboxes", `{"templateID":"mine"}`, api, 404, "no template"},
		{"volumes", "POST", "/v2/sandboxes", `{"volumeMounts":[]}`, api, 501, "volumes"},
		{"a long timeout", "POST", "/v2/sandboxes", `{"timeout":3601}`, api, 400, "more than 1h0m0s"},
		{"a negative timeout", "POST", "/v2/sandboxes", `{"timeout":-1}`, api, 400, "timeout"},
		{"no timeout", "POST", "/sandboxes/" + mine.SandboxID + "/timeout", ``, api, 400, "timeout"},
		{"a later end", "POST", "/sandboxes/" + mine.SandboxID + "/timeout", `{"timeout":3700}`, api, 400, "must end 1h0m0s after its start"},
		{"an endless timeout", "POST", "/sandboxes/" + mine.SandboxID + "/timeout", `{"timeout":9223372036854775807}`, api, 400, "timeout"},
		{"pause the other key's", "POST", "/sandboxes/" + theirs.SandboxID + "/pause", `{}`, api, 404, "no sandbox"},
		{"resume the other key's", "POST", "/sandboxes/" + theirs.SandboxID + "/resume", `{}`, api, 404, "no sandbox"},
		{"pause without memory", "POST", "/sandboxes/" + mine.SandboxID + "/pause", `{"memory":false}`, api, 501, "keepMemory"},
		{"resume what runs", "POST", "/sandboxes/" + mine.SandboxID + "/resume", `{}`, api, 409, "running already"},
		{"snapshot elsewhere", "POST", "/sandboxes/" + mine.SandboxID + "/snapshots", `{}`, api, 501, "serve without --backend kubernetes"},
		{"a named snapshot", "POST", "/sandboxes/" + mine.SandboxID + "/snapshots", `{"name":"base"}`, api, 400, "not the name of a template"},
		{"snapshot the other key's", "POST", "/sandboxes/" + theirs.SandboxID + "/snapshots", `{}`, api, 404, "no sandbox"},
		{"fork the other key's", "POST", "/sandboxes/" + theirs.SandboxID + "/fork", `{}`, api, 404, "no sandbox"},
		{"no fork", "POST", "/sandboxes/" + mine.SandboxID + "/fork", `{"count":0}`, api, 400, "count"},
		{"many forks", "POST", "/sandboxes/" + mine.SandboxID + "/fork", `{"count":17}`, api, 400, "count"},
		{"a long fork", "POST", "/sandboxes/" + mine.SandboxID + "/fork", `{"timeout":3601}`, api, 400, "more than 1h0m0s"},
		{"delete no snapshot", "DELETE", "/templates/x", "", api, 404, "no snapshot"},
		{"templates", "GET", "/templates/x", "", api, 501, "not supported"},
		{"an unknown path", "GET", "/x", "", api, 404, "docs/E2B.md"},
		{"a bad limit", "GET", "/v2/sandboxes?limit=1000", "", api, 400, "limit"},
		{"a bad filter", "GET", "/v2/sandboxes?metadata=%25zz", "", api, 400, "metadata"},

		{"another content type", "POST", "/process.Process/List", "{}", with(envd, "Content-Type", "text/plain"), 400, "content type"},
		{"protobuf", "POST", "/process.Process/List", "", with(envd, "Content-Type", "application/proto"), 400, "content type"},
		{"compressed", "POST", "/process.Process/List", "{}", with(envd, "Content-Encoding", "gzip"), 501, "content encoding"},
		{"a large call", "POST", "/process.Process/SendSignal", strings.Repeat(" ", maxCall+1), envd, 429, "more than"},
		{"no process", "POST", "/process.Process/SendSignal", `{"process":{"pid":7},"signal":"SIGNAL_SIGKILL"}`, envd, 404, "not_found"},
		{"another signal", "POST", "/process.Process/SendSignal", `{"process":{"pid":7},"signal":"SIGNAL_SIGSTOP"}`, envd, 400, "invalid_argument"},
		{"input", "POST", "/process.Process/SendInput", `{"process":{"pid":7},"input":{"stdin":"eA=="}}`, envd, 404, "no process"},
		{"no frame", "POST", "/process.Process/Start", startEcho, connect, 200, "invalid_argument"},
		{"an empty frame", "POST", "/process.Process/Start", "", connect, 200, "not a Connect message"},
		{"a cut frame", "POST", "/process.Process/Start", framed(startEcho)[:20], connect, 200, "its head says"},
		{"two frames", "POST", "/process.Process/Start", framed(startEcho) + framed(startEcho), connect, 200, "its head says"},
		{"a long length", "POST", "/process.Process/Start", "\x00\xff\xff\xff\xff{}", connect, 200, "its head says"},
		{"a compressed frame", "POST", "/process.Process/Start", "\x01" + framed("{}")[1:], connect, 200, "unsupported flags"},
		{"a large frame", "POST", "/process.Process/Start", framed(strings.Repeat(" ", maxCall+1)), connect, 200, "resource_exhausted"},
		{"a frame that is not JSON", "POST", "/process.Process/Start", framed("{"), connect, 200, "invalid_argument"},
		{"start without a frame's type", "POST", "/process.Process/Start", framed(startEcho), envd, 200, "content type"},
		{"start with a wrong token", "POST", "/process.Process/Start", framed(startEcho), with(connect, "X-Access-Token", "x"), 200, "unauthenticated"},
		{"another user", "POST", "/process.Process/Start", framed(startEcho), with(connect, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("other:"))), 200, "the user"},
		{"a bad timeout", "POST", "/process.Process/Start", framed(startEcho), with(connect, "Connect-Timeout-Ms", "-1"), 200, "Connect-Timeout-Ms"},
		{"a pseudo-terminal", "POST", "/process.Process/Start", framed(`{"process":{"cmd":"/bin/bash"},"pty":{"size":{}}}`), connect, 200, "pseudo-terminals"},
		{"standard input", "POST", "/process.Process/Start", framed(`{"process":{"cmd":"cat"},"stdin":true}`), connect, 200, "standard input"},
		{"another directory", "POST", "/process.Process/Start", framed(`{"process":{"cmd":"ls","cwd":"/etc"}}`), connect, 200, "can run outside"},
		{"no command", "POST", "/process.Process/Start", framed(`{}`), connect, 200, "process.cmd"},
		{"watch what is not there", "POST", "/filesystem.Filesystem/WatchDir", framed(`{"path":"deny"}`), connect, 200, "policy refuses"},

		{"a file that policy denies", "GET", "/files?path=/deny", "", envd, 403, "policy refuses"},
		{"another user's file", "GET", "/files?path=a&username=other", "", envd, 400, "the user"},
		{"write a directory", "POST", "/files?path=x/", "x", octets, 400, "is a directory"},
		{"write nothing", "POST", "/files", "x", octets, 400, "path: missing"},
		{"write text", "POST", "/files?path=x", "x", with(envd, "Content-Type", "text/plain"), 400, "neither multipart"},
		{"not gzip", "POST", "/files?path=x", "x", with(octets, "Content-Encoding", "gzip"), 400, "not gzip"},
		{"a form without an end", "POST", "/files", "--x\r\nContent-Disposition: form-data; filename=a\r\n\r\nda", form, 400, "invalid form"},
		{"an empty form", "POST", "/files", "--x--\r\n", form, 400, "no file"},
		{"one bad file of two", "POST", "/files", formOf("a", "b/"), form, 400, "is a directory"},
		{"two files for one path", "POST", "/files?path=a", formOf("a", "b"), form, 400, "several files for one path"},
		{"rename the workspace", "POST", "/filesystem.Filesystem/Remove", `{"path":"."}`, envd, 400, "workspace itself"},
		{"a depth", "POST", "/filesystem.Filesystem/ListDir", `{"path":".","depth":4000000000}`, envd, 400, "depth"},

		{"another language", "POST", "/execute", `{"code":"1","language":"julia"}`, code, 404, `no interpreter for "julia"`},
		{"a repeated field", "POST", "/execute", `{"code":"1","Code":"2"}`, code, 404, `the field "Code" is repeated`},
		{"an unknown context", "POST", "/execute", `{"code":"1","context_id":"x"}`, code, 404, "no context"},
		{"large code", "POST", "/execute", `{"code":"` + strings.Repeat("x", maxCode) + `"}`, code, 404, "more than"},
		{"a context of perl", "POST", "/contexts", `{"language":"perl"}`, code, 404, "no interpreter"},
		{"remove the first context of bash", "DELETE", "/contexts/bash", "", code, 404, "can be removed"},
		{"remove the first context", "DELETE", "/contexts/python", "", code, 404, "can be removed"},
	} {
		status, body := d.call(tt.method, tt.path, tt.body, tt.headers)
		if status != tt.want || !strings.Contains(body, tt.words) {
			t.Errorf("%s: %d %s, want %d %s", tt.name, status, body, tt.want, tt.words)
		}
	}
	for i, w := range d.worlds {
		if got := w.all(); i < 2 && !slices.Equal(got, []string{"open"}) || i >= 2 && slices.Contains(got, "open") {
			t.Errorf("world %d did %q", i, got)
		}
	}
	if status, body := d.call("GET", "/v2/sandboxes", "", api); status != 200 || !strings.Contains(body, mine.SandboxID) || strings.Contains(body, theirs.SandboxID) {
		t.Errorf("list: %d %s", status, body)
	}
}

func formOf(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=%q\r\n\r\ndata of %s\r\n", name, name)
	}
	return b.String() + "--x--\r\n"
}

// What is accepted reaches the session as a proposal or a transfer of the same content.
func TestAccepts(t *testing.T) {
	d := newDesk(t, Options{})
	m := d.create(key, `{"metadata":{"a":"b"},"envVars":{"X":"1"}}`)
	connect := with(m.envd(), "Content-Type", "application/connect+json")
	_, body := d.call("POST", "/process.Process/Start", framed(startEcho), connect)
	want := []string{`{"event":{"start":{"pid":1}}}`, `{"event":{"data":{"stdout":"aGkK"}}}`, `{"event":{"end":{"exitCode":0,"exited":true,"status":"exit status 0"}}}`, `{}`}
	if diff := cmp.Diff(want, frames(t, body)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, body = d.call("POST", "/process.Process/Start", framed(`{"process":{"cmd":"deny","args":["it"]}}`), connect)
	if got := frames(t, body); len(got) != 4 || !strings.Contains(got[2], `"exitCode":126`) || !strings.Contains(got[2], "PolicyDenied: test.deny: it is denied") {
		t.Errorf("denied: %q", got)
	}
	_, body = d.call("POST", "/process.Process/Start", framed(`{"process":{"cmd":"/bin/bash","args":["-l","-c","many"]}}`), connect)
	if got := frames(t, body); len(got) != 4 || !strings.Contains(got[2], `"exitCode":0`) {
		t.Errorf("with too many in the background: %q", got)
	}
	_, body = d.call("POST", "/execute", `{"code":"deny"}`, m.code())
	if !strings.Contains(body, `"name":"PolicyDenied"`) || !strings.Contains(body, `{"type":"end_of_execution"}`) {
		t.Errorf("denied code: %s", body)
	}
	if status, body := d.call("POST", "/files", formOf("a/b", "/home/user/c d"), with(m.envd(), "Content-Type", "multipart/form-data; boundary=x")); status != 200 || !strings.Contains(body, `"path":"/home/user/c d"`) {
		t.Errorf("form: %d %s", status, body)
	}
	if got := d.worlds[0].all(); !slices.Equal(got, []string{"open", "run echo hi", "run many", "put a/b data of a/b", "put c d data of /home/user/c d"}) {
		t.Errorf("did %q", got)
	}
}

func TestQuota(t *testing.T) {
	d := newDesk(t, Options{Quota: Quota{Sandboxes: 3, Memory: 4 * proposal.GiB, Time: 150 * time.Minute}, Sandboxes: 4})
	create := func(apiKey, body string) (int, string) {
		return d.call("POST", "/v2/sandboxes", body, map[string]string{"X-API-KEY": apiKey})
	}
	first := d.create(key, `{}`)
	d.create(key, `{}`)
	if status, body := create(key, `{}`); status != 429 || !strings.Contains(body, "4 GiB of memory together") {
		t.Errorf("memory: %d %s", status, body)
	}
	d.create(other, `{}`)
	d.create(other, `{}`)
	d.call("DELETE", "/sandboxes/"+first.SandboxID, "", map[string]string{"X-API-KEY": key})
	if status, body := create(other, `{}`); status != 429 {
		t.Errorf("another key's quota: %d %s", status, body)
	}
	d.create(key, `{}`) // the place and the time of the first are free again
	d = newDesk(t, Options{Quota: Quota{Sandboxes: 3, Time: 90 * time.Minute}, Sandboxes: 3})
	d.create(key, `{}`)
	if status, body := create(key, `{"timeout":2400}`); status != 429 || !strings.Contains(body, "30m0s of sandbox time left") {
		t.Errorf("time: %d %s", status, body)
	}
	d.create(key, `{"timeout":1700}`)
	if status, body := create(key, `{}`); status != 429 || !strings.Contains(body, "all of its 1h30m0s") {
		t.Errorf("no time: %d %s", status, body)
	}
	d.create(other, `{}`)
	if status, body := create(other, `{}`); status != 503 || !strings.Contains(body, "maximum of 3 sandboxes") {
		t.Errorf("all: %d %s", status, body)
	}
	d = newDesk(t, Options{Quota: Quota{Sandboxes: 1}})
	first = d.create(key, `{}`)
	status, body := d.call("POST", "/sandboxes/"+first.SandboxID+"/fork", `{}`, map[string]string{"X-API-KEY": key})
	if status != 429 || !strings.Contains(body, "maximum of 1 sandboxes") { // and not that it cannot be saved
		t.Errorf("fork: %d %s", status, body)
	}
	if status, body := create(key, `{}`); status != 429 || !strings.Contains(body, "maximum of 1 sandboxes") {
		t.Errorf("count: %d %s", status, body)
	}
	if w := d.worlds[len(d.worlds)-1]; w.has("close gate") {
		t.Error("a refused request has ended a sandbox")
	}
}

// A sandbox ends at its timeout, although a command runs, and is not found any more.
func TestTimeout(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	d := newDesk(t, Options{})
	m := d.create(key, `{"timeout":3000}`)
	api := map[string]string{"X-API-KEY": key}
	followed := make(chan string, 1)
	go func() {
		followed <- d.cut("POST", "/process.Process/Start", framed(`{"process":{"cmd":"/bin/bash","args":["-l","-c","wait"]}}`), with(m.envd(), "Content-Type", "application/connect+json"))
	}()
	eventually(t, "the command", func() bool { return d.worlds[0].has("run wait") })
	info := func() (at time.Time) {
		_, body := d.call("GET", "/sandboxes/"+m.SandboxID, "", api)
		var x struct{ EndAt time.Time }
		if err := json.Unmarshal([]byte(body), &x); err != nil {
			t.Fatal(err)
		}
		return x.EndAt
	}
	before := info()
	if d.call("POST", "/v2/sandboxes/"+m.SandboxID+"/connect", `{"timeout":1}`, api); info() != before {
		t.Error("a connection made the sandbox end earlier")
	}
	if status, body := d.call("POST", "/v2/sandboxes/"+m.SandboxID+"/connect", `{}`, api); status != 200 || !strings.Contains(body, m.EnvdAccessToken) {
		t.Errorf("connect: %d %s", status, body)
	}
	if status, _ := d.call("POST", "/sandboxes/"+m.SandboxID+"/timeout", `{"timeout":1}`, api); status != 204 {
		t.Errorf("timeout: %d", status)
	}
	eventually(t, "the end", func() bool { return d.worlds[0].has("close gate") && d.worlds[0].has("killed") })
	if got := d.worlds[0].all(); !slices.Contains(got, "killed") || !slices.Contains(got, "seal") {
		t.Errorf("did %q", got)
	}
	if got := <-followed; strings.Contains(got, `"end"`) {
		t.Errorf("the stream of a sandbox that has ended has an end: %q", got)
	}
	if status, _ := d.call("GET", "/health", "", m.envd()); status != 502 {
		t.Errorf("health: %d", status)
	}
	if status, _ := d.call("DELETE", "/sandboxes/"+m.SandboxID, "", api); status != 404 {
		t.Errorf("kill: %d", status)
	}
}

// A paused sandbox is there, answers no request, and goes on when its client connects. Its time does not pass.
func TestPause(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	d := newDesk(t, Options{MaxTimeout: time.Hour, Timeout: 2 * time.Second})
	api := map[string]string{"X-API-KEY": key}
	m := d.create(key, `{"timeout":2}`)
	one := "/sandboxes/" + m.SandboxID
	for _, step := range []struct {
		method, path, body string
		headers            map[string]string
		status             int
		words              string
	}{
		{"GET", "/health", "", m.envd(), 204, ""},
		{"POST", one + "/pause", `{"memory":true}`, api, 204, ""},
		{"POST", one + "/pause", `{}`, api, 409, "paused already"},
		{"GET", "/health", "", m.envd(), 502, "is paused"},
		{"POST", "/process.Process/List", "{}", m.envd(), 502, "is paused"},
		{"GET", one, "", api, 200, `"state":"paused"`},
		{"GET", "/v2/sandboxes?state=paused", "", api, 200, m.SandboxID},
		{"GET", "/v2/sandboxes?state=running", "", api, 200, "[]"},
		{"wait", "", "", nil, 0, ""},
		{"GET", one, "", api, 200, `"state":"paused"`},
		{"POST", "/v2" + one + "/connect", `{"timeout":30}`, api, 200, m.EnvdAccessToken},
		{"GET", "/health", "", m.envd(), 204, ""},
		{"GET", one, "", api, 200, `"state":"running"`},
		{"POST", one + "/pause", ``, api, 204, ""},
		{"POST", one + "/resume", `{"timeout":30,"autoPause":false}`, api, 201, m.EnvdAccessToken},
		{"POST", one + "/pause", ``, api, 204, ""},
		{"DELETE", one, "", api, 204, ""},
		{"POST", one + "/pause", ``, api, 404, "no sandbox"},
	} {
		if step.method == "wait" {
			time.Sleep(2500 * time.Millisecond) // longer than its time
			continue
		}
		status, text := d.call(step.method, step.path, step.body, step.headers)
		if status != step.status || !strings.Contains(text, step.words) {
			t.Errorf("%s %s: %d %s, want %d %s", step.method, step.path, status, text, step.status, step.words)
		}
	}
	if did := strings.Join(d.worlds[0].all(), ","); !strings.Contains(did, "pause,resume,pause,resume,pause,seal") {
		t.Errorf("did %s", did)
	}
}

// Where its client wants that, the end of a sandbox's time pauses it, and any request resumes it. One that was
// paused for too long ends.
func TestAutoPause(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	d := newDesk(t, Options{Paused: 3 * time.Second})
	api := map[string]string{"X-API-KEY": key}
	itself := d.create(key, `{"timeout":1,"autoPause":true,"autoPauseMemory":true,"autoResume":{"enabled":true}}`)
	asked := d.create(key, `{"timeout":1,"autoPause":true}`)
	state := func(m made) string {
		_, text := d.call("GET", "/sandboxes/"+m.SandboxID, "", api)
		var info struct{ State string }
		_ = json.Unmarshal([]byte(text), &info)
		return info.State
	}
	eventually(t, "the pause", func() bool { return state(itself) == "paused" && state(asked) == "paused" })
	if status, text := d.call("POST", "/process.Process/List", "{}", itself.envd()); status != 200 || state(itself) != "running" {
		t.Errorf("%d %s, %s", status, text, state(itself))
	}
	if status, text := d.call("POST", "/process.Process/List", "{}", asked.envd()); status != 502 {
		t.Errorf("%d %s", status, text)
	}
	eventually(t, "the end", func() bool { return state(asked) == "" })
}

// When the server ends, every log is sealed, also that of a sandbox that is being created.
func TestDrain(t *testing.T) {
	slow, worlds := make(chan struct{}), make(chan *world, 2)
	d := newDesk(t, Options{Gate: func(context.Context, string) (gate.Opener, error) {
		w := newWorld()
		worlds <- w
		if len(worlds) == 2 {
			<-slow
		}
		return w, nil
	}})
	m := d.create(key, `{}`)
	go d.cut("POST", "/process.Process/Start", framed(`{"process":{"cmd":"/bin/bash","args":["-l","-c","wait"]}}`), with(m.envd(), "Content-Type", "application/connect+json"))
	go d.cut("POST", "/v2/sandboxes", `{}`, map[string]string{"X-API-KEY": key})
	eventually(t, "the second gate", func() bool { return len(worlds) == 2 })
	one, two := <-worlds, <-worlds
	eventually(t, "the command", func() bool { return one.has("run wait") })
	go func() {
		eventually(t, "the first seal", func() bool { return one.has("seal") })
		close(slow)
	}()
	d.stop()
	if !one.has("close gate") || !two.has("close gate") || two.has("run wait") {
		t.Errorf("did %q and %q", one.all(), two.all())
	}
}

// A session that ends by itself ends its sandbox, and gives its place back.
func TestSessionEnds(t *testing.T) {
	d := newDesk(t, Options{Quota: Quota{Sandboxes: 1}})
	first := d.create(key, `{}`)
	_, _ = fake{world: d.worlds[0]}.Close()
	eventually(t, "the place", func() bool {
		status, _ := d.call("POST", "/v2/sandboxes", `{}`, map[string]string{"X-API-KEY": key})
		return status == 201
	})
	if status, _ := d.call("GET", "/health", "", first.envd()); status != 502 {
		t.Errorf("health: %d", status)
	}
}

// What a session does not take does not end its sandbox.
func TestRefusedBySession(t *testing.T) {
	d := newDesk(t, Options{})
	b := d.sandbox(d.create(key, `{}`))
	for _, tt := range []struct {
		stop string
		want code
	}{
		{"session.proposal", invalidArgument}, {"session.request", invalidArgument},
		{"session.full", resourceExhausted}, {"session.background", resourceExhausted}, {"session.requests", resourceExhausted},
	} {
		if got := refusalOf(b.endOnError(&proposal.StopError{Code: tt.stop})); got.code != tt.want {
			t.Errorf("%s: %v", tt.stop, got)
		}
		if time.Sleep(5 * time.Millisecond); d.worlds[0].has("seal") {
			t.Fatalf("%s has ended the sandbox", tt.stop)
		}
	}
	_ = b.endOnError(&proposal.StopError{Code: "session.lost"})
	eventually(t, "the end", func() bool { return d.worlds[0].has("close gate") })
}

// A sandbox serves a number of requests at a time, of all kinds together.
func TestMaxRequests(t *testing.T) {
	d := newDesk(t, Options{})
	m := d.create(key, `{}`)
	requests := d.sandbox(m).requests
	ask := func() (metrics, health int) {
		metrics, _ = d.call("GET", "/sandboxes/"+m.SandboxID+"/metrics", "", map[string]string{"X-API-KEY": key})
		health, _ = d.call("GET", "/health", "", m.envd())
		return metrics, health
	}
	for range maxRequests {
		requests <- struct{}{}
	}
	if metrics, health := ask(); metrics != 429 || health != 429 {
		t.Errorf("full: %d and %d", metrics, health)
	}
	<-requests
	if metrics, health := ask(); metrics != 200 || health != 204 {
		t.Errorf("one place: %d and %d", metrics, health)
	}
}

// A command goes on when its client disconnects, until it is killed.
func TestDisconnect(t *testing.T) {
	d := newDesk(t, Options{})
	m := d.create(key, `{}`)
	c, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body := framed(`{"process":{"cmd":"/bin/bash","args":["-l","-c","wait"]},"tag":"t"}`)
	fmt.Fprintf(c, "POST /process.Process/Start HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", c.RemoteAddr(), len(body))
	for name, value := range with(m.envd(), "Content-Type", "application/connect+json") {
		fmt.Fprintf(c, "%s: %s\r\n", name, value)
	}
	fmt.Fprintf(c, "\r\n%s", body)
	eventually(t, "the command", func() bool { return d.worlds[0].has("run wait") })
	c.Close()
	time.Sleep(50 * time.Millisecond)
	if d.worlds[0].has("killed") {
		t.Fatal("the command has ended with its connection")
	}
	if _, body := d.call("POST", "/process.Process/List", "{}", m.envd()); !strings.Contains(body, `"pid":1`) || !strings.Contains(body, `"tag":"t"`) {
		t.Errorf("list: %s", body)
	}
	attached := make(chan string)
	go func() {
		_, body := d.call("POST", "/process.Process/Connect", framed(`{"process":{"tag":"t"}}`), with(m.envd(), "Content-Type", "application/connect+json"))
		attached <- body
	}()
	time.Sleep(20 * time.Millisecond)
	if status, _ := d.call("POST", "/process.Process/SendSignal", `{"process":{"pid":1},"signal":"SIGNAL_SIGKILL"}`, m.envd()); status != 200 {
		t.Errorf("kill: %d", status)
	}
	if got := frames(t, <-attached); !strings.Contains(got[len(got)-2], "SIGKILL") && !strings.Contains(got[0], "not_found") {
		t.Errorf("attached: %q", got)
	}
	eventually(t, "the end", func() bool {
		_, body := d.call("POST", "/process.Process/List", "{}", m.envd())
		return body == `{"processes":[]}`
	})
}

// Ids and tokens are long, and differ for each sandbox.
func TestIDs(t *testing.T) {
	d := newDesk(t, Options{})
	one, two := d.create(key, `{}`), d.create(key, `{}`)
	all := []string{one.SandboxID, one.EnvdAccessToken, one.TrafficAccessToken, two.SandboxID, two.EnvdAccessToken, two.TrafficAccessToken}
	for i, id := range all {
		if len(id) < 26 || slices.Contains(all[:i], id) || slices.ContainsFunc(all[:i], func(other string) bool { return other[4:12] == id[4:12] }) {
			t.Errorf("%q", all)
		}
	}
}

// A list has pages, an order, and filters by metadata as the SDK escapes them.
func TestList(t *testing.T) {
	d := newDesk(t, Options{})
	var ids []string
	for i := range 3 {
		ids = append(ids, d.create(key, fmt.Sprintf(`{"templateID":"base","metadata":{"n":"%d","a b":"c&d=%%é"}}`, i)).SandboxID)
	}
	list := func(query url.Values) (got []string, next string) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", d.url+"/v2/sandboxes?"+query.Encode(), nil)
		req.Header.Set("X-API-KEY", key)
		r, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var page []made
		if err := json.NewDecoder(r.Body).Decode(&page); err != nil {
			t.Fatal(err)
		}
		for _, m := range page {
			got = append(got, m.SandboxID)
		}
		return got, r.Header.Get("X-Next-Token")
	}
	escaped := url.Values{url.PathEscape("a b"): {url.PathEscape("c&d=%é")}, "n": {"1"}}.Encode()
	for _, tt := range []struct {
		query url.Values
		want  []string
	}{
		{url.Values{}, []string{ids[2], ids[1], ids[0]}},
		{url.Values{"order": {"asc"}}, ids},
		{url.Values{"metadata": {escaped}}, ids[1:2]},
		{url.Values{"metadata": {"n=4"}}, nil},
		{url.Values{"metadata": {"m="}}, nil},
		{url.Values{"state": {"running,paused"}}, []string{ids[2], ids[1], ids[0]}},
		{url.Values{"state": {"paused"}}, nil},
		{url.Values{"template": {"other"}}, nil},
		{url.Values{"startedAfter": {time.Now().Add(time.Hour).Format(time.RFC3339)}}, nil},
	} {
		if got, next := list(tt.query); !slices.Equal(got, tt.want) || next != "" {
			t.Errorf("%v: %q %q, want %q", tt.query, got, next, tt.want)
		}
	}
	for _, order := range []string{"asc", "desc"} {
		var all []string
		query := url.Values{"limit": {"1"}, "order": {order}}
		for range ids {
			got, next := list(query)
			all = append(all, got...)
			query.Set("nextToken", next)
		}
		want := slices.Clone(ids)
		if order == "desc" {
			slices.Reverse(want)
		}
		if !slices.Equal(all, want) || query.Get("nextToken") != "" {
			t.Errorf("pages %s: %q", order, all)
		}
	}
}

// The address for probes and metrics needs no key, and has nothing else.
func TestHealthAddress(t *testing.T) {
	m := health.New("v1")
	url, err := m.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	newDesk(t, Options{Metrics: m})
	for path, want := range map[string]int{"/healthz": 200, "/metrics": 200, "/sandboxes": 404, "/v2/sandboxes": 404, "/": 404} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-API-KEY", key)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
		}
	}
}
