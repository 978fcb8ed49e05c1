// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/review"
	"github.com/fumehood/fumehood/pkg/review/model/modeltest"
)

// greeting is a true finding of a model about the pull request of a world.
var greeting = map[string]any{"id": "greeting", "file": "greet.sh", "line": 1, "start_line": nil, "side": "head", "severity": "high", "claim": "greets more than hello",
	"reproducer": map[string]string{"run": "sh greet.sh | grep -qx hello"}, "suggestion": "echo hello\n"}

// askModel are the inputs of a step that asks the model of s, and its key.
func askModel(s *modeltest.Server, provider, model string, env ...string) []string {
	return slices.Concat([]string{"INPUT_PHASE=review", "INPUT_PLAN=", "INPUT_PROVIDER=" + provider, "INPUT_MODEL=" + model}, s.Env(provider), env)
}

// In a pull request of the same repository, one job asks the model, runs its commands, verifies
// what it finds and posts it, once, however often it runs. Only the process that the runner starts
// has the key.
func TestE2EActionModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	for i, provider := range []string{"anthropic", "openai"} {
		var problems []string
		m := modeltest.New(t, func(n int, a modeltest.Asked) modeltest.Said {
			if n == 1 {
				return modeltest.Said{Text: modelAnswer(t, false, []string{"sh greet.sh", "env; cat /proc/self/environ"}, greeting)}
			}
			if problems = keyHolders(w.dir); !strings.Contains(a.Last(), "hello world") {
				t.Errorf("the model reads %s", a.Last())
			}
			return modeltest.Said{Text: modelAnswer(t, true, nil, greeting)}
		})
		s := w.act("pull_request", w.event("pull_request.opened", nil), askModel(m, provider, []string{"claude-sonnet-4-6", "gpt-5"}[i])...)
		if s.code != exitRefused || s.outputs["conclusion"] != "failure" || s.outputs["verified"] != "1" || len(m.Asked()) != 2 {
			t.Fatalf("exit %d, outputs %q, %d requests\n%s", s.code, s.outputs, len(m.Asked()), s.log)
		}
		for _, p := range problems {
			t.Error(p)
		}
		list := w.gh.ReviewComments(prNumber)
		if len(list) != 1 || list[0].Path != "greet.sh" || list[0].Line != 1 || len(w.gh.Reviews(prNumber)) != 1 || w.gh.Reviews(prNumber)[0].State != "COMMENTED" {
			t.Errorf("comments %+v, reviews %+v", list, w.gh.Reviews(prNumber))
		}
		want(t, "comment", w.comment().Body, "1 verified finding of 1", provider, "2 requests")
		doc := w.modelDocument(s, 2)
		if !doc.Reviewed || doc.Model.Ran == 0 || doc.Model.Session == nil {
			t.Errorf("%+v", doc.Model)
		}
		w.keyNowhere(s)
	}
}

