// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// TestEveryOperationIsServed checks that the cut description and the fake have the
// same operations.
func TestEveryOperationIsServed(t *testing.T) {
	rules, err := loadDescription()
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for _, item := range rules.doc.Paths.Map() {
		for _, operation := range item.Operations() {
			described = append(described, operation.OperationID)
		}
	}
	slices.Sort(described)
	if diff := cmp.Diff(described, slices.Sorted(maps.Keys(operations))); diff != "" {
		t.Errorf("described, and served (+):\n%s", diff)
	}
}

// TestOwnAnswersAreChecked shows that a response which GitHub would not give is detected.
func TestOwnAnswersAreChecked(t *testing.T) {
	s, err := NewHandler(Options{Public: true})
	if err != nil {
		t.Fatal(err)
	}
	s.AddPR(PR{Number: 2})
	r := httptest.NewRequest("GET", "http://api.test/repos/Codertocat/Hello-World/pulls/2", nil)
	_, c := s.findOperation(r, nil)
	good := s.answerRequest(c, nil)
	if got := s.Violations(); good.status != 200 || len(got) > 0 {
		t.Fatalf("got %d, %v", good.status, got)
	}
	tests := []struct {
		name, old, new string
		status         int
	}{
		{"a textual number", `"number":2`, `"number":"2"`, 200},
		{"a field that is missing", `"locked"`, `"looked"`, 200},
		{"a state of its own", `"state":"open"`, `"state":"ajar"`, 200},
		{"no object", `{`, `[{`, 200},
		{"a status that is not described", `{`, `{`, 201},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := strings.Replace(string(good.body), tt.old, tt.new, 1)
			if s.rules.checkResponse(c.in, tt.status, good.header, []byte(body)) == nil {
				t.Error("nobody minds")
			}
		})
	}
}

// TestDeviations shows that each deviation is needed: without it, the description
// refuses a response that GitHub gives.
func TestDeviations(t *testing.T) {
	lanetest.SkipShort(t)
	s, err := NewHandler(Options{Public: true})
	if err != nil {
		t.Fatal(err)
	}
	s.AddPR(PR{Number: 2, Head: Ref{Repository: "-"}})
	s.AddReviewComment(2, "octocat", "outdated", "a.go", 1)
	paths := map[string]string{"pull-request": "/pulls/2", "pull-request-simple": "/pulls", "pull-request-review-comment": "/pulls/2/comments"}
	for i, d := range deviations {
		t.Run(d.schema+" "+d.property, func(t *testing.T) {
			all, err := readDescription(deviations)
			if err != nil {
				t.Fatal(err)
			}
			others, err := readDescription(slices.Delete(slices.Clone(deviations), i, i+1))
			if err != nil {
				t.Fatal(err)
			}
			for rules, want := range map[*description]int{all: 0, others: 1} {
				s.rules = rules
				_, c := s.findOperation(httptest.NewRequest("GET", "http://api.test/repos/Codertocat/Hello-World"+paths[d.schema], nil), nil)
				s.answerRequest(c, nil)
				if got := s.TakeViolations(); len(got) != want {
					t.Errorf("got %v, want %d", got, want)
				}
			}
		})
	}
	if err := makeNullable(s.rules.doc, "pull-request", "head.nothing"); err == nil {
		t.Error("a deviation from nothing")
	}
}

func TestWithin(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	tests := []struct {
		expression string
		want       bool
	}{
		{"", true},
		{">=2026-11-21T07:00:00Z", true},
		{">2026-11-21T07:00:00Z", false},
		{"<=2026-11-21T07:00:00Z", true},
		{"<2026-11-21T07:00:00Z", false},
		{"2026-11-21", true},
		{">=2026-11-21", true},
		{">2026-11-21", false},
		{"<=2026-11-21", true},
		{"<2026-11-21", false},
		{"2026-11-20..2026-11-21", true},
		{"2026-11-19..2026-11-20", false},
		{"*..2026-11-21", true},
		{"2026-11-22..*", false},
		{"2026-11-20..*", true},
		{">=2026-11-21T08:00:00+01:00", true},
		{">=yesterday", false},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) {
			if got := matchesDateRange(tt.expression, at); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// BenchmarkStart measures the cost of each server after the first.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		if _, err := NewHandler(Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDescription measures the additional cost of the first server of a process.
func BenchmarkDescription(b *testing.B) {
	for b.Loop() {
		if _, err := readDescription(deviations); err != nil {
			b.Fatal(err)
		}
	}
}

// TestConcurrent is for the race detector, and checks that ids are in order.
func TestConcurrent(t *testing.T) {
	s := New(t, Options{})
	s.AddWorkflowToken("ghs", "issues:write")
	s.AddPR(PR{Number: 2})
	done := make(chan error)
	for range 8 {
		go func() {
			r, _ := http.NewRequest("POST", s.URL+"/repos/Codertocat/Hello-World/issues/2/comments", strings.NewReader(`{"body":"x"}`))
			r.Header.Set("Authorization", "token ghs")
			r.Header.Set("Content-Type", "application/json")
			response, err := http.DefaultClient.Do(r)
			if err == nil {
				response.Body.Close()
			}
			done <- err
		}()
	}
	for range 8 {
		s.AddComment(2, "octocat", "y")
		s.Requests()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	comments := s.Comments(2)
	if len(comments) != 16 || !slices.IsSortedFunc(comments, func(a, b Comment) int { return int(a.ID - b.ID) }) {
		t.Errorf("got %v", comments)
	}
}

// BenchmarkList reads a full page of comments; request and response are checked.
func BenchmarkList(b *testing.B) {
	s, err := NewHandler(Options{Public: true})
	if err != nil {
		b.Fatal(err)
	}
	s.AddPR(PR{Number: 2})
	for range 100 {
		s.AddComment(2, "octocat", strings.Repeat("x", 1000))
	}
	for b.Loop() {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "http://api.test/repos/Codertocat/Hello-World/issues/2/comments?per_page=100", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
