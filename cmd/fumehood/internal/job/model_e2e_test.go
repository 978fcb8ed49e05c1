// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/model/modeltest"
)

// askModel are the inputs of a step that asks the model of s, and its key.
func askModel(s *modeltest.Server, provider, model string, env ...string) []string {
	return slices.Concat([]string{"INPUT_PHASE=review", "INPUT_PLAN=", "INPUT_PROVIDER=" + provider, "INPUT_MODEL=" + model}, s.ProviderEnv(provider), env)
}

// In a pull request of the same repository, one job asks the model, runs its commands, verifies
// what it finds and posts it, once, however often it runs. Only the process that the runner starts
// has the key.
func TestE2EActionModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.Process = true
	for i, provider := range []string{"anthropic", "openai"} {
		var problems []string
		m := modeltest.New(t, func(n int, a modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
			if n == 1 {
				return modeltest.ScriptedAnswer{Text: jobtest.ModelAnswer(t, false, []string{"sh greet.sh", "env; cat /proc/self/environ"}, jobtest.GreetingFinding(nil))}
			}
			if problems = jobtest.FindKeyLeaks(w.Dir); !strings.Contains(a.LastText(), "hello world") {
				t.Errorf("the model reads %s", a.LastText())
			}
			return modeltest.ScriptedAnswer{Text: jobtest.ModelAnswer(t, true, nil, jobtest.GreetingFinding(nil))}
		})
		s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), askModel(m, provider, []string{"claude-sonnet-4-6", "gpt-5"}[i])...)
		if s.Code != cli.Refused || s.Outputs["conclusion"] != "failure" || s.Outputs["verified"] != "1" || len(m.Requests()) != 2 {
			t.Fatalf("exit %d, outputs %q, %d requests\n%s", s.Code, s.Outputs, len(m.Requests()), s.Log)
		}
		for _, p := range problems {
			t.Error(p)
		}
		list := w.GH.ReviewComments(jobtest.PrNumber)
		if len(list) != 1 || list[0].Path != "greet.sh" || list[0].Line != 1 || len(w.GH.Reviews(jobtest.PrNumber)) != 1 || w.GH.Reviews(jobtest.PrNumber)[0].State != "COMMENTED" {
			t.Errorf("comments %+v, reviews %+v", list, w.GH.Reviews(jobtest.PrNumber))
		}
		jobtest.CheckContains(t, "comment", w.BotComment().Body, "1 verified finding of 1", provider, "2 requests")
		doc := w.modelDocument(s, 2)
		if !doc.Reviewed || doc.Model.Ran == 0 || doc.Model.Session == nil {
			t.Errorf("%+v", doc.Model)
		}
		w.keyNowhere(s)
	}
}

// modelDocument returns the review in the artifact of a step, whose logs must verify.
func (w world) modelDocument(s jobtest.Step, requests int) (d review.Document) {
	w.T.Helper()
	data, err := os.ReadFile(s.Outputs["review"])
	w.must(err)
	w.must(json.Unmarshal(data, &d))
	logs := filepath.Join(s.Outputs["artifact-path"], "logs")
	run := d.Model.Log
	run.Log = filepath.Join(logs, run.Log)
	jobtest.CheckReviewLog(w.T, run, requests, true)
	subject := fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Appendf(nil, "%s#%d", jobtest.Hub, jobtest.PrNumber)))
	if data, err := os.ReadFile(run.Log); err != nil || !bytes.Contains(data, []byte(subject)) {
		w.T.Errorf("the log does not name the pull request's budget: %v", err)
	}
	for _, r := range d.Runs {
		if _, err := os.Stat(filepath.Join(logs, r.Log)); err != nil {
			w.T.Error(err)
		}
	}
	return d
}

// keyNowhere fails if the key or the token is in what a step left or printed, except for the
// commands that make the runner mask them.
func (w world) keyNowhere(s jobtest.Step) {
	w.T.Helper()
	var log strings.Builder
	for line := range strings.Lines(s.Log) {
		if !strings.HasPrefix(line, "::add-mask::") {
			log.WriteString(line)
		}
	}
	texts := map[string]string{"log": log.String(), "summary": s.Summary, "outputs": fmt.Sprint(s.Outputs)}
	for i, c := range w.GH.Comments(jobtest.PrNumber) {
		texts[fmt.Sprint("comment ", i)] = c.Body
	}
	for i, c := range w.GH.ReviewComments(jobtest.PrNumber) {
		texts[fmt.Sprint("line ", i)] = c.Body
	}
	w.must(filepath.WalkDir(s.Temp, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			texts[path] = string(data)
			return err
		}
		return err
	}))
	for where, text := range texts {
		for _, secret := range []string{modeltest.Key, jobtest.JobToken} {
			if strings.Contains(text, secret) {
				w.T.Errorf("%s has %s", where, secret)
			}
		}
	}
}

