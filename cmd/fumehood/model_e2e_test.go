// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/model/modeltest"
	"github.com/fumehood/fumehood/pkg/plan"
)

// The planted pull requests, asked about in a conversation: with a model that is right each
// planted bug is verified on its line; one that is wrong has nothing verified. The three wire
// formats take turns.
func TestE2EPlantedModel(t *testing.T) {
	files, err := filepath.Glob("../../testdata/review/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d pull requests: %v", len(files), err)
	}
	d := newDesk(t)
	for i, file := range oneIn(t, 10, 10, files) {
		provider := []string{"anthropic", "openai", "gemini"}[i%3]
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		for _, right := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "/right", false: "/sloppy"}[right], func(t *testing.T) {
				t.Parallel()
				checkAsked(t, name, right, d.asked(t, file, provider, right))
			})
		}
	}
}

// asked reviews an archive with a model that knows its findings.
func (d desk) asked(t *testing.T, file, provider string, right bool) review.Document {
	t.Helper()
	repo, path := commitArchive(t, file)
	known := knownFindings(t, path, right)
	s := modeltest.New(t, func(n int, a modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
		if n == 1 {
			return modeltest.ScriptedAnswer{Text: jobtest.ModelAnswer(t, false, []string{"ls", "curl https://evil.example"})}
		}
		if !strings.Contains(a.LastText(), "exit code 0") || !strings.Contains(a.LastText(), "did not run: policy") {
			t.Errorf("the results are %s", a.LastText())
		}
		return modeltest.ScriptedAnswer{Text: jobtest.ModelAnswer(t, true, nil, known...)}
	})
	doc := d.reviewed(t, s.ProviderEnv(provider), "--workspace", repo, "--base", "base", "--head", "head", "--config", "none", "--provider", provider, "--model", "m", "--max-tokens", "200000")
	if len(s.Requests()) != 2 {
		t.Errorf("%d requests", len(s.Requests()))
	}
	return doc
}

// knownFindings returns the findings of a file as a model writes them: the planted one if it is
// right, all others if not.
func knownFindings(t *testing.T, path string, right bool) (list []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	findings, problems := plan.DecodeFindings(data, path)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, f := range findings.Findings {
		if (f.ID == "planted") != right {
			continue
		}
		one := map[string]any{"id": f.ID, "file": f.File, "line": f.Line, "start_line": nil, "side": "head", "severity": "high", "claim": f.Claim, "reproducer": nil, "suggestion": f.Suggestion}
		if f.Start > 0 {
			one["start_line"] = f.Start
		}
		if f.Reproducer != nil {
			one["reproducer"] = map[string]string{"run": f.Reproducer.Run}
		}
		list = append(list, one)
	}
	return list
}

func checkAsked(t *testing.T, name string, right bool, doc review.Document) {
	t.Helper()
	clean := strings.HasPrefix(name, "clean-")
	want := 0
	if right && !clean {
		want = 1
	}
	if !doc.Reviewed || doc.Partial || doc.CountVerdict(review.Verified) != want || right && len(doc.Results) != want {
		t.Errorf("reviewed %v (%s), %d verified of %d", doc.Reviewed, doc.Reason, doc.CountVerdict(review.Verified), len(doc.Results))
	}
	if m := doc.Model; m == nil || m.Rounds != 2 || m.Commands != 2 || m.Ran != 1 || m.Log.Checkpoint == "" || m.Session == nil || m.Spent.Tokens == 0 {
		t.Errorf("the use of the model: %+v", m)
	}
	for _, r := range doc.Results {
		if r.Finding.ID == "planted" && (r.Position == nil || r.Position.Line != r.Finding.Line || r.Suggestion != nil && !r.Suggestion.Offered) {
			t.Errorf("position %v, suggestion %+v", r.Position, r.Suggestion)
		}
		if r.Finding.Side == review.SideBase {
			t.Error("the side has changed")
		}
	}
}
