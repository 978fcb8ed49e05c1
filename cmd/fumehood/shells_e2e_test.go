// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// shellPrograms are cells of bash that start programs, with what each of them prints.
var shellPrograms = [][2]string{
	{"ls data.csv", "data.csv"}, {"cat data.csv", "n\n1\n2\n6"}, {"grep -c . data.csv", "4"}, {"sed -n 2p data.csv", "1"},
	{"awk '{s += $1} END {print s}' data.csv", "9"}, {"find . -name data.csv", "./data.csv"}, {"sort -r data.csv | head -n 1", "n"},
	{"wc -l < data.csv", "4"}, {"echo a:b | cut -d: -f2 | tr b c", "c"}, {"git --version", "git version"},
	{"python3 -c 'print(6 * 7)'", "42"}, {"node -e 'console.log(6 * 7)'", "42"}, {"npm --version", "."}, {"go version", "go version"},
	{"make --version", "GNU Make"}, {"jq -n 6*7", "42"}, {"echo b | xargs echo a", "a b"}, {"env X=7 bash -c 'echo $X'", "7"},
	{"sqlite3 :memory: 'select 42'", "42"}, {"perl -e 'print 42'", "42"},
}

// A shellDoor runs a cell in a context of bash, whose name is its number, and returns what it printed.
type shellDoor func(t *testing.T, context int, code string) string

// Programs start in each of the ten cells of a context of bash, through each door.
func TestE2EShellProgramsStartInEveryCell(t *testing.T) {
	t.Setenv("FUMEHOOD_CACHE", jobtest.BuildCache(t))
	for name, door := range map[string]struct {
		open func(*testing.T) shellDoor
		step int
	}{
		"MCP": {mcpShells, 1}, "E2B": {e2bShells, 1}, "Go": {gateShells, 1},
		"CLI": {sessionShells, 5}, // each cell is a process of fumehood
	} {
		t.Run(name, func(t *testing.T) {
			run := door.open(t)
			for context := 0; context < len(shellPrograms); context += door.step {
				for n := range 10 {
					program := shellPrograms[(context+n)%len(shellPrograms)]
					if got := run(t, context, program[0]); !strings.Contains(got, program[1]) {
						t.Errorf("cell %d, %q: %q; want %q", n+1, program[0], got, program[1])
					}
				}
			}
		})
	}
}

func mcpShells(t *testing.T) shellDoor {
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: newMCPDesk(t).command()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return func(t *testing.T, context int, code string) string {
		return mcpCall(t, cs, "run_code", map[string]any{"language": "bash", "code": code, "context": fmt.Sprint("c", context)})
	}
}

func sessionShells(t *testing.T) shellDoor {
	d := newMCPDesk(t)
	d.startSession(t, "shells")
	return func(t *testing.T, context int, code string) string {
		cmd := d.session("exec", "shells", "--language", "bash", "--context", fmt.Sprint("c", context))
		cmd.Stdin = strings.NewReader(code)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v", code, err)
		}
		return string(out)
	}
}

func e2bShells(t *testing.T) shellDoor {
	s := startServe(t, newServeDesk(t))
	t.Cleanup(func() { s.end(t) })
	b := s.create(t, `{}`)
	headers := []string{"E2b-Sandbox-Id", b.SandboxID, "E2b-Sandbox-Port", "49999", "E2B-Traffic-Access-Token", b.TrafficAccessToken}
	ids := map[int]string{}
	return func(t *testing.T, context int, code string) string {
		if ids[context] == "" {
			var made struct{ ID string }
			if got := s.call("POST", "/contexts", `{"language":"bash"}`, headers...); json.Unmarshal([]byte(got), &made) != nil || made.ID == "" {
				t.Fatal(got)
			}
			ids[context] = made.ID
		}
		body, err := json.Marshal(map[string]string{"code": code, "context_id": ids[context]})
		if err != nil {
			t.Fatal(err)
		}
		printed := ""
		for line := range strings.Lines(s.call("POST", "/execute", string(body), headers...)) {
			var event struct{ Type, Text, Name, Value string }
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			printed += event.Text + event.Name + event.Value
		}
		return printed
	}
}

func gateShells(t *testing.T) shellDoor {
	ctx := context.WithoutCancel(t.Context()) // the test's ends before its cleanup, and the session with it
	g, err := gate.New(ctx, gate.Options{Workspace: newMCPDesk(t).dir + "/ws"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	s, err := g.Open(ctx, gate.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	n := 0
	return func(t *testing.T, context int, code string) string {
		n++
		r, err := s.Do(t.Context(), proposal.Proposal{ID: fmt.Sprint("cell", n), Language: "bash", Code: code, Context: fmt.Sprint("c", context)})
		if err != nil || r.Result == nil {
			t.Fatalf("%q: %v, %v denied", code, err, r.Decision.Rules)
		}
		return string(r.Result.Stdout.Head) + string(r.Result.Stderr.Head)
	}
}
