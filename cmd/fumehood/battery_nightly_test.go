// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	voice "github.com/fumehood/fumehood/internal/evidence/report"
)

// THREATS 17, 20 and 36: whatever a command tries, nothing leaves except for what policy
// allows, and all attempts are recorded; with network off, and with one domain allowed.
func TestNightlyBattery(t *testing.T) {
	for _, test := range []struct {
		name    string
		network []string
	}{{"network off", nil}, {"one domain allowed", []string{"allowed.example", "inside.example"}}} {
		t.Run(test.name, func(t *testing.T) {
			n, d := newInternet(t), newDesk(t)
			n.name("evil.example", otherAddress)
			n.name("rebind.allowed.example", "10.0.0.5")
			n.name("inside.example", "10.0.0.5", serverAddress)
			n.serve(serverAddress, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/redirect" {
					http.Redirect(w, r, "https://evil.example/", http.StatusFound)
				}
			}), "allowed.example")
			before := traces()
			report := battery(t, n, d, test.network)
			for i, a := range attacks() {
				checkAttack(t, a, report.Records[i], len(test.network) > 0)
			}
			n.untouched(t)
			for _, r := range n.requests() {
				if !strings.HasSuffix(r, "http://allowed.example/redirect") {
					t.Errorf("a server got %q", r)
				}
			}
			for _, q := range n.queries {
				if !slices.Contains(test.network, strings.TrimSuffix(q, ".")) {
					t.Errorf("the world's name server was asked for %q", q)
				}
			}
			comment := voice.Markdown(report)
			if len(test.network) > 0 && (!strings.Contains(comment, "evil.example") || !strings.Contains(comment, "169.254.169.254")) {
				t.Errorf("the comment does not name what was refused:\n%s", comment)
			}
			d.checkSealed(t, "battery")
			d.checkNothingLeft(t, before)
		})
	}
}

// The gateway is killed or stopped during the run: nothing leaves any more, the run
// ends with the gateway's code, and the log says so and verifies.
func TestNightlyGatewayFalls(t *testing.T) {
	for _, test := range []struct {
		name, code string
		signal     syscall.Signal
	}{{"killed", "gateway.gone", syscall.SIGKILL}, {"stopped", "gateway.slow", syscall.SIGSTOP}} {
		t.Run(test.name, func(t *testing.T) {
			n, d := newInternet(t), newDesk(t)
			n.serve(serverAddress, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "allowed.example")
			d.write(t, "plan.yaml", `schema: fumehood.plan/v1
proposals:
  - id: it
    language: python
    network: [allowed.example]
    timeout: 60s
    code: |
      import time, urllib.request
      for i in range(600):
          try: urllib.request.urlopen("http://allowed.example/%d" % i, timeout=2)
          except OSError: pass
          time.sleep(0.1)
`)
			before := traces()
			d.grant(t, "allowed.example")
			cmd := n.fumehood(t.Context(), d, "it", "--hosts", d.path("policy"))
			n.start(cmd)
			jobtest.WaitUntil(t, "the first request", func() bool { return len(n.requests()) > 0 })
			gateway := gatewayOf(t, cmd.Process.Pid)
			if err := syscall.Kill(gateway, test.signal); err != nil {
				t.Fatal(err)
			}
			stood := len(n.requests())
			if code := exitCode(t, cmd.Wait()); code != exitStopped {
				t.Errorf("exit code %d, want %d", code, exitStopped)
			}
			if got := len(n.requests()); got > stood+1 { // one may have been in transit
				t.Errorf("%d requests left after the gateway was %s", got-stood, test.name)
			}
			report := d.report(t, "it")
			if report.Error == nil || report.Error.Code != test.code {
				t.Errorf("the report says %+v, want %s", report.Error, test.code)
			}
			if log, _ := os.ReadFile(d.path("it.jsonl")); !strings.Contains(string(log), test.code) {
				t.Error("the log does not say why the run ended")
			}
			d.checkSealed(t, "it")
			d.checkNothingLeft(t, before)
		})
	}
}