// keyHolders returns what is wrong with the processes of a world's step: the one that starts
// sandboxes and all that it started must be there and must not have the key.
func keyHolders(dir string) (problems []string) {
	key, starters, sandboxes := []byte(modeltest.Key), relays(dir), 0
	if len(starters) != 1 || inMemory(starters[0], key) {
		problems = append(problems, fmt.Sprintf("processes that start sandboxes: %v, or one has the key in its memory", starters))
	}
	for _, pid := range starters { // what asks has the key, which shows that looking sees
		if up := parent(pid); !inMemory(up, key) {
			problems = append(problems, fmt.Sprintf("process %d does not have the key", up))
		}
	}
	for _, pid := range append(starters, descendants(starters)...) {
		proc := fmt.Sprintf("/proc/%d/", pid)
		line, _ := os.ReadFile(proc + "cmdline")
		environ, err := os.ReadFile(proc + "environ")
		if bytes.Contains(line, []byte("runsc")) && err == nil {
			sandboxes++
		}
		if bytes.Contains(append(environ, line...), key) {
			problems = append(problems, fmt.Sprintf("the key is with %q", bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	if sandboxes < 2 {
		problems = append(problems, fmt.Sprintf("%d processes of sandboxes", sandboxes))
	}
	return problems
}

// relays returns the processes that start the sandboxes of a world's step.
func relays(dir string) (list []int) {
	for _, pid := range processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(line, []byte("\x00--relay\x00")) && bytes.Contains(line, []byte(dir)) {
			list = append(list, pid)
		}
	}
	return list
}

func processes() (list []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// parent returns the parent of a process, or 0.
func parent(pid int) (up int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, line, _ := bytes.Cut(status, []byte("\nPPid:\t"))
	_, _ = fmt.Sscan(string(line), &up)
	return up
}

// descendants returns the processes below those of roots.
func descendants(roots []int) (list []int) {
	var below []int
	for _, pid := range processes() {
		if slices.Contains(roots, parent(pid)) {
			below = append(below, pid)
		}
	}
	if len(below) == 0 {
		return nil
	}
	return append(below, descendants(below)...)
}

// inMemory reports whether memory that a process can write has a value, or that it cannot be read.
func inMemory(pid int, value []byte) bool {
	proc := fmt.Sprintf("/proc/%d", pid)
	maps, err := os.ReadFile(proc + "/maps")
	if err != nil {
		return true
	}
	mem, err := os.Open(proc + "/mem")
	if err != nil {
		return true
	}
	defer mem.Close()
	read := 0
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") || to-from > 1<<30 {
			continue
		}
		data := make([]byte, to-from)
		n, _ := mem.ReadAt(data, from)
		if read += n; bytes.Contains(data[:n], value) {
			return true
		}
	}
	return read == 0
}

// modelDocument returns the review in the artifact of a step, whose logs must verify.
func (w *world) modelDocument(s step, requests int) (d review.Document) {
	w.t.Helper()
	data, err := os.ReadFile(s.outputs["review"])
	w.must(err)
	w.must(json.Unmarshal(data, &d))
	logs := filepath.Join(s.outputs["artifact-path"], "logs")
	run := d.Model.Log
	run.Log = filepath.Join(logs, run.Log)
	checkReviewLog(w.t, run, requests, true)
	subject := fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Appendf(nil, "%s#%d", hub, prNumber)))
	if data, err := os.ReadFile(run.Log); err != nil || !bytes.Contains(data, []byte(subject)) {
		w.t.Errorf("the log does not name the pull request's budget: %v", err)
	}
	for _, r := range d.Runs {
		if _, err := os.Stat(filepath.Join(logs, r.Log)); err != nil {
			w.t.Error(err)
		}
	}
	return d
}

// keyNowhere fails if the key or the token is in what a step left or printed, except for the
// commands that make the runner mask them.
func (w *world) keyNowhere(s step) {
	w.t.Helper()
	var log strings.Builder
	for line := range strings.Lines(s.log) {
		if !strings.HasPrefix(line, "::add-mask::") {
			log.WriteString(line)
		}
	}
	texts := map[string]string{"log": log.String(), "summary": s.summary, "outputs": fmt.Sprint(s.outputs)}
	for i, c := range w.gh.Comments(prNumber) {
		texts[fmt.Sprint("comment ", i)] = c.Body
	}
	for i, c := range w.gh.ReviewComments(prNumber) {
		texts[fmt.Sprint("line ", i)] = c.Body
	}
	w.must(filepath.WalkDir(s.temp, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			texts[path] = string(data)
			return err
		}
		return err
	}))
	for where, text := range texts {
		for _, secret := range []string{modeltest.Key, jobToken} {
			if strings.Contains(text, secret) {
				w.t.Errorf("%s has %s", where, secret)
			}
		}
	}
}