// What cannot be asked is refused with a code before anything is fetched or asked.
func TestE2EActionModelRefused(t *testing.T) {
	t.Parallel()
	own, fork := newWorld(t, false, nil, nil), newWorld(t, true, nil, nil)
	m := modeltest.New(t, func(int, modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
		return modeltest.ScriptedAnswer{Status: 500}
	})
	opened := own.EventPayload("pull_request.opened", nil)
	comment := own.CommentEvent(own.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood review"))
	for name, c := range map[string]struct {
		w       world
		event   string
		payload []byte
		env     []string
		code    string
	}{
		"a fork":              {fork, "pull_request", fork.EventPayload("pull_request.opened.fork", nil), nil, "action.model-beside-code"},
		"a fork, after a run": {fork, "workflow_run", fork.EventPayload("workflow_run.completed.pr.fork", nil), nil, "action.workflow-run"},
		"a comment":           {own, "issue_comment", comment, nil, "action.model-beside-code"},
		"findings too":        {own, "pull_request", opened, []string{"INPUT_FINDINGS=" + badFindings}, "action.two-reviewers"},
		"no key":              {own, "pull_request", opened, []string{"ANTHROPIC_API_KEY="}, "model.key"},
		"no model":            {own, "pull_request", opened, []string{"INPUT_MODEL="}, "model.options"},
		"no price":            {own, "pull_request", opened, []string{"INPUT_MODEL=unknown"}, "model.price"},
		"an open address":     {own, "pull_request", opened, []string{"ANTHROPIC_BASE_URL=http://model.example"}, "model.address"},
	} {
		s := c.w.RunStep(c.event, c.payload, askModel(m, "anthropic", "claude-sonnet-4-6", c.env...)...)
		if s.Code != cli.Stopped || !strings.Contains(s.Log, c.code) || strings.Contains(s.Log, "policy and configuration:") {
			t.Errorf("%s: exit %d\n%s", name, s.Code, s.Log)
		}
		if c.code == "action.model-beside-code" {
			jobtest.CheckContains(t, name, s.Log, ".github/examples/review.yml")
		}
		c.w.keyNowhere(s)
	}
	s := own.RunStep("pull_request", own.EventPayload("pull_request.opened.dependabot", nil), askModel(m, "anthropic", "claude-sonnet-4-6", "ANTHROPIC_API_KEY=")...)
	if s.Code != cli.OK || s.Outputs["conclusion"] != "skipped" {
		t.Errorf("Dependabot: exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	if len(m.Requests()) != 0 || len(own.GH.Reviews(jobtest.PrNumber))+len(fork.GH.Reviews(jobtest.PrNumber)) != 0 {
		t.Errorf("%d requests, or a review", len(m.Requests()))
	}
}

// Whatever goes wrong with the model or the budget is neutral, and the comment has the reason. No
// request is sent that could exceed the budget.
func TestE2EActionModelNotReviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	for _, c := range []struct {
		name  string
		said  modeltest.ScriptedAnswer
		env   []string
		why   string
		asked int
	}{
		{"a wrong key", modeltest.ScriptedAnswer{Status: 401}, nil, "401", 1},
		{"ten MB", modeltest.ScriptedAnswer{Text: strings.Repeat("x", 10<<20)}, nil, "larger than", 1},
		{"no command", modeltest.ScriptedAnswer{Text: jobtest.ModelAnswer(t, true, nil)}, nil, "no command of the model ran", 1},
		{"a small budget", modeltest.ScriptedAnswer{}, []string{"INPUT_MAX_TOKENS=5000"}, "budget of this review", 0},
		{"a small budget in dollars", modeltest.ScriptedAnswer{}, []string{"INPUT_MAX_USD=0.01"}, "budget of this review", 0},
		{"too many rounds", modeltest.ScriptedAnswer{Text: "no JSON"}, []string{"INPUT_MAX_ROUNDS=2"}, "cannot be used", 2},
	} {
		m := modeltest.New(t, func(int, modeltest.ReceivedRequest) modeltest.ScriptedAnswer { return c.said })
		s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), askModel(m, "anthropic", "claude-sonnet-4-6", c.env...)...)
		if s.Code != cli.OK || s.Outputs["conclusion"] != "neutral" || s.Outputs["verified"] != "" || len(m.Requests()) != c.asked {
			t.Errorf("%s: exit %d, outputs %q, %d requests\n%s", c.name, s.Code, s.Outputs, len(m.Requests()), s.Log)
			continue
		}
		jobtest.CheckContains(t, c.name, w.BotComment().Body, "Not reviewed:", c.why)
		w.modelDocument(s, c.asked)
	}
	if n := len(w.GH.Reviews(jobtest.PrNumber)); n != 0 {
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
		m := modeltest.New(t, func(n int, _ modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
			if n == 1 {
				return modeltest.ScriptedAnswer{Text: jobtest.ModelAnswer(t, false, []string{"ls"}, jobtest.GreetingFinding(nil))}
			}
			reached <- true
			<-hold
			return modeltest.ScriptedAnswer{Text: "late"}
		})
		cmd, s := w.Start("pull_request", w.EventPayload("pull_request.opened", nil), askModel(m, "gemini", "gemini-2.5-pro")...)
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
			starters := jobtest.FindRelays(w.Dir)
			if len(starters) != 1 {
				t.Fatal(starters)
			}
			w.must(syscall.Kill(starters[0], syscall.SIGKILL))
		}
		_ = cmd.Wait()
		close(hold)
		s = w.FinishStep(s, cmd.ProcessState.ExitCode(), log.String())
		jobtest.CheckNothingRuns(t, w.Dir)
		logs, _ := filepath.Glob(filepath.Join(s.Temp, "fumehood-*", "*", "logs", "model", "audit.jsonl"))
		if len(logs) != 1 || s.Code == cli.OK || len(w.GH.ReviewComments(jobtest.PrNumber)) != 0 || len(w.GH.Reviews(jobtest.PrNumber)) != 0 {
			t.Fatalf("exit %d, logs %v\n%s", s.Code, logs, s.Log)
		}
		kinds := jobtest.CheckReviewLog(t, review.Run{Log: logs[0]}, 2, false)
		begun := []string{"review", "model.request", "model.answer", "model.request"}
		if whole { // the process that runs commands ends in order with the one that asks
			begun = append(begun, "model.answer", "end")
		}
		if !slices.Equal(kinds, begun) {
			t.Error(kinds)
		}
		if !whole {
			jobtest.CheckContains(t, "comment", w.BotComment().Body, "Not reviewed:")
		}
	}
}

