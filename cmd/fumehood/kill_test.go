// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/audit"
)

// A log of the run below has this many lines: header and first checkpoint, two for
// each of run, three decisions, three starts, three results and end, and the seal.
const killLines = 2 + 2*(1+3+3+3+1) + 1

// THREATS 30: fumehood is killed at every step of a run. The log verifies up to a
// marked end and has everything that ran, and no process keeps running.
func TestKilledAtEveryStep(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	cache := jobtest.BuildCache(t)
	var steps []int
	for lines := 1; lines <= killLines; lines++ {
		steps = append(steps, lines)
	}
	for _, lines := range oneIn(t, 8, killLines, steps) {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			t.Parallel()
			k := startKilled(t, cache)
			k.killAt(t, lines)
			k.check(t, lines)
		})
	}
}

type killedRun struct {
	dir string
	log string
	cmd *exec.Cmd
}

// startKilled starts the real main, as this test's own binary, with a plan of three
// commands that write to the artifacts directory.
func startKilled(t *testing.T, cache string) killedRun {
	t.Helper()
	dir := t.TempDir()
	k := killedRun{dir: dir, log: filepath.Join(dir, "audit.jsonl")}
	plan := "schema: fumehood.plan/v1\nproposals:\n"
	for _, id := range []string{"a", "b", "c"} {
		plan += "  - {id: " + id + ", run: echo ran-" + id + "}\n"
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	planFile := write("plan.yaml", plan)
	if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	k.cmd = exec.Command(os.Args[0], "run", "--plan", planFile, "--workspace", filepath.Join(dir, "ws"),
		"--audit", k.log, "--artifacts", filepath.Join(dir, "out"))
	k.cmd.Env = append(os.Environ(), "FUMEHOOD_CACHE="+cache, asFumehood+"=1", "TMPDIR="+dir)
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return k
}

// killAt kills the process as soon as its log has the given number of lines.
func (k killedRun) killAt(t *testing.T, lines int) {
	t.Helper()
	begin := time.Now()
	for data := []byte(nil); bytes.Count(data, []byte("\n")) < lines; time.Sleep(200 * time.Microsecond) {
		if data, _ = os.ReadFile(k.log); time.Since(begin) > jobtest.Hang {
			t.Fatalf("the log never had %d lines", lines)
		}
	}
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}

func (k killedRun) check(t *testing.T, lines int) {
	t.Helper()
	started := map[string]bool{}
	log, err := os.Open(k.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	summary, err := audit.Scan(log, audit.Trust{}, func(e audit.Entry) error {
		var body struct {
			ID string `json:"id"`
		}
		if e.Kind == "start" && !e.Unsigned {
			if err := json.Unmarshal(e.Body, &body); err != nil {
				return err
			}
			started[body.ID] = true
		}
		return nil
	})
	if err != nil {
		t.Fatalf("the log does not verify: %v", err)
	}
	if summary.State == audit.Sealed && lines < killLines {
		t.Logf("the run ended before it was killed at line %d", lines)
	}
	for _, id := range []string{"a", "b", "c"} {
		if ran(t, k.dir, id) && !started[id] {
			t.Errorf("%s ran, and the log does not say so", id)
		}
	}
	jobtest.CheckNothingRuns(t, k.dir)
}

func ran(t *testing.T, dir, id string) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "out", id+".stdout"))
	return err == nil && strings.Contains(string(data), "ran-"+id)
}
