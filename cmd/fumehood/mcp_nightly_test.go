// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// The Inspector starts a server for each call.
func TestNightlyMCPInspector(t *testing.T) {
	t.Parallel()
	d := newClientDesk(t)
	inspect := "mcp-inspector --cli --config .mcp.json --server fumehood --method "
	if got := string(d.shell(t, inspect+"tools/list")); !strings.Contains(got, `"run_code"`) {
		t.Errorf("tools: %s", got)
	}
	if got := string(d.shell(t, inspect+"tools/call --tool-name run --tool-arg command='wc -l data.csv'")); !strings.Contains(got, "4 data.csv") {
		t.Errorf("run: %s", got)
	}
	if got := string(d.shell(t, inspect+"tools/call --tool-name check --tool-arg command='curl https://evil.example'")); !strings.Contains(got, "network.client") {
		t.Errorf("check: %s", got)
	}
	if diff := cmp.Diff([]string{"allow"}, d.decided(t)); diff != "" {
		t.Error(diff)
	}
}

func TestNightlyMCPLangChain(t *testing.T) {
	t.Parallel()
	d, model := newClientDesk(t), newStubModel(t, mcpSteps...)
	if out := string(d.shell(t, `node "$CLIENTS/langchain.mjs" `+model.url)); !strings.Contains(out, "DONE") {
		t.Errorf("output: %s", out)
	}
	d.checkConversation(t)
}

func TestNightlyMCPLlamaIndex(t *testing.T) {
	t.Parallel()
	d := newClientDesk(t)
	if out := string(d.shell(t, `node "$CLIENTS/llamaindex.mjs" ../steps.json`)); !strings.Contains(out, "DONE") || !strings.Contains(out, "mean 3") {
		t.Errorf("output: %s", out)
	}
	d.checkConversation(t)
}

// A thousand calls leave nothing behind: neither memory of the server, nor files outside the
// artifacts, nor processes.
func TestNightlyMCPManyCalls(t *testing.T) {
	t.Parallel()
	d := newMCPDesk(t)
	w := newWire(t, d.command())
	var early int
	begin := time.Now()
	for id := 1; id <= 1000; id++ {
		w.run(t, id, "true")
		if got := fmt.Sprint(w.answer(t, id)); !strings.Contains(got, "exit code 0") {
			t.Fatalf("call %d: %s", id, got)
		}
		if id == 100 {
			early = resident(t, w.cmd.Process.Pid)
		}
	}
	late := resident(t, w.cmd.Process.Pid)
	t.Logf("1,000 calls in %s; %d kB after 100 calls, %d kB after 1,000", time.Since(begin).Round(time.Millisecond), early, late)
	if late > early+64<<10 {
		t.Errorf("the server grew from %d to %d kB", early, late)
	}
	w.in.Close()
	_ = w.cmd.Wait()
	d.verify(t, true)
	if len(jobtest.FindProcesses(d.dir)) > 0 {
		t.Error("processes are left")
	}
}
