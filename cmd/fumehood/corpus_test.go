// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// askAlways asks about what policy would allow, so that the corpus does not run. A session's
// limits are those of "true".
const askAlways = `package fumehood.command

# METADATA
# title: Every command needs an approval
# custom: {rule: test.all}
ask contains {"rule": "test.all", "message": "the corpus does not run", "suggestion": "nothing"} if {
	input.command.program != "true"
}
`

// entrances are the ways in which texts reach policy. Each has all texts decided and returns
// the log with the decisions, a file of the desk.
var entrances = map[string]func(t *testing.T, d mcpDesk, texts []string) (log string){
	"plan":         decideByPlan,
	"Go session":   decideBySession,
	"MCP":          decideByMCP,
	"command line": decideByCommand,
}

// corpusFlags are those of every entrance.
var corpusFlags = []string{"--workspace", "ws", "--config", "none", "--policy", "corpus-policy"}

// TestCorpusEntrances: each text of the corpus has the same decision, down to its reasons and
// grants, whichever way it comes in.
func TestCorpusEntrances(t *testing.T) {
	long(t)
	texts := oneIn(t, 600, 600, corpus(t))
	for part := range slices.Chunk(texts, 200) { // how often a rule refused counts per plan, and per session
		checkEntrances(t, part)
	}
}

func checkEntrances(t *testing.T, texts []string) {
	t.Helper()
	d := newMCPDesk(t)
	if err := os.Mkdir(filepath.Join(d.dir, "corpus-policy"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "corpus-policy", "all.rego"), []byte(askAlways), 0o644); err != nil {
		t.Fatal(err)
	}
	want := decisions(t, filepath.Join(d.dir, decideByPlan(t, d, texts)))
	if len(want) == 0 || len(want) > len(texts) {
		t.Fatalf("%d decisions about %d texts", len(want), len(texts))
	}
	for name, decide := range entrances {
		if name == "plan" {
			continue
		}
		got := decisions(t, filepath.Join(d.dir, decide(t, d, texts)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-plan +%s:\n%s", name, diff)
		}
	}
}

// corpus returns the texts that a plan accepts: others never reach policy.
func corpus(t *testing.T) []string {
	t.Helper()
	return corpusOf(t, "../../testdata/corpus/*/*.txt", "../../testdata/corpus/benign.txt", "../../testdata/corpus/hostile.txt")
}

// corpusOf returns those of the files that pattern matches, and of files with a text in each line.
func corpusOf(t *testing.T, pattern string, ofLines ...string) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus")
	}
	for _, file := range files { // of texts between lines of three dashes
		for text := range strings.SplitSeq(string(jobtest.ReadFile(t, file)), "\n---\n") {
			for strings.HasPrefix(text, "## ") {
				_, text, _ = strings.Cut(text, "\n")
			}
			texts = append(texts, strings.TrimSpace(text))
		}
	}
	for _, file := range ofLines {
		texts = append(texts, readTexts(t, file)...)
	}
	slices.Sort(texts)
	t.Logf("%d texts", len(texts))
	return slices.DeleteFunc(slices.Compact(texts), func(text string) bool {
		p, problems := plan.Decode(planDocument(t, text), "plan.json")
		return len(problems)+len(p.Refused()) > 0
	})
}

// readTexts reads a file of texts: one in each line that is not a comment, or several lines between
// lines of three dashes.
func readTexts(t *testing.T, file string) (texts []string) {
	t.Helper()
	for i, block := range strings.Split(string(jobtest.ReadFile(t, file)), "\n---\n") {
		if i%2 == 1 {
			texts = append(texts, strings.TrimSpace(block))
			continue
		}
		for line := range strings.Lines(block) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				texts = append(texts, line)
			}
		}
	}
	return texts
}

func planDocument(t *testing.T, texts ...string) []byte {
	t.Helper()
	p := proposal.Plan{Schema: proposal.PlanSchema}
	for i, text := range texts {
		p.Proposals = append(p.Proposals, proposal.Proposal{ID: fmt.Sprintf("c%d", i+1), Run: text})
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// decisions returns the digest of the decision about each text in a log, which must be sealed.
func decisions(t *testing.T, log string) map[string]string {
	t.Helper()
	digests := map[string]string{}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	summary, err := audit.Scan(f, audit.Trust{}, func(e audit.Entry) error {
		var x journal.Decision
		if e.Kind != "decision" {
			return nil
		}
		if err := json.Unmarshal(e.Body, &x); err != nil {
			return err
		}
		if digests[x.Proposal.Run] != "" {
			t.Errorf("%s: two decisions about %q", log, x.Proposal.Run)
		}
		data, err := json.Marshal([]any{x.Analysis, x.Decision})
		digests[x.Proposal.Run] = fmt.Sprintf("%s sha256:%x", x.Decision.Effect, sha256.Sum256(data))
		return err
	})
	if err != nil || summary.State != audit.Sealed {
		t.Fatalf("%s: %v", log, err)
	}
	return digests
}

func decideByPlan(t *testing.T, d mcpDesk, texts []string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"run", "--plan", "-", "--audit", "plan.jsonl"}, corpusFlags...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = d.dir, d.env, strings.NewReader(string(planDocument(t, texts...)))
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitRefused {
		t.Fatalf("exit code %d\n%s", cmd.ProcessState.ExitCode(), out)
	}
	return "plan.jsonl"
}

func decideBySession(t *testing.T, d mcpDesk, texts []string) string {
	t.Helper()
	t.Chdir(d.dir)
	for _, variable := range d.env {
		if name, value, _ := strings.Cut(variable, "="); os.Getenv(name) != value && name != asFumehood {
			t.Setenv(name, value)
		}
	}
	var s runs.Flags
	cmd := &cobra.Command{}
	s.DefineConfigured(cmd)
	s.DefineGate(cmd)
	if err := cmd.ParseFlags(append([]string{"--audit", "go.jsonl"}, corpusFlags...)); err != nil {
		t.Fatal(err)
	}
	c := &invocation{cli.Invocation{Ctx: context.Background(), Stdout: io.Discard, Stderr: t.Output()}}
	g, err := s.Open(&c.Invocation)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	session, err := g.Open(t.Context(), gate.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if _, err := session.Do(t.Context(), proposal.Proposal{ID: fmt.Sprintf("c%d", i+1), Run: text}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	if _, err := session.Close(); err != nil {
		t.Fatal(err)
	}
	return "go.jsonl"
}

func decideByMCP(t *testing.T, d mcpDesk, texts []string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"mcp", "--audit", "mcp.jsonl"}, corpusFlags...)...)
	cmd.Dir, cmd.Env = d.dir, d.env
	w := newWire(t, cmd)
	for i, text := range texts {
		w.run(t, i+1, text)
		if got := fmt.Sprint(w.answer(t, i+1)); strings.Contains(got, "isError:true") {
			t.Fatalf("%q: %s", text, got)
		}
	}
	w.in.Close()
	if err := w.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return "mcp.jsonl"
}

func decideByCommand(t *testing.T, d mcpDesk, texts []string) string {
	t.Helper()
	if out, err := d.session(append([]string{"start", "--name", "corpus", "--audit", "command.jsonl"}, corpusFlags...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, text := range texts {
		cmd := d.session("exec", "corpus", "--command="+text)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() > exitRefused {
			t.Errorf("%q: exit code %d\n%s", text, cmd.ProcessState.ExitCode(), out)
		}
	}
	if out, err := d.session("end", "corpus").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return "command.jsonl"
}
