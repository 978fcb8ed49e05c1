// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/evidence/report"
)

// resultsFiles are a default branch that uses kept results.
var resultsFiles = map[string]string{".github/fumehood.yml": "schema: fumehood.config/v1\nresults: read\n", "a.go": "package a\n\nvar x  int\n"}

const resultsPlan = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: fmt, run: gofmt -l ., cache: true}\n"

// actResults runs a job whose directory of the input results-cache was restored with the files of
// restored, and returns what it has after the job.
func (w world) actResults(event string, payload []byte, restored map[string][]byte, env ...string) (jobtest.Step, map[string][]byte) {
	w.T.Helper()
	return w.actRestored(event, payload, restored, append([]string{resultsPlan, "INPUT_RESULTS_CACHE=" + restoredDir}, env...)...)
}

// readResultRuns returns the id of a step's run and the id of the run that its only result is from, ""
// for its own.
func readResultRuns(t *testing.T, s jobtest.Step) (run, from string) {
	t.Helper()
	r, err := report.Read(jobtest.ReadFile(t, s.Outputs["report"]), 1<<26)
	if err != nil || len(r.Records) != 1 || r.Records[0].Result == nil || string(r.Records[0].Result.Stdout.Head) != "a.go\n" {
		t.Fatalf("%+v, %v\n%s", r.Records, err, s.Log)
	}
	return r.Run.ID, r.Records[0].Result.Cached.RunID()
}

// dispatchEvent is the event of a workflow that a person started on the default branch.
func (w world) dispatchEvent() []byte {
	w.T.Helper()
	return w.EventPayload("workflow_dispatch.bare", func(p map[string]any) {
		p["repository"].(map[string]any)["id"], p["repository"].(map[string]any)["full_name"] = jobtest.HubID, jobtest.Hub
	})
}

// THREATS 69: a push to the default branch leaves its results for actions/cache/save, and other
// jobs only read. What was restored and is not proved is not used: the command runs.
func TestE2EActionResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, resultsFiles, nil)
	s, made := w.actResults("push", w.pushEvent("master"), nil, "GITHUB_REF=refs/heads/master")
	run, from := readResultRuns(t, s)
	if s.Code != cli.OK || from != "" || len(made) != 1 {
		t.Fatalf("push: exit %d, made %d\n%s", s.Code, len(made), s.Log)
	}
	read := func(restored map[string][]byte) jobtest.Step {
		s, after := w.actResults("workflow_dispatch", w.dispatchEvent(), restored, "GITHUB_SHA="+w.Base, "GITHUB_REF=refs/heads/master")
		if s.Code != cli.OK || len(after) != len(restored) {
			t.Errorf("exit %d, left %d of %d\n%s", s.Code, len(after), len(restored), s.Log)
		}
		return s
	}
	if _, from := readResultRuns(t, read(made)); from != run {
		t.Errorf("from run %q, want %q", from, run)
	}
	if _, from := readResultRuns(t, read(nil)); from != "" {
		t.Error("a result of nothing")
	}
	name := onlyName(made)
	other := newWorld(t, false, resultsFiles, nil)
	moved := other.Push("master", map[string]string{"b.go": "package a\n"})
	s, replay := other.actResults("push", other.pushEvent("master"), nil, "GITHUB_REF=refs/heads/master", "GITHUB_SHA="+moved)
	if s.Code != cli.OK || len(replay) != 1 || onlyName(replay) == name {
		t.Fatalf("push of another tree: exit %d, made %d\n%s", s.Code, len(replay), s.Log)
	}
	for what, spoil := range map[string]func([]byte) []byte{
		"poisoned":  func(b []byte) []byte { return bytes.Replace(b, []byte(`"stdout":"`), []byte(`"stdout":"eHh4`), 1) },
		"truncated": func(b []byte) []byte { return b[:len(b)/2] },
		"empty":     func([]byte) []byte { return nil },
		"large":     func(b []byte) []byte { return append(b, make([]byte, 2<<20)...) },
		"replayed":  func([]byte) []byte { return replay[onlyName(replay)] },
		"swapped": func(b []byte) []byte {
			return bytes.Replace(b, []byte(name[:64]), []byte(onlyName(replay)[:64]), 1)
		},
	} {
		s := read(map[string][]byte{name: spoil(bytes.Clone(made[name]))})
		if _, from := readResultRuns(t, s); from != "" || !strings.Contains(s.Log, "results.invalid") {
			t.Errorf("%s is used\n%s", what, s.Log)
		}
	}
}

// THREATS 69: a pull request leaves no results, nor does a job without results in the
// configuration.
func TestE2EActionResultsPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, resultsFiles, map[string]string{".github/fumehood.yml": resultsFiles[".github/fumehood.yml"]})
	opened := w.EventPayload("pull_request.opened", nil)
	s, after := w.actResults("pull_request", opened, nil, "GITHUB_REF=refs/heads/master")
	if _, from := readResultRuns(t, s); s.Code != cli.OK || from != "" || len(after) != 0 {
		t.Fatalf("pull_request: exit %d, left %d\n%s", s.Code, len(after), s.Log)
	}
	w.Push("master", map[string]string{".github/fumehood.yml": "schema: fumehood.config/v1\n"})
	s, after = w.actResults("push", w.pushEvent("master"), nil, "GITHUB_REF=refs/heads/master")
	if _, from := readResultRuns(t, s); from != "" || len(after) != 0 || !strings.Contains(s.Log, "input results-cache has no effect") {
		t.Errorf("without results: exit %d, left %d\n%s", s.Code, len(after), s.Log)
	}
}

// Two jobs at once with one directory leave one result, which is used.
func TestE2EActionResultsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, resultsFiles, nil)
	var jobs sync.WaitGroup
	var made [2]map[string][]byte
	for i := range made {
		jobs.Go(func() {
			_, made[i] = w.actResults("push", w.pushEvent("master"), nil, "GITHUB_REF=refs/heads/master")
		})
	}
	jobs.Wait()
	if len(made[0]) != 1 || len(made[1]) != 1 || onlyName(made[0]) != onlyName(made[1]) {
		t.Fatalf("%d and %d results", len(made[0]), len(made[1]))
	}
	for _, restored := range made {
		s, _ := w.actResults("workflow_dispatch", w.dispatchEvent(), restored, "GITHUB_SHA="+w.Base, "GITHUB_REF=refs/heads/master")
		if _, from := readResultRuns(t, s); from == "" {
			t.Errorf("not from the cache\n%s", s.Log)
		}
	}
}
