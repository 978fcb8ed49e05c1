// SPDX-License-Identifier: Apache-2.0

package githubtest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

func TestFaults(t *testing.T) {
	tests := []struct {
		name    string
		fault   githubtest.Fault
		status  int // 0: the connection is reset
		written bool
		words   string
		header  string
	}{
		{"500 instead", githubtest.Fault{Kind: githubtest.Answer}, 500, false, "Server Error", ""},
		{"502 in HTML", githubtest.Fault{Kind: githubtest.Answer, Status: 502, Body: "<html>"}, 502, false, "<html>", ""},
		{"502 after the work", githubtest.Fault{Kind: githubtest.AnswerAfter}, 502, true, "", ""},
		{"a reset before", githubtest.Fault{Kind: githubtest.ResetBefore}, 0, false, "", ""},
		{"a reset after the work", githubtest.Fault{Kind: githubtest.ResetAfter}, 0, true, "", ""},
		{"half a body", githubtest.Fault{Kind: githubtest.Truncate}, 201, true, "", ""},
		{"half a body and an end", githubtest.Fault{Kind: githubtest.Cut}, 0, true, "", ""},
		{"a slow body", githubtest.Fault{Kind: githubtest.Slow, Delay: time.Millisecond}, 201, true, `"body":"x"`, ""},
		{"the primary limit", githubtest.Fault{Kind: githubtest.PrimaryLimit, Delay: time.Minute}, 403, false, "API rate limit exceeded", "X-Ratelimit-Remaining: 0"},
		{"the primary limit as 429", githubtest.Fault{Kind: githubtest.PrimaryLimit, Status: 429}, 429, false, "API rate limit exceeded", "X-Ratelimit-Reset: "},
		{"the secondary limit", githubtest.Fault{Kind: githubtest.SecondaryLimit, Delay: 2 * time.Second}, 403, false, "secondary-rate-limits", "Retry-After: 2"},
		{"the secondary limit as 429", githubtest.Fault{Kind: githubtest.SecondaryLimit, Status: 429}, 429, false, "secondary rate limit", ""},
		{"a replica that lags", githubtest.Fault{Kind: githubtest.NotFoundForAWhile}, 404, false, "Not Found", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := town(t, githubtest.Options{})
			tt.fault.Op = "issues/create-comment"
			s.InjectFault(tt.fault)
			a, err := try(s, "POST", home+"/issues/2/comments", token, field("body", "x"))
			if (err != nil) != (tt.status == 0) || err == nil && (a.status != tt.status || !strings.Contains(a.body, tt.words)) {
				t.Errorf("got %d %.200s, %v", a.status, a.body, err)
			}
			if got := len(s.Comments(2)) == 1; got != tt.written {
				t.Errorf("written: %v", got)
			}
			if tt.fault.Kind == githubtest.Truncate && json.Valid([]byte(a.body)) {
				t.Error("the truncated body is valid")
			}
			name, value, _ := strings.Cut(tt.header, ": ")
			if tt.header != "" && !strings.HasPrefix(a.header.Get(name), value) {
				t.Errorf("headers %v", a.header)
			}
			if a := ask(t, s, "POST", home+"/issues/2/comments", token, field("body", "x")); a.status != 201 || s.PendingFaults() != 0 {
				t.Errorf("afterwards: %d, %d pending", a.status, s.PendingFaults())
			}
		})
	}
}

