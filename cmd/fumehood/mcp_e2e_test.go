// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
)

// mcpPackages are the clients, as npm has them.
var mcpPackages = []string{
	"@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/inspector@0.15.0", "@anthropic-ai/claude-code@2.1.197", "@openai/codex@0.169.0",
	"@langchain/mcp-adapters@1.1.4", "@langchain/openai@1.5.8", "@langchain/langgraph@1.7.3", "@langchain/core@1.4.0", "@llamaindex/tools@0.1.12", "llamaindex@0.12.1",
}

// An mcpStep is one tool call of a conversation.
type mcpStep struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
}

// mcpSteps run a command, one that is denied, and analyze data in three turns, whose state
// is a file.
var mcpSteps = []mcpStep{
	{"run", map[string]any{"command": "wc -l data.csv"}},
	{"run", map[string]any{"command": "curl https://evil.example"}},
	{"run_code", map[string]any{"language": "python", "code": "import csv, json\njson.dump([int(r['n']) for r in csv.DictReader(open('data.csv'))], open('state.json', 'w'))"}},
	{"run_code", map[string]any{"language": "python", "code": "import json\nn = json.load(open('state.json'))\nprint('mean', sum(n) / len(n))"}},
	{"run_code", map[string]any{"language": "python", "code": "import json\nn = json.load(open('state.json'))\nopen('chart.svg', 'w').write('<svg>' + ''.join(f'<rect height=\"{v}\"/>' for v in n) + '</svg>')\nprint('chart', len(n))"}},
}

// mcpDecisions are what the log of mcpSteps has.
var mcpDecisions = []string{"allow", "deny", "allow", "allow", "allow"}

