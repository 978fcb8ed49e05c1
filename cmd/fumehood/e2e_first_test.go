// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"net/http"
	"testing"

	voice "github.com/fumehood/fumehood/pkg/report"
)

// A command reaches the host that it was granted, over HTTP and HTTPS, and no other; what
// it did is on record.
func TestGrantedHost(t *testing.T) {
	n, d := newInternet(t), newDesk(t)
	n.name("evil.example", otherAddress)
	n.serve(serverAddress, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("hello " + r.Proto)) }), "allowed.example")
	d.write(t, "plan.yaml", `schema: fumehood.plan/v1
proposals:
  - id: it
    language: python
    network: [allowed.example]
    code: |
      import subprocess
      for url in ("http://allowed.example/a", "https://allowed.example/b", "https://evil.example/c"):
          p = subprocess.run(["curl", "-sS", "-m", "10", url], capture_output=True)
          print(url, p.returncode, p.stdout, p.stderr)
`)
	before := traces()
	report := n.run(t, d, "it", []string{"allowed.example"})
	r := result(t, report)
	t.Logf("%s\n%s\n%v", r.Stdout.Head, r.Stderr.Head, n.requests())
	t.Log(voice.Markdown(report))
	n.untouched(t)
	d.checkSealed(t, "it")
	d.checkNothingLeft(t, before)
}
