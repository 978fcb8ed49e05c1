// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestCorpus: each text of the corpus has the same decision through check as through
// gate.Check.
func TestCorpus(t *testing.T) {
	lanetest.SkipShort(t)
	g, err := gate.New(t.Context(), gate.Options{DecideOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	files, err := filepath.Glob("../../../testdata/corpus/*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus")
	}
	var texts []string
	for _, file := range append(files, "../../../testdata/corpus/benign.txt", "../../../testdata/corpus/hostile.txt") {
		texts = append(texts, sample.ReadCorpus(t, file)...)
	}
	cs := start(t, nil, Options{Gate: func(context.Context, string) (gate.Opener, error) { return g, nil }}, mcp.ClientOptions{})
	accepted, tried := 0, sample.EveryNth(t, texts, 70, 400)
	for _, text := range tried {
		r := call(t, cs, "check", question{Command: text})
		p, problems := plan.Decode(planOf(t, text), "plan.json")
		if problems = append(problems, p.Refused()...); len(problems) > 0 {
			if !r.IsError {
				t.Errorf("%q: invalid in a plan, but %s", text, words(r))
			}
			continue
		}
		accepted++
		records, err := g.Check(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		want := records[0].Decision.Effect.String() + ": "
		got, _ := strings.CutPrefix(words(r), want)
		if got == words(r) {
			t.Errorf("%q: %s, want %s", text, words(r), want)
		}
		for _, reason := range reasonsOf(records[0]) {
			if !strings.Contains(got+"\n", reason.String()) {
				t.Errorf("%q: %q lacks %q", text, got, reason)
			}
		}
	}
	if accepted < len(tried)/2 {
		t.Errorf("only %d of %d texts were decided", accepted, len(tried))
	}
}

func planOf(t *testing.T, text string) []byte {
	t.Helper()
	data, err := json.Marshal(proposal.Plan{Schema: proposal.PlanSchema, Proposals: []proposal.Proposal{{ID: "q1", Run: text}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Whatever arguments a client sends, what is accepted has exactly one form and no field
// that only fumehood sets, and is shown in whole or not approvable.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"command":"echo hi"}`, `{"argv":["a"],"env":{"A":"b"},"timeout":"1s"}`, `{"command":"a","limits":{"memory":"1GiB"},"network":["a.example"]}`,
		`{"code":"x","language":"python"}`, `{"command":"a\u202e"}`, `{"command":"a","stdin":"\u0000"}`, `{"commands":["a","b"]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		var in question
		if json.Unmarshal([]byte(data), &in) != nil {
			return
		}
		list, err := proposalsOf(in)
		if err != nil {
			if f := proposal.FailureOf(err); f.Code != "mcp.arguments" || f.Hint == "" {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		for _, p := range list {
			forms := 0
			for _, given := range []bool{p.Run != "", len(p.Argv) > 0, p.Code != ""} {
				if given {
					forms++
				}
			}
			if forms != 1 || p.Origin != "" || p.Phase != "" || p.Fresh || p.Needs != nil {
				t.Errorf("%q: accepted %+v", data, p)
			}
			if again, err := decodeProposal(p.ID, in); len(in.Commands) == 0 && (err != nil || again.Digest() != p.Digest()) {
				t.Errorf("%q: read twice, %v", data, err)
			}
		}
	})
}

// Each client's configuration starts the server with its documented fields.
func TestClientConfig(t *testing.T) {
	for client, want := range map[string]string{
		"claude": "mcpServers", "cursor": "mcpServers", "gemini": "mcpServers", "vscode": "servers",
	} {
		text, err := ClientConfig(client, false)
		var document map[string]map[string]struct {
			Command string
			Args    []string
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &document)
		}
		if got := document[want]["fumehood"]; err != nil || got.Command != "fumehood" || !cmp.Equal(got.Args, []string{"mcp", "--workspace", "."}) {
			t.Errorf("%s: %v\n%s", client, err, text)
		}
	}
	codex, err := ClientConfig("codex", true)
	want := "[mcp_servers.fumehood]\ncommand = \"sudo\"\nargs = [\"-n\", \"fumehood\", \"mcp\", \"--workspace\", \".\"]\nrequired = true\nstartup_timeout_sec = 120\ntool_timeout_sec = 1200\n"
	if err != nil || codex != want {
		t.Errorf("codex: %v\n%s", err, codex)
	}
	if _, err := ClientConfig("unknown", false); err == nil || proposal.FailureOf(err).Code != "mcp.client" {
		t.Errorf("unknown: %v", err)
	}
}
