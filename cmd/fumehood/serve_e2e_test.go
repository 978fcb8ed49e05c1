// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// TestE2EServeEnds ends a server while commands run in two sandboxes. Nothing stays behind, and
// the logs are sealed, except for SIGKILL.
func TestE2EServeEnds(t *testing.T) {
	long(t)
	t.Parallel()
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(how.String(), func(t *testing.T) {
			t.Parallel()
			s := startServe(t, newServeDesk(t), "--drain", "2s")
			for range 2 {
				b := s.create(t, `{}`)
				go s.run(b, "sleep 600")
			}
			jobtest.WaitUntil(t, "the commands", func() bool { return countSleeps(t, filepath.Join(s.dir, "state/fumehood/*/audit.jsonl")) == 2 })
			begin := time.Now()
			_ = s.cmd.Process.Signal(how)
			if how == syscall.SIGTERM {
				jobtest.WaitUntil(t, "the drain", func() bool { return strings.Contains(s.call("GET", "/healthz", ""), "draining") })
				if got := s.call("POST", "/v2/sandboxes", "{}", "X-API-KEY", serveKey); !strings.Contains(got, "the server is ending") {
					t.Errorf("a new sandbox: %s", got)
				}
			}
			err := s.cmd.Wait()
			if took := time.Since(begin); took > time.Minute || (err == nil) != (how == syscall.SIGTERM) {
				t.Errorf("the end took %s: %v\n%s", took, err, s.err)
			}
			if how == syscall.SIGTERM && s.verifyLogs(t) != 2 {
				t.Error("not two logs")
			}
			jobtest.CheckNothingRuns(t, s.dir)
		})
	}
}

// THREATS 70: clients get sandboxes that were started before, one each, and a server that ends or
// is killed leaves none.
func TestE2EServeReady(t *testing.T) {
	long(t)
	t.Parallel()
	d := newServeDesk(t)
	d.env = append(d.env, testImages+"=") // a sandbox whose workspace is an image starts with it, and cannot wait
	s := startServe(t, d, "--ready", "2")
	var waiting []string
	jobtest.WaitUntil(t, "the sandboxes", func() bool {
		waiting, _ = filepath.Glob(filepath.Join(d.dir, "fumehood-*", "upper"))
		return len(waiting) == 2
	})
	for _, b := range []box{s.create(t, `{}`), s.create(t, `{}`)} {
		if out := s.run(b, "ls -A /tmp | grep -c left; touch /tmp/left"); !strings.Contains(out, "MAo=") { // 0
			t.Error(out)
		}
		s.call("DELETE", "/sandboxes/"+b.SandboxID, "", "X-API-KEY", serveKey)
	}
	for _, dir := range waiting {
		if _, err := os.Stat(dir); err == nil {
			t.Error("a sandbox that waited was not claimed")
		}
	}
	s.end(t)
	if left, _ := filepath.Glob(filepath.Join(d.dir, "fumehood-*")); len(left)+len(jobtest.FindProcesses(d.dir)) > 0 {
		t.Errorf("left: %q %v", left, jobtest.FindProcesses(d.dir))
	}
	killed := startServe(t, d, "--ready", "1")
	killed.create(t, `{}`)
	_ = killed.cmd.Process.Kill()
	_ = killed.cmd.Wait()
	jobtest.CheckNothingRuns(t, d.dir)
}
