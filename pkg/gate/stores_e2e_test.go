// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package gate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// sessionLines is the number of log lines of killedSession: origin and key, then two for each
// of run, two transfers, three decisions, three starts, three results and end, and the seal.
const sessionLines = 2 + 2*(1+2+3+3+3+1) + 1

// THREATS 30, for sessions: the caller's process is killed at every step. The log verifies
// up to a marked end, everything that ran is in it, and nothing keeps running.
func TestE2ESessionKilled(t *testing.T) {
	needSandbox(t)
	var steps []int
	for lines := 1; lines <= sessionLines; lines++ {
		steps = append(steps, lines)
	}
	tmp := t.TempDir()
	t.Run("at line", func(t *testing.T) {
		for _, lines := range sample.EveryNth(t, steps, 8, sessionLines) {
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

// A workspace is an image where that pays: in runs of several commands, and where a caller
// asks for it.
func TestE2EImageFrom(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	writeFile(t, ws, "file", "x")
	for i := range sandbox.DefaultImageFrom { // links cost less than files
		dir := filepath.Join(ws, fmt.Sprint("d", i/1000))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Link(filepath.Join(ws, "file"), filepath.Join(dir, fmt.Sprint("file", i)))); err != nil {
			t.Fatal(err)
		}
	}
	const text = "grep -c erofs /proc/mounts"
	tests := map[string]struct {
		from int
		plan []string
		want string
	}{
		"one command":             {0, []string{text}, "0\n"},
		"three commands":          {0, []string{text, "true", "true"}, "1\n"},
		"one command, always":     {1, []string{text}, "1\n"},
		"three commands, never":   {math.MaxInt, []string{text, "true", "true"}, "0\n"},
		"three, a larger minimum": {1_000_000, []string{text, "true", "true"}, "0\n"},
	}
	for _, name := range sample.EveryNthKey(t, tests, 2, 5) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if sandbox.DefaultImageFrom == 1 && test.from == 0 {
				test.want = "1\n"
			}
			g := newGate(t, gate.Options{Workspace: ws, ImageFrom: test.from})
			r, err := g.Run(t.Context(), planOf(t, test.plan...))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(r.Records[0].Result.Stdout.Head); got != test.want {
				t.Errorf("%q images, want %q", strings.TrimSpace(got), strings.TrimSpace(test.want))
			}
		})
	}
}

// THREATS 30 and 70: a process that is killed leaves no waiting sandbox, and the next run removes
// their files.
func TestE2EPoolKilled(t *testing.T) {
	needSandbox(t)
	tmp := t.TempDir()
	for i, at := range sample.EveryNth(t, []struct {
		line string
		then time.Duration
	}{{"prepared\n", 0}, {"prepared\n", 50 * time.Millisecond}, {"ran\n", 0}, {"ran\n", 600 * time.Millisecond}}, 2, 4) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
				t.Fatal(err)
			}
			out, err := os.Create(filepath.Join(dir, "said"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd := exec.Command("/proc/self/exe")
			cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), poolIn+"="+dir, "TMPDIR="+tmp), out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if said, _ := os.ReadFile(out.Name()); bytes.HasSuffix(said, []byte(at.line)) {
					break
				}
			}
			time.Sleep(at.then)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if said, _ := os.ReadFile(out.Name()); !slices.Contains([]string{"prepared\n", "prepared\nran\n"}, string(said)) {
				t.Errorf("%s", said)
			}
		})
	}
	checkSwept(t, tmp)
}

// THREATS 81: the runs of one Gate share the layer if they are to, even one that a run may not
// keep, and another Gate does not.
func TestE2EPrivateLayerRepeated(t *testing.T) {
	o := withSetUp(t)
	script, err := os.ReadFile(filepath.Join(o.Workspace, "set.sh"))
	if err != nil {
		t.Fatal(err)
	}
	cache := privateCache(t, &o)
	o.Repeated = true
	g := newGate(t, o)
	plan := lookingOnce()
	var runs []proposal.Report
	for range 2 {
		r, err := g.Run(t.Context(), plan)
		if err != nil || string(r.Records[1].Result.Stdout.Head) != "one\ntwo\n" {
			t.Fatalf("%+v, %v", r.Records[1].Result, err)
		}
		checkLog(t, r, true)
		runs = append(runs, r)
	}
	again := runs[1].Records[0].Result
	if l := again.Layer; l == nil || !again.FromLayer() || !l.Private || l.Run != runs[0].Run.ID || l.Digest != runs[0].Records[0].Result.Layer.Digest {
		t.Errorf("%+v", l)
	}
	if r, err := newGate(t, o).Run(t.Context(), plan); err != nil || r.Records[0].Result.FromLayer() {
		t.Errorf("another gate has the layer: %+v, %v", r.Records[0].Result, err)
	}
	// A file that set-up did not read does not matter, and one that it read does.
	for name, want := range map[string]bool{"new": true, "set.sh": false} {
		f, err := os.OpenFile(filepath.Join(o.Workspace, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err == nil {
			_, err = f.WriteString("true\n")
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if r, err := g.Run(t.Context(), plan); err != nil || r.Records[0].Result.FromLayer() != want {
			t.Errorf("with another %s, from the layer: %+v, %v", name, r.Records[0].Result, err)
		}
		if err := os.WriteFile(filepath.Join(o.Workspace, "set.sh"), script, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if left := ofRuns(t, cache); len(left) > 1 { // the other gate's
		t.Errorf("left %q", left)
	}
}

// THREATS 69: a run of a pull request does not use what is in an exchange, which its own workflow
// may have left there, and leaves nothing in it.
func TestE2EResultsExchange(t *testing.T) {
	t.Parallel()
	workspace, exchange := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "a.go"), []byte("package a\nvar x  int\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name    string
		subject gate.Subject
		mode    string
		want    bool // from the cache
		left    int
	}{
		{"pull request", gate.Subject{PR: 7}, "write", false, 0},
		{"read", gate.Subject{}, "read", false, 0},
		{"write", gate.Subject{}, "write", false, 1},
		{"read again", gate.Subject{}, "read", true, 1},
		{"pull request again", gate.Subject{PR: 7}, "read", false, 1},
		{"fork", gate.Subject{Fork: "someone/else"}, "write", false, 1},
	} {
		g := newGate(t, gate.Options{Workspace: workspace, Results: gate.Store{Mode: step.mode, Dir: filepath.Join(t.TempDir(), "none"), Exchange: exchange}, Subject: step.subject})
		report, err := g.Run(t.Context(), proposal.Plan{Schema: proposal.PlanSchema, Proposals: []proposal.Proposal{{ID: "fmt", Run: "gofmt -l .", Cache: true}}})
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		checkLog(t, report, true)
		left, err := os.ReadDir(exchange)
		if r := report.Records[0].Result; err != nil || (r.Cached != nil) != step.want || r.CacheKey == "" || len(left) != step.left || len(g.Warnings()) > 0 {
			t.Errorf("%s: cached %v, left %v, %v, %q", step.name, r.Cached, left, err, g.Warnings())
		}
		g.Close()
	}
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
