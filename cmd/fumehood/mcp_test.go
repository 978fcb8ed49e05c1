// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

const askingPolicy = `package fumehood.command

# METADATA
# title: Touching needs an approval
# custom: {rule: test.touch}
ask contains {"rule": "test.touch", "message": "touching is for people", "suggestion": "write_file"} if {
	input.command.program == "touch"
}
`

const mcpConfig = `schema: fumehood.config/v1
registries: none
setup:
  - run: mkdir -p deps && echo made by set-up > deps/made
`

// A mcpDesk is the directory of a server's test.
type mcpDesk struct {
	dir string
	env []string
}

func newMCPDesk(t *testing.T) mcpDesk {
	t.Helper()
	d := mcpDesk{dir: t.TempDir()}
	d.env = append(os.Environ(), "FUMEHOOD_CACHE="+jobtest.BuildCache(t), asFumehood+"=1", "TMPDIR="+d.dir, "XDG_STATE_HOME="+filepath.Join(d.dir, "state"))
	for name, text := range map[string]string{"ws/data.csv": "n\n1\n2\n6\n", "policy/touch.rego": askingPolicy, "fumehood.yml": mcpConfig} {
		path := filepath.Join(d.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// command returns the server with the given flags.
func (d mcpDesk) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"mcp", "--workspace", "ws", "--config", "fumehood.yml", "--policy", "policy", "--audit", "audit.jsonl"}, args...)...)
	cmd.Dir, cmd.Env = d.dir, d.env
	return cmd
}

// verify checks the log with the real command, which exits 0 for a sealed log only.
func (d mcpDesk) verify(t *testing.T, sealed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "verify", "audit.jsonl", "--untrusted-key")
	cmd.Dir, cmd.Env = d.dir, d.env
	out, err := cmd.CombinedOutput()
	if (err == nil) != sealed {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

func mcpCall(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any) (text string) {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	for _, c := range r.Content {
		if words, is := c.(*mcp.TextContent); is {
			text += words.Text
		}
	}
	if r.IsError {
		t.Errorf("%s %v: %s", tool, args, text)
	}
	return text
}

var mcpCode = regexp.MustCompile(`type the code (\w+)\.`)

// TestMCP has an agent's conversation with the real server: it runs commands and code, is
// denied one, gets one approved, moves files, and ends with a log that verifies.
func TestMCP(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	d := newMCPDesk(t)
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		time.Sleep(1100 * time.Millisecond)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"code": mcpCode.FindStringSubmatch(r.Params.Message)[1]}}, nil
	}})
	cs, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: d.command("--approver", "elicit", "--report", "report.json")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"check", map[string]any{"commands": []string{"cat data.csv", "touch x", "curl https://evil.example"}}, "deny: curl https://evil.example"},
		{"write_file", map[string]any{"path": "more.csv", "content": "n\n3\n"}, "more.csv, 4 bytes"},
		{"run", map[string]any{"command": "cat deps/made more.csv"}, "made by set-up\nn\n3"},
		{"run", map[string]any{"argv": []string{"curl", "https://evil.example"}}, "network.client"},
		{"run", map[string]any{"command": "touch approved"}, "exit code 0"},
		{"run_code", map[string]any{"language": "bash", "code": "while read -r n; do last=$n; done < data.csv; echo \"last $last\""}, "last 6"},
		{"read_file", map[string]any{"path": "data.csv"}, "6"},
		{"list_files", map[string]any{"pattern": "*.csv"}, "2 of 2 files"},
		{"run", map[string]any{"command": "read -r x; echo \"got $x\"; cat", "background": true, "input": true}, "c6: running in the background"},
		{"process", map[string]any{"id": "c6", "input": "one\n", "wait": 60}, "got one"},
		{"process", map[string]any{"id": "c6", "input": "a=1\nb=2\n", "eof": true, "since": 8, "wait": 60}, "a=1\nb=2"},
		{"run", map[string]any{"command": "echo x > beside"}, "exit code 0"},
		{"diff", nil, "added approved 0\nadded beside 2"},
		{"diff", map[string]any{"contents": true, "paths": []string{"more.csv"}}, "+++ b/more.csv\n@@ -0,0 +1,2 @@\n+n\n+3"},
		{"end_session", nil, "log: "},
	} {
		if got := mcpCall(t, cs, step.tool, step.args); !strings.Contains(got, step.want) {
			t.Errorf("%s %v: %q lacks %q", step.tool, step.args, got, step.want)
		}
	}
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	d.verify(t, true)
	checkMCPReport(t, filepath.Join(d.dir, "report.json"))
	if names, _ := filepath.Glob(filepath.Join(d.dir, "ws", "*")); len(names) != 1 {
		t.Errorf("the workspace on the host has %q", names)
	}
}

