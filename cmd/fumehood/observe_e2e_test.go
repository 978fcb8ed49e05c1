// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	voice "github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// With --observe-network a command that was granted nothing reaches public addresses on any port,
// and neither private addresses nor this host. The record and the exit code say that nothing was
// enforced, and policy suggest writes what was tried, granting none of it.
func TestE2EObserveNetwork(t *testing.T) {
	t.Parallel()
	n, d := newInternet(t), newDesk(t)
	n.serve(serverAddress, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("hello")) }), "allowed.example", "second.example")
	n.name("ssh.example", sshAddress)
	n.name("internal.example", "10.0.0.5")
	n.name("self.example", hostAddress)
	n.serveBanner(t)
	d.write(t, "plan.yaml", `schema: fumehood.plan/v1
proposals:
  - id: it
    language: python
    code: |
      import socket, urllib.request
      def attempt(what, f):
          try: print(what, f())
          except Exception as e: print(what, "failed")
      for url in ("http://allowed.example/a", "https://second.example/b", "https://internal.example/", "https://self.example/", "http://169.254.169.254/", "http://10.0.0.5:443/", "http://gone.example/"):
          attempt(url, lambda: urllib.request.urlopen(url, timeout=10).read())
      attempt("ssh", lambda: socket.create_connection(("ssh.example", 22), 10).recv(100))
  - {id: list, run: make -n}
`)
	d.write(t, "ws/Makefile", "all:\n\ttrue\n")
	before := traces()
	cmd := n.fumehood(t.Context(), d, "it", "--observe-network")
	n.start(cmd)
	if code := exitCode(t, cmd.Wait()); code != cli.Observed {
		t.Errorf("exit code %d", code)
	}
	report := d.report(t, "it")
	want := "http://allowed.example/a b'hello'\nhttps://second.example/b b'hello'\nhttps://internal.example/ failed\nhttps://self.example/ failed\nhttp://169.254.169.254/ failed\nhttp://10.0.0.5:443/ failed\nhttp://gone.example/ failed\nssh b'SSH-2.0-the_world\\r\\n'\n"
	if out := string(report.Records[0].Result.Stdout.Head); out != want {
		t.Errorf("stdout %s", out)
	}
	n.untouched(t)
	d.checkSealed(t, "it")
	d.checkNothingLeft(t, before)
	checkComment(t, report, "Not enforced in this run:", "👁 observed", "second.example")
	if comment := voice.Markdown(report); strings.Contains(comment, "<code>udp ") {
		t.Errorf("the comment has how addresses were ordered:\n%s", comment)
	}
	checkSuggested(t, d, report)
}

func checkSuggested(t *testing.T, d desk, report proposal.Report) {
	t.Helper()
	var rows []string
	for _, h := range report.Hosts.Rows {
		rows = append(rows, h.Destination()+" "+h.Verdict)
	}
	slices.Sort(rows)
	want := []string{"10.0.0.5:443 refused", "169.254.169.254:80 refused", "allowed.example:80 observed", "gone.example observed", "internal.example refused", "second.example:443 observed", "self.example refused", "ssh.example:22 observed"}
	if !slices.Equal(rows, want) {
		t.Errorf("hosts %q", rows)
	}
	for _, past := range []string{"it.jsonl", "it.json"} {
		var s struct {
			Tried []struct{ Host, Verdict string }
			Files map[string]string
		}
		out := runCommand(t, d.command(t.Context(), "policy", "suggest", d.path(past), "--json"))
		if err := json.Unmarshal(out, &s); err != nil || len(s.Tried) != len(want) {
			t.Errorf("%s: %v: %s", past, err, out)
		}
		if file := s.Files["proposal/tried.rego"]; !strings.Contains(file, `# network contains {"rule": "tried.host-8", "host": "ssh.example:22"}`) || strings.Contains(file, "\nnetwork ") {
			t.Errorf("%s: %s", past, file)
		}
	}
	if out, err := d.command(t.Context(), "policy", "suggest", d.path("it.jsonl"), "--out", d.path("seen")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(d.path("seen/proposal/tried.rego")); err != nil {
		t.Error(err)
	}
	check := d.command(t.Context(), "policy", "check", "--organization", d.path("seen"))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("policy check: %v: %s", err, out)
	}
}
