// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The metrics of a server agree with the reports of its sessions.
func TestE2EMCPMetrics(t *testing.T) {
	long(t)
	t.Parallel()
	collector := newSink(t)
	s := newHTTPServer(t, "--otlp", collector.URL)
	cs := s.dial(t)
	s.expect(t, map[string]string{"sandboxes": "0", "session_ready_seconds_count": "0", `decisions_total{effect="allow"}`: "0"})
	limits := func(name, value string) map[string]any { return map[string]any{name: value} }
	for _, step := range []map[string]any{
		{"command": "cat data.csv"},
		{"command": "false"},
		{"command": "curl https://evil.example"},
		{"command": "sleep 60", "timeout": "1s"},
		{"command": "seq 1 100000", "limits": limits("output", "1KiB")},
		{"command": "head -c 100000000 /dev/zero > big", "limits": limits("disk", "1MiB")},
		{"command": "tail /dev/zero", "limits": limits("memory", "96MiB")},
		{"command": "true"},
	} {
		mcpCall(t, cs, "run", step)
	}
	s.expect(t, map[string]string{`runs_total{outcome="completed"}`: "0"})
	var proposed, denied, asked, succeeded int
	sealed := mcpCall(t, cs, "end_session", nil)
	if _, err := fmt.Sscanf(sealed, "the session has ended: %d proposed, %d denied, %d need an approval, %d succeeded", &proposed, &denied, &asked, &succeeded); err != nil {
		t.Fatalf("%q: %v", sealed, err)
	}
	_, page := s.get(t, "/metrics")
	value := func(name string) string {
		return regexp.MustCompile(`(?m)^fumehood_` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(page)[1]
	}
	for name, count := range map[string]int{`decisions_total{effect="allow"}`: proposed - denied - asked, `decisions_total{effect="deny"}`: denied, `decisions_total{effect="ask"}`: asked, `commands_total{outcome="succeeded"}`: succeeded} {
		if got, want := value(name), fmt.Sprint(count); got != want {
			t.Errorf("%s is %s, the report has %s", name, got, want)
		}
	}
	s.expect(t, map[string]string{
		`commands_total{outcome="succeeded"}`: "2", `commands_total{outcome="failed"}`: "1", `commands_total{outcome="timed_out"}`: "1",
		`commands_total{outcome="output_limit"}`: "1", `commands_total{outcome="disk_limit"}`: "1", `commands_total{outcome="out_of_memory"}`: "1",
		`runs_total{outcome="completed"}`: "1", "session_ready_seconds_count": "1", "command_seconds_count": "7", "sandboxes": "0",
		`sandbox_starts_total{result="failed"}`: "0", "sandbox_start_seconds_count": value(`sandbox_starts_total{result="started"}`),
	})
	if strings.Contains(page, "evil") || strings.Contains(page, "data.csv") || strings.Contains(page, s.dir) {
		t.Errorf("the metrics reveal something:\n%s", page)
	}
	mcpCall(t, cs, "run", map[string]any{"command": "true"})
	s.expect(t, map[string]string{"sandboxes": "1", "session_ready_seconds_count": "2"})
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.end(t)
	jobtest.CheckContains(t, "the collector", collector.text(), `name: "fumehood_commands_total"`, `string_value: "out_of_memory"`, `name: "fumehood run"`)
}

// A server that gets SIGTERM lets a command end in time, kills one that takes too long, and
// one at a second signal. Its logs are sealed and its exit code is 0.
func TestE2EMCPDrain(t *testing.T) {
	long(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		drain, command string
		signals        int
		done           bool
	}{
		"ends in time":  {"1m", "sleep 3; echo done", 1, true},
		"too long":      {"1s", "sleep 600", 1, false},
		"second signal": {"1h", "sleep 600", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHTTPServer(t, "--drain", tt.drain)
			cs := s.dial(t)
			answer := make(chan string, 1)
			go func() {
				r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"command": tt.command}})
				if r != nil && len(r.Content) > 0 {
					answer <- fmt.Sprintf("%+v %v", r.Content[0], err)
				} else {
					answer <- fmt.Sprintf("%+v %v", r, err)
				}
			}()
			jobtest.WaitUntil(t, "the command", func() bool { return countSleeps(t, filepath.Join(s.dir, "state/fumehood/*/audit.jsonl")) == 1 })
			for range tt.signals {
				if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				jobtest.WaitUntil(t, "the drain", func() bool { code, _ := s.get(t, "/healthz"); return code != 200 })
			}
			s.end(t)
			if !strings.Contains(s.log.String(), "shutting down: running commands have") || !strings.Contains(s.log.String(), "1 proposed, 0 denied") {
				t.Errorf("it prints\n%s", s.log)
			}
			if got := <-answer; strings.Contains(got, "done") != tt.done {
				t.Errorf("the call was answered %s", got)
			}
			if strings.Contains(s.log.String(), "1 succeeded") != tt.done {
				t.Errorf("it prints\n%s", s.log)
			}
		})
	}
}