func TestFaultsCount(t *testing.T) {
	s := town(t, githubtest.Options{})
	s.InjectFault(githubtest.Fault{Op: "pulls/get", Kind: githubtest.Answer, Skip: 1, Count: 2})
	s.InjectFault(githubtest.Fault{Kind: githubtest.Answer, Status: 503, Count: -1, Match: func(r *http.Request) bool { return r.Method == "DELETE" }})
	var got []int
	for range 4 {
		got = append(got, ask(t, s, "GET", home+"/pulls/2", token, "").status)
	}
	got = append(got, ask(t, s, "DELETE", home+"/issues/comments/1", token, "").status, ask(t, s, "DELETE", home+"/issues/comments/1", token, "").status)
	s.RemoveFaults()
	got = append(got, ask(t, s, "DELETE", home+"/issues/comments/1", token, "").status)
	if want := []int{200, 500, 500, 200, 503, 503, 404}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHook(t *testing.T) {
	s := town(t, githubtest.Options{})
	s.BeforeRequest("pulls/get", func(*http.Request) { s.MoveHead(2, githubtest.CommitID("pushed")) })
	if a := ask(t, s, "GET", home+"/pulls", token, ""); !strings.Contains(a.body, head) {
		t.Errorf("got %.200s", a.body)
	}
	if a := ask(t, s, "GET", home+"/pulls/2", token, ""); !strings.Contains(a.body, githubtest.CommitID("pushed")) {
		t.Errorf("got %.200s", a.body)
	}
}

var next = regexp.MustCompile(`<([^>]+)>; rel="next"`)

// walk follows Link headers and returns the ids that it saw, page by page.
func walk(t *testing.T, s *githubtest.Server, path string, limit int) (ids []int64, pages int) {
	t.Helper()
	for path != "" && pages < limit {
		a := ask(t, s, "GET", path, token, "")
		var items []struct{ ID int64 }
		if err := json.Unmarshal([]byte(a.body), &items); err != nil {
			t.Fatalf("%v in %.100s", err, a.body)
		}
		for _, item := range items {
			ids = append(ids, item.ID)
		}
		pages++
		path = ""
		if link := next.FindStringSubmatch(a.header.Get("Link")); link != nil {
			path = link[1]
		}
	}
	return ids, pages
}

func TestPages(t *testing.T) {
	lanetest.SkipShort(t)
	s := town(t, githubtest.Options{})
	var want []int64
	for i := range 205 {
		want = append(want, s.AddComment(2, "octocat", fmt.Sprint(i)))
		s.AddComment(3, "octocat", "elsewhere")
	}
	path := home + "/issues/2/comments"
	for query, pages := range map[string]int{"": 7, "?per_page=100": 3, "?per_page=101": 3, "?per_page=205": 3, "?per_page=1000": 3} {
		if got, n := walk(t, s, path+query, 20); fmt.Sprint(got) != fmt.Sprint(want) || n != pages {
			t.Errorf("%q: %d comments on %d pages", query, len(got), n)
		}
	}
	if got, n := walk(t, s, path+"?per_page=100&page=4", 20); len(got) != 0 || n != 1 {
		t.Errorf("behind the end: %v", got)
	}

	s.InjectFault(githubtest.Fault{Op: "issues/list-comments", Kind: githubtest.DuplicatePage, Match: func(r *http.Request) bool {
		return r.URL.Query().Get("page") == "2"
	}})
	got, n := walk(t, s, path+"?per_page=100", 20)
	if n != 4 || len(got) != 305 || got[100] != want[0] || got[304] != want[204] {
		t.Errorf("a duplicate page: %d comments on %d pages", len(got), n)
	}
	if got, n := walk(t, s, path+"?per_page=100", 20); len(got) != 205 || n != 3 {
		t.Errorf("once more: %d comments on %d pages", len(got), n)
	}

	s.InjectFault(githubtest.Fault{Op: "issues/list-comments", Kind: githubtest.LinkLoop, Count: -1})
	if _, n := walk(t, s, path, 20); n != 20 {
		t.Errorf("a loop ended after %d pages", n)
	}
	s.RemoveFaults()
	s.InjectFault(githubtest.Fault{Op: "issues/list-comments", Kind: githubtest.LinkAway})
	if a := ask(t, s, "GET", path, token, ""); !strings.Contains(a.header.Get("Link"), "127.0.0.2") {
		t.Errorf("got %v", a.header)
	}
}

func TestDownload(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	s := town(t, githubtest.Options{Now: func() time.Time { return now }})
	to := ask(t, s, "GET", home+"/actions/artifacts/8/zip", token, "").header.Get("Location")
	if strings.HasPrefix(to, s.URL) {
		t.Errorf("the blob store is the API's host: %s", to)
	}
	if a := ask(t, s, "GET", to, "", ""); a.status != 200 || a.body != "PK" {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if a := ask(t, s, "GET", to, token, ""); a.status != 400 || len(s.TakeViolations()) != 1 {
		t.Errorf("with the token: %d", a.status)
	}
	now = now.Add(2 * time.Minute)
	if a := ask(t, s, "GET", to, "", ""); a.status != 403 {
		t.Errorf("two minutes later: %d", a.status)
	}
}

func TestSlowIsSlow(t *testing.T) {
	s := town(t, githubtest.Options{})
	s.InjectFault(githubtest.Fault{Op: "pulls/get", Kind: githubtest.Slow, Delay: time.Minute})
	client := &http.Client{Timeout: 50 * time.Millisecond}
	r, err := http.NewRequest("GET", s.URL+home+"/pulls/2", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("it was fast")
	}
}
