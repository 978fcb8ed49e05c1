// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

func TestWorkflowRun(t *testing.T) {
	body := `{"id":30433642,"name":"fumehood","path":".github/workflows/fumehood.yml@main","run_number":562,"run_attempt":2,
		"event":"pull_request","status":"completed","conclusion":"success","head_branch":"changes","head_sha":"` + sha + `",
		"created_at":"2026-11-21T12:00:00Z","head_repository":{"id":999,"full_name":"octocat/Hello-World"}}`
	want := WorkflowRun{
		ID: 30433642, Number: 562, Attempt: 2, Event: "pull_request", HeadSHA: sha, HeadBranch: "changes",
		HeadRepository: "octocat/Hello-World", HeadRepositoryID: 999, Status: "completed", Conclusion: "success",
		Path: ".github/workflows/fumehood.yml@main", Name: "fumehood", Created: testTime,
	}
	gone := want
	gone.HeadRepository, gone.HeadRepositoryID = "", 0
	tests := []struct {
		name, body string
		want       WorkflowRun
		wrong      string
	}{
		{"of a fork", body, want, ""},
		{"whose fork is gone", strings.Replace(body, `{"id":999,"full_name":"octocat/Hello-World"}`, "null", 1), gone, ""},
		{"another", strings.Replace(body, "30433642", "1", 1), WorkflowRun{}, "requested run 30433642, got 1"},
		{"without a commit", strings.Replace(body, sha, "main", 1), WorkflowRun{}, "full commit id"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, _ := client(t, play(t, say(200, test.body)).URL)
			got, err := c.WorkflowRun(context.Background(), 30433642)
			if test.wrong == "" && err != nil || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
				t.Fatalf("got %v, want %q", err, test.wrong)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// history serves a repository's runs, one a second, newest last, as GitHub's search
// does: newest first, and at most a thousand matches.
func history(t *testing.T, conclusions []string, start time.Time) step {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		from, to := window(t, query.Get("created"))
		var found []string
		for i := len(conclusions) - 1; i >= 0 && len(found) < 1000; i-- {
			at := start.Add(time.Duration(i) * time.Second)
			if at.Before(from) || at.After(to) {
				continue
			}
			found = append(found, fmt.Sprintf(`{"id":%d,"head_sha":%q,"conclusion":%s,"created_at":%q}`, i+1, sha, conclusions[i], at.Format(time.RFC3339)))
		}
		page, _ := strconv.Atoi(query.Get("page"))
		if page*100 < len(found) {
			w.Header().Set("Link", fmt.Sprintf(`<https://x.example/?page=%d>; rel="next"`, page+1))
		}
		shown := found[min((page-1)*100, len(found)):min(page*100, len(found))]
		fmt.Fprintf(w, `{"total_count":%d,"workflow_runs":[%s]}`, len(found), strings.Join(shown, ","))
	}
}

func window(t *testing.T, created string) (from, to time.Time) {
	parse := func(s string) time.Time {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Errorf("searched for created=%q", created)
		}
		return at
	}
	if first, last, ok := strings.Cut(created, ".."); ok {
		return parse(first), parse(last)
	}
	return parse(strings.TrimPrefix(created, ">=")), testTime.AddDate(1, 0, 0)
}

func TestCountWorkflowRuns(t *testing.T) {
	lanetest.SkipShort(t)
	repeat := func(n int, conclusion string) (list []string) {
		for range n {
			list = append(list, conclusion)
		}
		return list
	}
	tests := []struct {
		name     string
		runs     []string
		want     int
		requests int
	}{
		{"none", nil, 0, 1},
		{"skipped ones do not count", []string{`"success"`, `"skipped"`, `"failure"`, `"cancelled"`, "null"}, 4, 1},
		{"pages", repeat(250, `"success"`), 250, 3},
		{"a thousand", repeat(1000, `"success"`), 1000, 11},
		{"hidden behind thousands of skipped ones", append([]string{`"success"`, "null", `"success"`}, repeat(2500, `"skipped"`)...), 3, 26},
	}
	for _, test := range sample.EveryNth(t, tests, 1, 2) {
		t.Run(test.name, func(t *testing.T) {
			s := play(t, history(t, test.runs, testTime))
			c, _ := client(t, s.URL)
			by, err := c.CountWorkflowRuns(context.Background(), []string{"issue_comment"}, "", testTime)
			got := total(by)
			if err != nil || got != test.want || len(s.requests()) != test.requests {
				t.Errorf("got %d, %v by %d requests, want %d by %d", got, err, len(s.requests()), test.want, test.requests)
			}
			if event := s.requests()[0].URL.Query().Get("event"); event != "issue_comment" {
				t.Errorf("searched for %q", event)
			}
		})
	}
	t.Run("before midnight", func(t *testing.T) {
		c, _ := client(t, play(t, history(t, repeat(10, `"success"`), testTime.Add(-5*time.Second))).URL)
		if got, err := c.CountWorkflowRuns(context.Background(), []string{"issue_comment"}, "", testTime); err != nil || total(got) != 5 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("more than can be counted", func(t *testing.T) {
		c, _ := client(t, play(t, history(t, repeat(10100, `"skipped"`), testTime)).URL)
		got, err := c.CountWorkflowRuns(context.Background(), []string{"issue_comment"}, "", testTime)
		wantError(t, err, Malformed, "github.malformed")
		if got != nil {
			t.Errorf("got %v beside the error", got)
		}
	})
	t.Run("malformed", func(t *testing.T) {
		c, _ := client(t, play(t, say(200, `{"workflow_runs":[null]}`)).URL)
		_, err := c.CountWorkflowRuns(context.Background(), []string{"issue_comment"}, "", testTime)
		wantError(t, err, Malformed, "github.malformed")
	})
}

func total(by map[Author]int) int {
	n := 0
	for _, count := range by {
		n += count
	}
	return n
}