// What cannot be asked is refused with a code before anything is fetched or asked.
func TestE2EActionModelRefused(t *testing.T) {
	t.Parallel()
	own, fork := newWorld(t, false, nil, nil), newWorld(t, true, nil, nil)
	m := modeltest.New(t, func(int, modeltest.Asked) modeltest.Said { return modeltest.Said{Status: 500} })
	opened := own.event("pull_request.opened", nil)
	comment := own.commentEvent(own.gh.AddComment(prNumber, "Codertocat", "/fumehood review"))
	for name, c := range map[string]struct {
		w       *world
		event   string
		payload []byte
		env     []string
		code    string
	}{
		"a fork":              {fork, "pull_request", fork.event("pull_request.opened.fork", nil), nil, "action.model-beside-code"},
		"a fork, after a run": {fork, "workflow_run", fork.event("workflow_run.completed.pr.fork", nil), nil, "action.workflow-run"},
		"a comment":           {own, "issue_comment", comment, nil, "action.model-beside-code"},
		"findings too":        {own, "pull_request", opened, []string{"INPUT_FINDINGS=" + badFindings}, "action.two-reviewers"},
		"no key":              {own, "pull_request", opened, []string{"ANTHROPIC_API_KEY="}, "model.key"},
		"no model":            {own, "pull_request", opened, []string{"INPUT_MODEL="}, "model.options"},
		"no price":            {own, "pull_request", opened, []string{"INPUT_MODEL=unknown"}, "model.price"},
		"an open address":     {own, "pull_request", opened, []string{"ANTHROPIC_BASE_URL=http://model.example"}, "model.address"},
	} {
		s := c.w.act(c.event, c.payload, askModel(m, "anthropic", "claude-sonnet-4-6", c.env...)...)
		if s.code != exitStopped || !strings.Contains(s.log, c.code) || strings.Contains(s.log, "policy and configuration:") {
			t.Errorf("%s: exit %d\n%s", name, s.code, s.log)
		}
		if c.code == "action.model-beside-code" {
			want(t, name, s.log, ".github/examples/review.yml")
		}
		c.w.keyNowhere(s)
	}
	s := own.act("pull_request", own.event("pull_request.opened.dependabot", nil), askModel(m, "anthropic", "claude-sonnet-4-6", "ANTHROPIC_API_KEY=")...)
	if s.code != exitOK || s.outputs["conclusion"] != "skipped" {
		t.Errorf("Dependabot: exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	if len(m.Asked()) != 0 || len(own.gh.Reviews(prNumber))+len(fork.gh.Reviews(prNumber)) != 0 {
		t.Errorf("%d requests, or a review", len(m.Asked()))
	}
}

// Whatever goes wrong with the model or the budget is neutral, and the comment has the reason. No
// request is sent that could exceed the budget.
func TestE2EActionModelNotReviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	for _, c := range []struct {
		name  string
		said  modeltest.Said
		env   []string
		why   string
		asked int
	}{
		{"a wrong key", modeltest.Said{Status: 401}, nil, "401", 1},
		{"ten MB", modeltest.Said{Text: strings.Repeat("x", 10<<20)}, nil, "larger than", 1},
		{"no command", modeltest.Said{Text: modelAnswer(t, true, nil)}, nil, "no command of the model ran", 1},
		{"a small budget", modeltest.Said{}, []string{"INPUT_MAX_TOKENS=5000"}, "budget of this review", 0},
		{"a small budget in dollars", modeltest.Said{}, []string{"INPUT_MAX_USD=0.01"}, "budget of this review", 0},
		{"too many rounds", modeltest.Said{Text: "no JSON"}, []string{"INPUT_MAX_ROUNDS=2"}, "cannot be used", 2},
	} {
		m := modeltest.New(t, func(int, modeltest.Asked) modeltest.Said { return c.said })
		s := w.act("pull_request", w.event("pull_request.opened", nil), askModel(m, "anthropic", "claude-sonnet-4-6", c.env...)...)
		if s.code != exitOK || s.outputs["conclusion"] != "neutral" || s.outputs["verified"] != "" || len(m.Asked()) != c.asked {
			t.Errorf("%s: exit %d, outputs %q, %d requests\n%s", c.name, s.code, s.outputs, len(m.Asked()), s.log)
			continue
		}
		want(t, c.name, w.comment().Body, "Not reviewed:", c.why)
		w.modelDocument(s, c.asked)
	}
	if n := len(w.gh.Reviews(prNumber)); n != 0 {
		t.Errorf("%d reviews", n)
	}
}

// A review that is killed in the middle of a request leaves a log that verifies, with that request,
// and posts nothing on lines.
func TestE2EActionModelKilled(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		w := newWorld(t, false, nil, nil)
		reached, hold := make(chan bool, 10), make(chan bool)
		m := modeltest.New(t, func(n int, _ modeltest.Asked) modeltest.Said {
			if n == 1 {
				return modeltest.Said{Text: modelAnswer(t, false, []string{"ls"}, greeting)}
			}
			reached <- true
			<-hold
			return modeltest.Said{Text: "late"}
		})
		cmd, s := w.start("pull_request", w.event("pull_request.opened", nil), askModel(m, "gemini", "gemini-2.5-pro")...)
		var log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &log, &log
		w.must(cmd.Start())
		select {
		case <-reached:
		case <-time.After(5 * time.Minute):
			t.Error("the second request never came")
		}
		if whole {
			w.must(cmd.Process.Kill())
		} else {
			starters := relays(w.dir)
			if len(starters) != 1 {
				t.Fatal(starters)
			}
			w.must(syscall.Kill(starters[0], syscall.SIGKILL))
		}
		_ = cmd.Wait()
		close(hold)
		s = w.finish(s, cmd.ProcessState.ExitCode(), log.String())
		checkNothingRuns(t, w.dir)
		logs, _ := filepath.Glob(filepath.Join(s.temp, "fumehood-*", "*", "logs", "model", "audit.jsonl"))
		if len(logs) != 1 || s.code == exitOK || len(w.gh.ReviewComments(prNumber)) != 0 || len(w.gh.Reviews(prNumber)) != 0 {
			t.Fatalf("exit %d, logs %v\n%s", s.code, logs, s.log)
		}
		kinds := checkReviewLog(t, review.Run{Log: logs[0]}, 2, false)
		begun := []string{"review", "model.request", "model.answer", "model.request"}
		if whole { // the process that runs commands ends in order with the one that asks
			begun = append(begun, "model.answer", "end")
		}
		if !slices.Equal(kinds, begun) {
			t.Error(kinds)
		}
		if !whole {
			want(t, "comment", w.comment().Body, "Not reviewed:")
		}
	}
}

