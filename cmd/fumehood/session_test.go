// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// session returns a command of the desk's sessions.
func (d mcpDesk) session(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"session"}, args...)...)
	cmd.Dir, cmd.Env = d.dir, d.env
	return cmd
}

// startSession starts a session, which the test's end ends.
func (d mcpDesk) startSession(t *testing.T, name string) {
	t.Helper()
	if out, err := d.session("start", "--name", name, "--idle", "5m", "--workspace", "ws", "--config", "fumehood.yml", "--policy", "policy", "--audit", "audit.jsonl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = d.session("end", name).Run() })
}

// TestSessionInterrupt: output is there while the command runs. Ctrl-C ends the command, and
// so does the death of its client; the session and its files stay.
func TestSessionInterrupt(t *testing.T) {
	long(t)
	t.Parallel()
	d := newMCPDesk(t)
	d.startSession(t, "work")
	for name, end := range map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "killed client": syscall.SIGKILL} {
		cmd := d.session("exec", "work", "-c", "echo begun; echo kept >> kept; sleep 600")
		var errors bytes.Buffer
		cmd.Stderr = &errors
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "begun" {
			t.Fatalf("%s: no output while it runs: %q %s", name, lines.Text(), errors.String())
		}
		begin := time.Now()
		_ = cmd.Process.Signal(end)
		_ = cmd.Wait()
		if end == syscall.SIGINT && (cmd.ProcessState.ExitCode() != exitRefused || !bytes.Contains(errors.Bytes(), []byte("SIGKILL"))) {
			t.Errorf("%s: exit code %d\n%s", name, cmd.ProcessState.ExitCode(), errors.String())
		}
		if out, err := d.session("exec", "work", "--", "cat", "kept", "deps/made").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("kept\n")) || time.Since(begin) > time.Minute {
			t.Errorf("%s: the next command: %v after %s\n%s", name, err, time.Since(begin), out)
		}
	}
	if out, err := d.session("end", "work").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	d.verify(t, true)
	jobtest.CheckNothingRuns(t, d.dir)
}

// TestSessionTogether: of several starts with one name, one succeeds; commands of several
// clients at once have their turns.
func TestSessionTogether(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	d := newMCPDesk(t)
	starts := make(chan error, 4)
	for range cap(starts) {
		go func() {
			starts <- d.session("start", "--name", "one", "--idle", "5m", "--workspace", "ws", "--config", "none").Run()
		}()
	}
	failed := 0
	for range cap(starts) {
		if <-starts != nil {
			failed++
		}
	}
	t.Cleanup(func() { _ = d.session("end", "one").Run() })
	if failed != cap(starts)-1 {
		t.Errorf("%d of %d starts failed", failed, cap(starts))
	}
	runs := make(chan error, 8)
	for range cap(runs) {
		go func() { runs <- d.session("exec", "one", "-c", "echo x >> count").Run() }()
	}
	for range cap(runs) {
		if err := <-runs; err != nil {
			t.Error(err)
		}
	}
	if out, err := d.session("exec", "one", "-c", "wc -l < count").Output(); err != nil || string(bytes.TrimSpace(out)) != "8" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestSessionForged: a proposal that comes over the socket cannot call itself set-up, choose
// its id, be approved, or have a field that a plan refuses.
func TestSessionForged(t *testing.T) {
	long(t)
	t.Parallel()
	d := newMCPDesk(t)
	d.startSession(t, "work")
	dir, err := os.Open(filepath.Join(d.dir, "state/fumehood/sessions/work"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/socket", dir.Fd()))
	}}}
	for body, want := range map[string]string{
		`{"run":"true","origin":"setup"}`:                  "session.proposal",
		`{"run":"true","phase":"before"}`:                  "session.proposal",
		`{"run":"true","argv":["true"]}`:                   "session.proposal",
		`{}`:                                               "session.proposal",
		`{"code":"1","language":"sh","context":"/"}`:       "session.proposal",
		`{"run":"true","id":"setup-1"}`:                    `"record":{"proposal":{"id":"c`,
		`{"run":"true","network":["evil.example"]}`:        `"effect":"deny"`,
		`{"code":"1","language":"python","context":"../"}`: "session.proposal",
	} {
		r, err := client.Post("http://session/proposals", "application/json", strings.NewReader(`{"proposal":`+body+`}`))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || !strings.Contains(string(answer), want) {
			t.Errorf("%s: %v\n%s", body, err, answer)
		}
	}
	for body, path := range map[string]string{
		`{"proposal":{"run":"true"},"approval":{"client":"me"}}`: "proposals",
		`{"proposal":{"run":"true"}}`:                            "processes",
	} {
		r, err := client.Post("http://session/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || !strings.Contains(string(answer), "session.request") {
			t.Errorf("%s: %v\n%s", body, err, answer)
		}
	}
	if r, err := client.Get("http://session/proposals"); err != nil || r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%v, %v", r, err)
	}
}
