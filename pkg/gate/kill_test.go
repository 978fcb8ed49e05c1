// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/internal/sample"
)

// sessionIn makes this test's process the caller of a session whose files are in a directory.
const sessionIn = "FUMEHOOD_TEST_SESSION"

// sessionLines is the number of log lines of killedSession: origin and key, then two for each
// of run, two transfers, three decisions, three starts, three results and end, and the seal.
const sessionLines = 2 + 2*(1+2+3+3+3+1) + 1

func killedSession(dir string) int {
	ctx := context.Background()
	g, err := gate.New(ctx, gate.Options{Workspace: filepath.Join(dir, "ws"), Artifacts: filepath.Join(dir, "out"), AuditFile: filepath.Join(dir, "audit.jsonl")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := g.Open(ctx, gate.SessionOptions{})
	for i, step := range []func(id string) error{
		func(string) error { _, err := s.Put(ctx, "x", []byte("x")); return err },
		func(id string) error { _, err := s.Do(ctx, run(id, "echo ran-"+id)); return err },
		func(id string) error { _, err := s.Do(ctx, run(id, "echo ran-"+id+"; sleep 0.05")); return err },
		func(string) error { _, _, err := s.Take(ctx, "x"); return err },
		func(id string) error { _, err := s.Do(ctx, run(id, "echo ran-"+id)); return err },
		func(string) error { _, err := s.Close(); return err },
	} {
		if err == nil {
			err = step(fmt.Sprintf("p%d", i))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// THREATS 30, for sessions: the caller's process is killed at every step. The log verifies
// up to a marked end, everything that ran is in it, and nothing keeps running.
func TestSessionKilled(t *testing.T) {
	needSandbox(t)
	var steps []int
	for lines := 1; lines <= sessionLines; lines++ {
		steps = append(steps, lines)
	}
	tmp := t.TempDir()
	t.Run("at line", func(t *testing.T) {
		for _, lines := range sample.Of(t, steps, 8, sessionLines) {
			t.Run(fmt.Sprint(lines), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
					t.Fatal(err)
				}
				killAt(t, dir, tmp, lines)
				checkKilled(t, dir)
			})
		}
	})
	checkSwept(t, tmp)
}

// checkSwept waits for the end of all processes of the killed sessions, and checks that
// the next run removes their files.
func checkSwept(t *testing.T, tmp string) {
	t.Helper()
	for begin := time.Now(); len(naming(tmp)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("processes are left: %q", naming(tmp))
		}
	}
	t.Setenv("TMPDIR", tmp)
	g, err := gate.New(t.Context(), gate.Options{Workspace: "testdata/project"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, err := g.Run(t.Context(), decode(t, "schema: fumehood.plan/v1\nproposals: [{id: a, run: echo}]")); err != nil {
		t.Error(err)
	}
	// Another process that runs at the same time may have begun to remove some of them.
	for begin := time.Now(); !isEmpty(tmp) && time.Since(begin) < 30*time.Second; {
		time.Sleep(5 * time.Millisecond)
	}
	checkNothingLeft(t, tmp, nil)
}

func isEmpty(dir string) bool {
	files, err := os.ReadDir(dir)
	return err == nil && len(files) == 0
}

// killAt kills a session's process as soon as its log has the given number of lines.
func killAt(t *testing.T, dir, tmp string, lines int) {
	t.Helper()
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stderr = append(os.Environ(), sessionIn+"="+dir, "TMPDIR="+tmp), said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for logged(dir) < lines && t.Context().Err() == nil && !hasEnded(ended) {
		time.Sleep(200 * time.Microsecond)
	}
	_ = cmd.Process.Kill()
	<-ended
	if text, err := os.ReadFile(said.Name()); err != nil || len(text) > 0 {
		t.Fatalf("%s, %v", text, err)
	}
}

// logged counts the lines of the log in dir.
func logged(dir string) int {
	data, _ := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	return bytes.Count(data, []byte("\n"))
}

func hasEnded(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func checkKilled(t *testing.T, dir string) {
	t.Helper()
	log, err := os.Open(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	started := map[string]bool{}
	if _, err := audit.Scan(log, audit.Trust{}, func(e audit.Entry) error {
		var body struct {
			ID string `json:"id"`
		}
		if e.Kind == "start" && !e.Unsigned {
			err := json.Unmarshal(e.Body, &body)
			started[body.ID] = true
			return err
		}
		return nil
	}); err != nil {
		t.Errorf("the log does not verify: %v", err)
	}
	for _, id := range []string{"p1", "p2", "p4"} {
		data, err := os.ReadFile(filepath.Join(dir, "out", id+".stdout"))
		if err == nil && bytes.Contains(data, []byte("ran-"+id)) && !started[id] {
			t.Errorf("%s ran, and the log does not say so", id)
		}
	}
}