// modelAnswer is an answer that fits the schema.
func modelAnswer(t testing.TB, done bool, commands []string, findings ...map[string]any) string {
	t.Helper()
	list := []map[string]string{}
	for _, c := range commands {
		list = append(list, map[string]string{"run": c, "why": "to see"})
	}
	data, err := json.Marshal(map[string]any{"done": done, "commands": list, "findings": slices.Concat([]map[string]any{}, findings), "tests": []any{}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// checkReviewLog verifies the log of a review: what is fixed comes first, and each request is
// there before its answer.
func checkReviewLog(t testing.TB, run review.Run, requests int, sealed bool) (kinds []string) {
	t.Helper()
	log, err := os.Open(run.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	summary, err := audit.Scan(log, audit.Trust{Key: run.Key, Checkpoint: run.Checkpoint}, func(e audit.Entry) error {
		kinds = append(kinds, e.Kind)
		if strings.Contains(string(e.Body), modeltest.Key) {
			t.Error("the key is in the log")
		}
		if e.Kind != "review" {
			return nil
		}
		var fixed struct {
			Policy, Provider, System string
			Limits                   map[string]any
			Network                  []string
		}
		if err := json.Unmarshal(e.Body, &fixed); err != nil || fixed.Policy == "" || fixed.Provider == "" || fixed.System == "" || fixed.Limits == nil || len(fixed.Network) != 0 {
			t.Errorf("%v: %s", err, e.Body)
		}
		return nil
	})
	if err != nil || summary.Complete() != sealed || len(kinds) == 0 || kinds[0] != "review" {
		t.Errorf("%v, %+v, %v", err, summary, kinds)
	}
	n := 0
	for i, kind := range kinds {
		if kind == "model.request" {
			n++
			if sealed && kinds[i+1] != "model.answer" {
				t.Errorf("entry %d: a request without an answer: %v", i, kinds)
			}
		}
	}
	if n != requests {
		t.Errorf("%d requests in the log, %d were sent", n, requests)
	}
	return kinds
}

// What the model had found when it gave up is verified and posted, and called incomplete.
func TestE2EActionModelPartial(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	m := modeltest.New(t, func(n int, _ modeltest.Asked) modeltest.Said {
		if n > 1 {
			return modeltest.Said{Stop: "refusal", Text: "no"}
		}
		return modeltest.Said{Text: modelAnswer(t, false, []string{"ls"}, greeting)}
	})
	s := w.act("pull_request", w.event("pull_request.opened", nil), askModel(m, "openai", "gpt-5")...)
	if s.code != exitRefused || s.outputs["verified"] != "" || s.outputs["reason"] == "" || len(w.gh.ReviewComments(prNumber)) != 1 {
		t.Errorf("exit %d, outputs %q, comments %+v\n%s", s.code, s.outputs, w.gh.ReviewComments(prNumber), s.log)
	}
	want(t, "comment", w.comment().Body, "Incomplete review, 1 verified finding so far", "refused")
}

// Guidance is the default branch's: what the pull request writes there has no effect.
func TestE2EActionModelGuidance(t *testing.T) {
	t.Parallel()
	config := func(review string) map[string]string {
		return map[string]string{".github/fumehood.yml": "schema: fumehood.config/v1\nsetup: none\nreview: " + review + "\n"}
	}
	w := newWorld(t, false, config("{focus: [only the base says this]}"), config("{focus: [only the head says this], ignore: [greet.sh], transcript: true}"))
	m := modeltest.New(t, func(n int, a modeltest.Asked) modeltest.Said {
		if first := a.Turns[0].Text; !strings.Contains(first, "Look at: only the base says this") || strings.Contains(first, "Look at: only the head says this") {
			t.Errorf("the model is asked %s", first)
		}
		return modeltest.Said{Text: modelAnswer(t, n == 2, []string{"ls"}[:2-n], greeting)}
	})
	s := w.act("pull_request", w.event("pull_request.opened", nil), askModel(m, "gemini", "gemini-2.5-pro")...)
	if kept, _ := filepath.Glob(filepath.Join(s.outputs["artifact-path"], "logs", "model", "*")); s.outputs["verified"] != "1" || len(kept) != 1 {
		t.Errorf("outputs %q, kept %v\n%s", s.outputs, kept, s.log)
	}
}
