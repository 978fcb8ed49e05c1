// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/review/model"
	"github.com/fumehood/fumehood/internal/review/spend"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/plan"
)

// finding asks f about a small change, and returns the kinds of the log's entries.
func (f *fake) finding(t *testing.T, ctx context.Context, limits spend.Limits, change Change) (FoundFindings, []string) {
	t.Helper()
	c := f.conversation(t, limits, spend.Price{})
	r := Reviewer{Provider: f, Name: "fake", Model: "m", MaxOutput: 1000, Timeout: time.Minute, Budget: c.budget, Redactor: c.redactor, wait: time.Millisecond}
	change.Base, change.Head, change.Dir = strings.Repeat("a", 40), strings.Repeat("b", 40), filepath.Join(t.TempDir(), "model")
	if change.Diff == nil {
		change.Diff = []byte(smallDiff)
	}
	found, err := r.Find(ctx, change)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Open(filepath.Join(change.Dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var kinds []string
	s, err := audit.Scan(log, audit.Trust{Key: found.Use.Log.Key, Checkpoint: found.Use.Log.Checkpoint}, func(e audit.Entry) error {
		if strings.Contains(string(e.Body), canary) {
			t.Errorf("a secret is in entry %s", e.Body)
		}
		kinds = append(kinds, e.Kind)
		return nil
	})
	if err != nil || !s.Complete() {
		t.Errorf("%v, %v", s, err)
	}
	files, _ := os.ReadDir(change.Dir)
	if want := map[bool]int{true: 3, false: 1}[change.Guidance.Keep]; len(files) != want {
		t.Errorf("%d files, want %d", len(files), want)
	}
	return found, kinds
}

// One request, logged before it is sent; secrets are redacted from the question, the findings and
// kept texts.
func TestFind(t *testing.T) {
	said := strings.Replace(claim, `"claim":"c"`, `"claim":"it has `+canary+`"`, 1)
	f := &fake{answer: says(reply(false, []string{"ls"}, said))}
	found, kinds := f.finding(t, t.Context(), free, Change{Diff: []byte(strings.Replace(smallDiff, "+TWO", "+"+canary, 1)), Guidance: Guidance{Keep: true}})
	if !slices.Equal(kinds, []string{"review", "model.request", "model.answer", "end"}) || len(f.ran) != 0 || len(f.asked) != 1 || f.asked[0].System != systemOnce {
		t.Errorf("%q, %d commands, %d requests", kinds, len(f.ran), len(f.asked))
	}
	document, problems := plan.DecodeFindings(found.Findings, "findings")
	if len(problems) > 0 || found.Count != 1 || len(document.Findings) != 1 || document.Reviewer != "fake/m" || found.Reason != "" {
		t.Errorf("%+v, %v", found, problems)
	}
	if text := string(found.Findings) + f.asked[0].Turns[0].Text; strings.Contains(text, canary) || strings.Count(string(found.Findings), "\n") != 0 {
		t.Errorf("%s", text)
	}
	if w := found.Describe(); strings.Contains(w, "commands ran") || !strings.HasPrefix(w, "1 finding, ") {
		t.Error(w)
	}
}

// A budget that does not suffice sends nothing, and a provider that does not answer in time has
// spent its reservation.
func TestFindUnanswered(t *testing.T) {
	f := &fake{answer: says(reply(true, nil))}
	small := free
	small.Review.Tokens = 100
	found, kinds := f.finding(t, t.Context(), small, Change{})
	if found.Findings != nil || len(f.asked) != 0 || !strings.Contains(found.Reason, "budget of this review") || !slices.Equal(kinds, []string{"review", "end"}) {
		t.Errorf("%+v, %d requests, %q", found, len(f.asked), kinds)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	f = &fake{answer: func(int, model.Request) (model.Answer, error) {
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}}
	found, _ = f.finding(t, ctx, free, Change{})
	if found.Findings != nil || found.Reason != "the time for the model is over" || found.Use.Spent.Tokens == 0 {
		t.Errorf("%+v", found)
	}
}

// Findings are the same once they are read again, or are left out.
func TestEncodeFindings(t *testing.T) {
	u, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"network": `{"run":"false","network":["evil.example"]}`, "argv": `{"argv":["false"]}`, "code": `{"code":"x","language":"python"}`, "stdin": `{"run":"cat","stdin":"x"}`, "cwd": `{"run":"ls","cwd":"a"}`,
	} {
		a, err := decodeAnswer(reply(true, nil, strings.Replace(claim, `{"run":"false"}`, text, 1), strings.Replace(claim, `"id":"a"`, `"id":"b"`, 1)), 1, "fake/m")
		if err != nil {
			t.Fatal(err)
		}
		data, n, err := encodeFindings(u.Findings(a.findings))
		if err != nil || n != 1 || strings.Contains(string(data), `"id":"a"`) {
			t.Errorf("%s: %d, %v: %s", what, n, err, data)
		}
	}
}