func checkMCPReport(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(data, len(data))
	if err != nil {
		t.Fatal(err)
	}
	var approved []string
	for _, x := range r.Records {
		if x.Approval != nil {
			t.Errorf("%s: approved by a person", x.Proposal.ID)
		}
		if x.ClientApproval != nil {
			approved = append(approved, x.ClientApproval.Client)
		}
	}
	if !slices.Equal(approved, []string{"MCP client agent 1"}) || !strings.Contains(report.Text(r), "approved by the client MCP client agent 1, not by a known person") {
		t.Errorf("approved by %q\n%s", approved, report.Text(r))
	}
}

// A wire is a server whose messages a test writes itself.
type wire struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func newWire(t *testing.T, cmd *exec.Cmd) wire {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := wire{cmd, in, bufio.NewScanner(out)}
	w.out.Buffer(nil, 1<<24)
	w.send(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`)
	w.answer(t, 0)
	w.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

func (w wire) send(t *testing.T, message string) {
	t.Helper()
	if _, err := io.WriteString(w.in, message+"\n"); err != nil {
		t.Fatal(err)
	}
}

// answer returns the answer to request id. Every line of standard output is a message.
func (w wire) answer(t *testing.T, id int) map[string]any {
	t.Helper()
	for w.out.Scan() {
		var message map[string]any
		if err := json.Unmarshal(w.out.Bytes(), &message); err != nil || message["jsonrpc"] != "2.0" {
			t.Fatalf("standard output has %q", w.out.Text())
		}
		if got, is := message["id"].(float64); is && int(got) == id {
			return message
		}
	}
	t.Fatalf("no answer to %d: %v", id, w.out.Err())
	return nil
}

func (w wire) run(t *testing.T, id int, command string) {
	t.Helper()
	data, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	w.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run","arguments":{"command":%s}}}`, id, data))
}

// started waits until a command sleeps.
func (d mcpDesk) started(t *testing.T) {
	t.Helper()
	jobtest.WaitUntil(t, "the command", func() bool { return countSleeps(t, filepath.Join(d.dir, "audit.jsonl")) == 1 })
}

// TestMCPEnds ends a server while a command runs. Nothing stays behind, and the log is
// sealed, except for SIGKILL: then it verifies as cut off.
func TestMCPEnds(t *testing.T) {
	long(t)
	t.Parallel()
	for signal, sealed := range map[syscall.Signal]bool{syscall.SIGTERM: true, syscall.SIGKILL: false} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			checkMCPEnd(t, sealed, func(w wire) { _ = w.cmd.Process.Signal(signal) })
		})
	}
}

// checkMCPEnd ends a server in a way while a command runs.
func checkMCPEnd(t *testing.T, sealed bool, end func(wire)) {
	t.Helper()
	d := newMCPDesk(t)
	w := newWire(t, d.command())
	w.run(t, 1, "sleep 600")
	d.started(t)
	begin := time.Now()
	end(w)
	_ = w.cmd.Wait()
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("the end took %s", took)
	}
	d.verify(t, sealed)
	jobtest.CheckNothingRuns(t, d.dir)
}

// The workflows of docs/AGENTS.md parse, turn the agent's own tools off, and start the
// server with flags that it has.
func TestAgentsPage(t *testing.T) {
	page := string(jobtest.ReadFile(t, "../../docs/AGENTS.md"))
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d workflows", len(blocks))
	}
	for _, b := range blocks {
		var steps []map[string]any
		if err := yaml.Unmarshal([]byte(b[1]), &steps); err != nil || len(steps) != 3 {
			t.Errorf("%v\n%s", err, b[1])
		}
		if !strings.Contains(b[1], "--disallowedTools Bash,") && !strings.Contains(b[1], "shell_tool = false") {
			t.Errorf("the agent keeps its shell:\n%s", b[1])
		}
	}
	config := regexp.MustCompile(`echo '(\{"mcpServers".*\})'`).FindStringSubmatch(page)
	if config == nil || !json.Valid([]byte(config[1])) {
		t.Errorf("the configuration of claude-code-action is not JSON: %q", config)
	}
	var help strings.Builder
	runCommandLine(t.Context(), []string{"mcp", "--help"}, strings.NewReader(""), &help, &help)
	for _, flag := range regexp.MustCompile(`fumehood mcp (--[^\n]*)`).FindAllStringSubmatch(page, -1) {
		for _, name := range regexp.MustCompile(`--[a-z-]+`).FindAllString(flag[1], -1) {
			if !strings.Contains(help.String(), name) {
				t.Errorf("there is no flag %s", name)
			}
		}
	}
}