// mcpClients makes the directory with the clients' packages once for all tests.
var mcpClients = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(shared, "mcp-clients")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true,"type":"module"}`), 0o644); err != nil {
		return "", err
	}
	script := `npm install --ignore-scripts --no-audit --no-fund --save-exact "$@" >&2 && node node_modules/@anthropic-ai/claude-code/install.cjs >&2`
	cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, mcpPackages...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm: %w\n%s", err, out)
	}
	return dir, nil
})

// newClientDesk returns a desk whose workspace has the configuration that fumehood mcp
// config prints, and a fumehood in PATH.
func newClientDesk(t *testing.T) mcpDesk {
	t.Helper()
	d := newMCPDesk(t)
	clients, err := mcpClients()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(d.dir, "bin")
	wrapper := fmt.Sprintf("#!/bin/sh\nexport FUMEHOOD_CACHE=%s XDG_STATE_HOME=%s TMPDIR=%s %s=1\nexec %s \"$@\"\n", jobtest.BuildCache(t), filepath.Join(d.dir, "state"), d.dir, asFumehood, os.Args[0])
	steps, err := json.Marshal(mcpSteps)
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(d.dir, "home")
	for name, text := range map[string]string{filepath.Join(bin, "fumehood"): wrapper, filepath.Join(d.dir, "steps.json"): string(steps), filepath.Join(home, ".keep"): ""} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	scripts, err := filepath.Glob("testdata/mcp/*.mjs")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts of clients")
	}
	for _, script := range scripts { // imports are looked up from where a script is
		data, err := os.ReadFile(script)
		if err == nil {
			err = os.WriteFile(filepath.Join(clients, filepath.Base(script)), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d.env = append(os.Environ(), "PATH="+bin+":"+filepath.Join(clients, "node_modules", ".bin")+":"+os.Getenv("PATH"), "HOME="+home, "CLIENTS="+clients, "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	if err := os.WriteFile(filepath.Join(d.dir, "ws", ".mcp.json"), d.shell(t, "fumehood mcp --print-config claude"), 0o644); err != nil {
		t.Fatal(err)
	}
	return d
}

// shell runs a client in the workspace.
func (d mcpDesk) shell(t *testing.T, script string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env = filepath.Join(d.dir, "ws"), d.env
	return runCommand(t, cmd)
}

// decided returns the effects in the only log of the desk, which is sealed soon after the
// client has ended, or in one of the accepted states.
func (d mcpDesk) decided(t *testing.T, accepted ...audit.State) (effects []string) {
	t.Helper()
	var summary audit.Summary
	for begin := time.Now(); summary.State != audit.Sealed && time.Since(begin) < 20*time.Second; time.Sleep(100 * time.Millisecond) {
		effects, summary = d.readLog(t)
	}
	if summary.State != audit.Sealed && !slices.Contains(accepted, summary.State) {
		t.Errorf("the log is %v", summary)
	}
	return effects
}

func (d mcpDesk) readLog(t *testing.T) (effects []string, summary audit.Summary) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(d.dir, "state/fumehood/*/audit.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%d logs", len(logs))
	}
	f, err := os.Open(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	summary, err = audit.Scan(f, audit.Trust{}, func(e audit.Entry) error {
		if e.Kind != "decision" {
			return nil
		}
		event, err := journal.Entry{Kind: e.Kind, Body: e.Body}.Decode()
		if err == nil {
			effects = append(effects, event.Decision.Effect.String())
		}
		return err
	})
	if err != nil {
		t.Logf("the log: %v", err) // while it is written
	}
	return effects, summary
}

// checkConversation checks the log of a client that made mcpSteps.
func (d mcpDesk) checkConversation(t *testing.T, accepted ...audit.State) {
	t.Helper()
	if diff := cmp.Diff(mcpDecisions, d.decided(t, accepted...)); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

func TestE2EMCPTypeScriptSDK(t *testing.T) {
	t.Parallel()
	for how, want := range map[string][]string{"stdio": mcpDecisions, "approve": append(slices.Clone(mcpDecisions), "ask", "ask"), "accept-all": append(slices.Clone(mcpDecisions), "ask")} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			d := newClientDesk(t)
			if how != "stdio" {
				steps, _ := json.Marshal(append(slices.Clone(mcpSteps), mcpStep{"run", map[string]any{"command": "touch x"}}))
				if err := os.WriteFile(filepath.Join(d.dir, "steps.json"), steps, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out := string(d.shell(t, `node "$CLIENTS/sdk.mjs" `+how+` ../steps.json`))
			if diff := cmp.Diff(want, d.decided(t)); diff != "" {
				t.Errorf("decisions (-want +got):\n%s%s", diff, out)
			}
			for _, words := range []string{"4 data.csv", "network.client", "mean 3", "chart 3"} {
				if !strings.Contains(out, words) {
					t.Errorf("the client's output lacks %q:\n%s", words, out)
				}
			}
			if how == "accept-all" && !strings.Contains(out, "approval.void") {
				t.Errorf("a client that accepts everything:\n%s", out)
			}
		})
	}
}

// pixel is a PNG image.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

var sleep = mcpStep{"run", object{"command": "sleep 1"}}

// A toolStep is a call with what the client gets.
type toolStep struct {
	step     mcpStep
	maxBytes int
	want     []string // of the blocks, each in its place
}

// toolSteps use each tool.
var toolSteps = []toolStep{
	{mcpStep{"check", object{"commands": []string{"ls", "curl https://evil.example"}}}, 400, []string{"allow: ls\ndeny: curl https://evil.example\nnetwork.client: "}},
	{mcpStep{"run", object{"command": "echo hi"}}, 250, []string{"exit code 0"}},
	{mcpStep{"run", object{"command": "curl https://evil.example"}}, 400, []string{"not run: policy denied it\nnetwork.client: "}},
	{mcpStep{"run", object{"command": "cat > t.sh <<'E'\necho from a script\nE\nbash t.sh"}}, 250, []string{"stdout:\n```\nfrom a script\n```"}},
	{mcpStep{"run", object{"command": "head -c 16000 /dev/zero | tr '\\0' 'x' | fold -w 79"}}, 18_000, []string{"full output: fumehood://output/"}},
	{mcpStep{"run", object{"command": "python3 -m http.server 8000 --bind 127.0.0.1", "background": true}}, 400, []string{"c5: running in the background"}},
	{mcpStep{"run", object{"command": "python3 -c \"import time, urllib.request as u\nfor i in range(50):\n  try: print(len(u.urlopen('http://127.0.0.1:8000/data.csv').read())); break\n  except OSError: time.sleep(.1)\""}}, 250, []string{"stdout:\n```\n8\n```"}},
	{mcpStep{"process", object{"id": "c5"}}, 400, []string{"GET /data.csv"}},
	{mcpStep{"process", object{}}, 250, []string{"c5: running, "}},
	{mcpStep{"run", object{"command": "cat", "background": true, "input": true}}, 250, []string{"c7: running in the background"}},
	{mcpStep{"process", object{"id": "c7", "input": "typed\n", "eof": true, "wait": 60}}, 250, []string{"```\ntyped\n```"}},
	{mcpStep{"write_file", object{"path": "p.png", "content": pixel, "encoding": "base64"}}, 250, []string{"p.png, 70 bytes"}},
	{mcpStep{"read_file", object{"path": "p.png"}}, 500, []string{"image/png, 70 bytes: /", "image image/png"}},
	{mcpStep{"run_code", object{"language": "python", "code": "class P:\n  def _repr_png_(self): return open('p.png', 'rb').read()\nP()"}}, 700, []string{"result:\n", "image/png, 70 bytes: /", "image image/png"}},
	{mcpStep{"run_code", object{"language": "python", "code": "1/0"}}, 500, []string{"ZeroDivisionError: division by zero"}},
	{mcpStep{"process", object{"id": "c5", "stop": true}}, 600, []string{"exit code 0, "}},
	{mcpStep{"edit_file", object{"path": "data.csv", "old": "6\n", "new": "7\n"}}, 250, []string{"data.csv, 8 bytes"}},
	{mcpStep{"run", object{"command": "git apply -", "stdin": "--- a/data.csv\n+++ b/data.csv\n@@ -1,3 +1,3 @@\n n\n-1\n+9\n 2\n"}}, 250, []string{"exit code 0"}},
	{mcpStep{"read_file", object{"path": "missing"}}, 400, []string{`cannot read "missing": no such file`}},
	{mcpStep{"list_files", object{"pattern": "**"}}, 400, []string{"data.csv 8\n"}},
	{mcpStep{"diff", object{"contents": true, "paths": []string{"data.csv"}}}, 500, []string{"-1\n+9\n 2\n-6\n+7\n"}},
	{sleep, 250, []string{"exit code 0"}}, {sleep, 250, []string{"exit code 0"}}, {sleep, 250, []string{"exit code 0"}}, {sleep, 250, []string{"exit code 0"}},
	{mcpStep{"end_session", object{}}, 500, []string{"the session has ended: "}},
}

// What a client gets for each tool: text once, images as blocks and as files, in few bytes.
func TestE2EMCPAnswers(t *testing.T) {
	t.Parallel()
	d := newClientDesk(t)
	var list []any
	for _, s := range toolSteps {
		list = append(list, s.step)
	}
	last := len(list) - 1
	list = append(slices.Clone(list[:last-4]), list[last-4:last], list[last]) // four at once
	data, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, "steps.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(d.shell(t, `node "$CLIENTS/sdk.mjs" stdio ../steps.json`))), "\n")
	if len(lines) != len(toolSteps)+1 {
		t.Fatalf("%d answers:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	var offered struct {
		Tools          []string
		Schemas, Bytes int
	}
	if err := json.Unmarshal([]byte(lines[0]), &offered); err != nil || offered.Schemas > 0 || offered.Bytes > 6000 {
		t.Errorf("tools: %v, %+v", err, offered)
	}
	for i, s := range toolSteps {
		offered.Tools = slices.DeleteFunc(offered.Tools, func(tool string) bool { return tool == s.step.Tool })
		var got struct {
			Error, Structured bool
			Blocks            []string
			Bytes             int
			MS                float64
		}
		if err := json.Unmarshal([]byte(lines[i+1]), &got); err != nil {
			t.Fatal(err)
		}
		if failed := s.step.Args["path"] == "missing"; got.Error != failed || got.Structured || got.Bytes > s.maxBytes || len(got.Blocks) != len(s.want) {
			t.Errorf("%s %v: %s", s.step.Tool, s.step.Args, lines[i+1])
			continue
		}
		for j, want := range s.want {
			if !strings.Contains(got.Blocks[j], want) {
				t.Errorf("%s %v: %q lacks %q", s.step.Tool, s.step.Args, got.Blocks[j], want)
			}
		}
		if s.step.Args["command"] == "sleep 1" && got.MS > 3000 {
			t.Errorf("four commands at once took %.0f ms", got.MS)
		}
	}
	if len(offered.Tools) > 0 {
		t.Errorf("no step calls %q", offered.Tools)
	}
}

func TestE2EMCPTypeScriptSDKOverHTTP(t *testing.T) {
	t.Parallel()
	d := newClientDesk(t)
	token := strings.Repeat("0123456789abcdef", 2)
	if err := os.WriteFile(filepath.Join(d.dir, "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	out := string(d.shell(t, `fumehood mcp --workspace . --http 127.0.0.1:0 --token-file ../token 2> ../server.err & server=$!
		trap 'kill $server; wait $server' EXIT
		until url=$(sed -n 's/.*serving MCP at //p' ../server.err) && [ -n "$url" ]; do sleep 0.1; done
		node "$CLIENTS/sdk.mjs" http ../steps.json "$url" `+token+`
		! node "$CLIENTS/sdk.mjs" http ../steps.json "$url" wrong 2>&1`))
	if !strings.Contains(out, "mean 3") || !strings.Contains(out, "invalid token") {
		t.Errorf("output:\n%s", out)
	}
	d.checkConversation(t)
}

// What the model of Claude Code sees for each tool is what the client got, images too.
func TestE2EMCPClaudeCode(t *testing.T) {
	t.Parallel()
	steps := modelSteps("")
	d, model := newClientDesk(t), newStubModel(t, callsOf(steps)...)
	out := string(d.shell(t, `ANTHROPIC_BASE_URL=`+model.url+` ANTHROPIC_API_KEY=x MCP_TIMEOUT=120000 MCP_TOOL_TIMEOUT=300000 MCP_CONNECTION_NONBLOCKING=0 MCP_CONNECT_TIMEOUT_MS=120000 claude -p go --mcp-config .mcp.json --strict-mcp-config --output-format json \
		--allowedTools mcp__fumehood --disallowedTools Bash,Edit,Write,NotebookEdit </dev/null`))
	if !strings.Contains(out, `"is_error":false`) || !strings.Contains(out, "DONE") {
		t.Errorf("output: %s", out)
	}
	model.checkSeen(t, steps)
	d.decided(t)
}

// What the model of Codex sees for each tool is what the client got, images too. Without a person it refuses to end the
// session, which is destructive.
//
// Codex kills the server a moment after it has closed its standard input: if the end of the
// session takes longer, the log verifies as cut off.
func TestE2EMCPCodex(t *testing.T) {
	t.Parallel()
	steps := modelSteps("end_session")
	d, model := newClientDesk(t), newStubModel(t, callsOf(steps)...)
	out := string(d.shell(t, `export CODEX_HOME=$HOME/codex && mkdir -p "$CODEX_HOME" && {
		printf 'model_provider = "stub"\nmodel = "stub"\n[features]\nshell_tool = false\n[model_providers.stub]\nname = "stub"\nbase_url = "`+model.url+`/v1"\nwire_api = "responses"\n'
		fumehood mcp --print-config codex; } > "$CODEX_HOME/config.toml" && codex exec --json --skip-git-repo-check go </dev/null`))
	if !strings.Contains(out, "DONE") {
		t.Errorf("output: %s", out)
	}
	model.checkSeen(t, steps)
	d.decided(t, audit.Unsealed)
}

// A stubModel answers in the forms of three APIs. Clients merge messages with one id. It calls the tools of its steps in
// order, each once, and ends with "DONE".
type stubModel struct {
	url   string
	steps []mcpStep

	mu   sync.Mutex
	seen []string // the results of the steps, as the last request has them
}

func newStubModel(t *testing.T, steps ...mcpStep) *stubModel {
	t.Helper()
	m := &stubModel{steps: steps}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

// modelSteps are those of toolSteps that a model calls one after the other: without sleep, and without except.
func modelSteps(except string) (steps []toolStep) {
	return slices.DeleteFunc(slices.Clone(toolSteps), func(s toolStep) bool {
		return s.step.Tool == except || s.step.Args["command"] == "sleep 1"
	})
}

func callsOf(steps []toolStep) (calls []mcpStep) {
	for _, s := range steps {
		calls = append(calls, s.step)
	}
	return calls
}

// checkSeen checks what the model has seen of the results of steps.
func (m *stubModel) checkSeen(t *testing.T, steps []toolStep) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) != len(steps) {
		t.Fatalf("the model saw %d results: %q", len(m.seen), m.seen)
	}
	for i, s := range steps {
		t.Logf("%s %v: %.300q", s.step.Tool, s.step.Args, m.seen[i])
		for _, want := range s.want {
			if !strings.Contains(m.seen[i], want) {
				t.Errorf("%s %v: the model saw %q without %q", s.step.Tool, s.step.Args, m.seen[i], want)
			}
		}
		if n := len(m.seen[i]); n > s.maxBytes+200 {
			t.Errorf("%s %v: the model saw %d bytes", s.step.Tool, s.step.Args, n)
		}
	}
}

type modelRequest struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []json.RawMessage `json:"messages"`
	Input    []json.RawMessage `json:"input"`
}

// toolNamed returns the name under which a request offers a tool of fumehood's, and its
// namespace.
func (r modelRequest) toolNamed(tool string) (name, space string) {
	type offered struct {
		Name     string
		Function struct{ Name string }
		Tools    []struct{ Name string }
	}
	for _, data := range r.Tools {
		var x offered
		if json.Unmarshal(data, &x) != nil {
			continue
		}
		for _, inner := range x.Tools {
			if inner.Name == tool && strings.Contains(x.Name, "fumehood") {
				return inner.Name, x.Name
			}
		}
		for _, name := range []string{x.Name, x.Function.Name} {
			if name == tool || strings.Contains(name, "fumehood") && strings.HasSuffix(name, "__"+tool) {
				return name, ""
			}
		}
	}
	return "", ""
}

// A resultPart is a part of a message, of a tool's result, or of that's content.
type resultPart struct {
	Type, Role, Text string
	Content, Output  json.RawMessage
	Source           struct {
		Media string `json:"media_type"`
	}
	Image string `json:"image_url"`
}

// results are the results of tools in a request, in order: texts, and the types of images, a line each.
func (r modelRequest) results() (list []string) {
	for _, data := range slices.Concat(r.Messages, r.Input) {
		var message resultPart
		_ = json.Unmarshal(data, &message)
		var parts []resultPart
		switch {
		case message.Role == "tool":
			list = append(list, flatten(message.Content))
		case message.Type == "function_call_output":
			list = append(list, flatten(message.Output))
		case message.Role == "user" && json.Unmarshal(message.Content, &parts) == nil:
			for _, p := range parts {
				if p.Type == "tool_result" {
					list = append(list, flatten(p.Content))
				}
			}
		}
	}
	return list
}

// flatten is a text, or a list of parts, as one text.
func flatten(data json.RawMessage) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text
	}
	var parts []resultPart
	var lines []string
	if json.Unmarshal(data, &parts) != nil {
		return string(data)
	}
	for _, p := range parts {
		media, _, _ := strings.Cut(strings.TrimPrefix(p.Image, "data:"), ";")
		switch {
		case p.Source.Media+media != "":
			lines = append(lines, "image "+p.Source.Media+media)
		default:
			lines = append(lines, p.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// next returns the step after those whose results the conversation has; nil at its end, or
// if the request offers no tools, as for titles.
func (m *stubModel) next(r modelRequest) (step *mcpStep, name, space string) {
	results := r.results()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(results) >= len(m.seen) {
		m.seen = results
	}
	if len(results) >= len(m.steps) {
		return nil, "", ""
	}
	step = &m.steps[len(results)]
	if name, space = r.toolNamed(step.Tool); name == "" {
		return nil, "", ""
	}
	return step, name, space
}

func (m *stubModel) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var r modelRequest
	_ = json.NewDecoder(q.Body).Decode(&r)
	switch {
	case strings.HasSuffix(q.URL.Path, "/count_tokens"):
		answerJSON(w, map[string]any{"input_tokens": 10})
	case strings.HasSuffix(q.URL.Path, "/v1/messages"):
		m.anthropicAnswer(w, r)
	case strings.HasSuffix(q.URL.Path, "/responses"):
		m.responsesAnswer(w, r)
	case strings.HasSuffix(q.URL.Path, "/chat/completions"):
		m.chatAnswer(w, r)
	default:
		http.NotFound(w, q)
	}
}

type object = map[string]any

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func events(w http.ResponseWriter, list ...object) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range list {
		data, _ := json.Marshal(e)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], data)
	}
}

func (m *stubModel) anthropicAnswer(w http.ResponseWriter, r modelRequest) {
	content, stop := object{"type": "text", "text": "DONE"}, "end_turn"
	begin, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": "DONE"}
	if step, name, _ := m.next(r); step != nil {
		args, _ := json.Marshal(step.Args)
		id := fmt.Sprintf("toolu_%d", len(r.Messages))
		content, stop = object{"type": "tool_use", "id": id, "name": name, "input": step.Args}, "tool_use"
		begin, delta = object{"type": "tool_use", "id": id, "name": name, "input": object{}}, object{"type": "input_json_delta", "partial_json": string(args)}
	}
	message := object{"id": fmt.Sprint("msg_", len(r.Messages)), "type": "message", "role": "assistant", "model": r.Model, "content": []any{content}, "stop_reason": stop, "usage": object{"input_tokens": 10, "output_tokens": 5}}
	if !r.Stream {
		answerJSON(w, message)
		return
	}
	message["content"], message["stop_reason"] = []any{}, nil
	events(w, object{"type": "message_start", "message": message}, object{"type": "content_block_start", "index": 0, "content_block": begin},
		object{"type": "content_block_delta", "index": 0, "delta": delta}, object{"type": "content_block_stop", "index": 0},
		object{"type": "message_delta", "delta": object{"stop_reason": stop}, "usage": object{"output_tokens": 5}}, object{"type": "message_stop"})
}

func (m *stubModel) responsesAnswer(w http.ResponseWriter, r modelRequest) {
	item := object{"type": "message", "id": "m1", "role": "assistant", "content": []any{object{"type": "output_text", "text": "DONE"}}}
	if step, name, space := m.next(r); step != nil {
		args, _ := json.Marshal(step.Args)
		id := fmt.Sprint(len(r.Input))
		item = object{"type": "function_call", "id": "fc_" + id, "call_id": "call_" + id, "name": name, "arguments": string(args)}
		if space != "" {
			item["namespace"] = space
		}
	}
	usage := object{"input_tokens": 10, "input_tokens_details": nil, "output_tokens": 5, "output_tokens_details": nil, "total_tokens": 15}
	events(w, object{"type": "response.created", "response": object{"id": "r1"}}, object{"type": "response.output_item.done", "output_index": 0, "item": item},
		object{"type": "response.completed", "response": object{"id": "r1", "usage": usage}})
}

func (m *stubModel) chatAnswer(w http.ResponseWriter, r modelRequest) {
	message, reason := object{"role": "assistant", "content": "DONE"}, "stop"
	if step, name, _ := m.next(r); step != nil {
		args, _ := json.Marshal(step.Args)
		call := object{"id": fmt.Sprint("c", len(r.Messages)), "type": "function", "function": object{"name": name, "arguments": string(args)}}
		message, reason = object{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
	}
	answerJSON(w, object{"id": fmt.Sprint("chat_", len(r.Messages)), "object": "chat.completion", "created": 1, "model": r.Model, "choices": []any{object{"index": 0, "message": message, "finish_reason": reason}},
		"usage": object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
}

// resident returns the resident memory of a process, in kB.
func resident(t *testing.T, pid int) (kb int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb
}