// What the model had found when it gave up is verified and posted, and called incomplete.
func TestE2EActionModelPartial(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	m := modeltest.New(t, func(n int, _ modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
		if n > 1 {
			return modeltest.ScriptedAnswer{Stop: "refusal", Text: "no"}
		}
		return modeltest.ScriptedAnswer{Text: jobtest.ModelAnswer(t, false, []string{"ls"}, jobtest.GreetingFinding(nil))}
	})
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), askModel(m, "openai", "gpt-5")...)
	if s.Code != cli.Refused || s.Outputs["verified"] != "" || s.Outputs["reason"] == "" || len(w.GH.ReviewComments(jobtest.PrNumber)) != 1 {
		t.Errorf("exit %d, outputs %q, comments %+v\n%s", s.Code, s.Outputs, w.GH.ReviewComments(jobtest.PrNumber), s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "Incomplete review, 1 verified finding so far", "refused")
}

// Guidance is the default branch's: what the pull request writes there has no effect.
func TestE2EActionModelGuidance(t *testing.T) {
	t.Parallel()
	config := func(review string) map[string]string {
		return map[string]string{".github/fumehood.yml": "schema: fumehood.config/v1\nsetup: none\nreview: " + review + "\n"}
	}
	w := newWorld(t, false, config("{focus: [only the base says this]}"), config("{focus: [only the head says this], ignore: [greet.sh], transcript: true}"))
	m := modeltest.New(t, func(n int, a modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
		if first := a.Turns[0].Text; !strings.Contains(first, "Look at: only the base says this") || strings.Contains(first, "Look at: only the head says this") {
			t.Errorf("the model is asked %s", first)
		}
		return modeltest.ScriptedAnswer{Text: jobtest.ModelAnswer(t, n == 2, []string{"ls"}[:2-n], jobtest.GreetingFinding(nil))}
	})
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), askModel(m, "gemini", "gemini-2.5-pro")...)
	if kept, _ := filepath.Glob(filepath.Join(s.Outputs["artifact-path"], "logs", "model", "*")); s.Outputs["verified"] != "1" || len(kept) != 1 {
		t.Errorf("outputs %q, kept %v\n%s", s.Outputs, kept, s.Log)
	}
}
