// SPDX-License-Identifier: Apache-2.0

package githubtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// said is the response to a raw request.
type said struct {
	status int
	header http.Header
	body   string
}

// ask sends a request as any client could, valid or not, and follows no redirects.
func ask(t *testing.T, s *githubtest.Server, method, path, token, body string) said {
	t.Helper()
	a, err := try(s, method, path, token, body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func try(s *githubtest.Server, method, path, token, body string, headers ...string) (said, error) {
	if !strings.HasPrefix(path, "http") {
		path = s.URL + path
	}
	r, err := http.NewRequest(method, path, strings.NewReader(body))
	if err != nil {
		return said{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	// Use a new connection each time: the transport repeats a request by itself if
	// a reused connection turns out to be closed.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		return said{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return said{response.StatusCode, response.Header, string(data)}, err
}

const home = "/repos/Codertocat/Hello-World"

// town is a server with one of each object.
func town(t *testing.T, o githubtest.Options) *githubtest.Server {
	t.Helper()
	s := githubtest.New(t, o)
	s.AddWorkflowToken(token, all...)
	s.AddPR(githubtest.PR{Number: 2, Head: githubtest.Ref{SHA: head, Ref: "evil", Repository: "octocat/Hello-World"}})
	s.AddIssue(3, "No pull request")
	s.AddRun(githubtest.Run{ID: 7, HeadSHA: head})
	s.AddArtifact(githubtest.Artifact{ID: 8, Run: 7, Name: "fumehood", Data: []byte("PK")})
	return s
}

const head = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"

func field(name string, value any) string {
	data, _ := json.Marshal(map[string]any{name: value})
	return string(data)
}

func check(more map[string]any) string {
	v := map[string]any{"name": "fumehood", "head_sha": head}
	for name, value := range more {
		v[name] = value
	}
	data, _ := json.Marshal(v)
	return string(data)
}

func output(more map[string]any) string {
	v := map[string]any{"title": "t", "summary": "s"}
	for name, value := range more {
		v[name] = value
	}
	return check(map[string]any{"output": v})
}

func annotations(n int, more map[string]any) []any {
	var list []any
	for range n {
		a := map[string]any{"path": "a.go", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}
		for name, value := range more {
			a[name] = value
		}
		list = append(list, a)
	}
	return list
}

func TestLimits(t *testing.T) {
	const comments, checks = home + "/issues/2/comments", home + "/check-runs"
	tests := []struct {
		name               string
		method, path, body string
		status             int
		words              string // in the response
		violation          string // "" for none: GitHub's description does not know this limit
	}{
		{"a comment", "POST", comments, field("body", "x"), 201, "", ""},
		{"the longest comment", "POST", comments, field("body", strings.Repeat("ä", 65536)), 201, "", ""},
		{"a comment too long", "POST", comments, field("body", strings.Repeat("x", 65537)), 422, "Body is too long (maximum is 65536 characters)", ""},
		{"a comment too long by pairs", "POST", comments, field("body", strings.Repeat("😀", 32769)), 422, "too long", ""},
		{"an empty comment", "POST", comments, field("body", ""), 422, "cannot be blank", ""},
		{"a blank comment", "POST", comments, field("body", " \n"), 422, "cannot be blank", ""},
		{"no body", "POST", comments, `{}`, 422, "Invalid request", `"body" is missing`},
		{"a number as body", "POST", comments, `{"body":1}`, 422, "Invalid request", "must be a string"},
		{"broken JSON", "POST", comments, `{`, 422, "Invalid request", "failed to decode"},
		{"an unknown field", "POST", comments, `{"body":"x","in_reply_to":1}`, 201, "", `unknown body field "in_reply_to"`},
		{"nothing there", "POST", home + "/issues/99/comments", field("body", "x"), 404, "Not Found", ""},
		{"sorted comments", "GET", comments + "?sort=created&direction=desc", "", 200, "", `unknown query parameter`},
		{"another path", "GET", home + "/nothing", "", 404, "Not Found", "no operation"},
		{"another repository", "GET", "/repos/octocat/Spoon-Knife", "", 404, "Not Found", ""},

		{"a check run", "POST", checks, check(nil), 201, `"queued"`, ""},
		{"a finished check run", "POST", checks, check(map[string]any{"status": "completed", "conclusion": "success"}), 201, `"success"`, ""},
		{"completed without conclusion", "POST", checks, check(map[string]any{"status": "completed"}), 422, "conclusion", ""},
		{"completed later without conclusion", "PATCH", checks + "/1", `{"status":"completed"}`, 422, "Invalid request", "doesn't match any schema"},
		{"a conclusion of our own", "POST", checks, check(map[string]any{"conclusion": "fine"}), 422, "Invalid request", "not one of the allowed"},
		{"an unknown commit", "POST", checks, `{"name":"x","head_sha":"` + githubtest.CommitID("nowhere") + `"}`, 422, "No commit found for SHA", ""},
		{"50 annotations", "POST", checks, output(map[string]any{"annotations": annotations(50, nil)}), 201, `"annotations_count":50`, ""},
		{"51 annotations", "POST", checks, output(map[string]any{"annotations": annotations(51, nil)}), 422, "", "maximum number of items is 50"},
		{"the longest summary", "POST", checks, output(map[string]any{"summary": strings.Repeat("x", 65535)}), 201, "", ""},
		{"a summary too long", "POST", checks, output(map[string]any{"summary": strings.Repeat("x", 65536)}), 422, "", "maximum string length is 65535"},
		{"a text too long", "POST", checks, output(map[string]any{"text": strings.Repeat("x", 65536)}), 422, "", "maximum string length is 65535"},
		{"an annotation's message too long", "POST", checks, output(map[string]any{"annotations": annotations(1, map[string]any{"message": strings.Repeat("x", 65537)})}), 422, "too long", ""},
		{"an annotation's title too long", "POST", checks, output(map[string]any{"annotations": annotations(1, map[string]any{"title": strings.Repeat("x", 256)})}), 422, "too long", ""},
		{"columns over lines", "POST", checks, output(map[string]any{"annotations": annotations(1, map[string]any{"end_line": 2, "start_column": 1})}), 422, "start_column", ""},
		{"lines backwards", "POST", checks, output(map[string]any{"annotations": annotations(1, map[string]any{"start_line": 2})}), 422, "end_line", ""},
		{"an unknown field of an annotation", "POST", checks, output(map[string]any{"annotations": annotations(1, map[string]any{"line": 2})}), 201, "", `unknown body field "output.annotations.line"`},

		{"an expired artifact", "GET", home + "/actions/artifacts/9/zip", "", 410, "expired", ""},
		{"an artifact as tar", "GET", home + "/actions/artifacts/8/tar", "", 404, "", ""},
		{"artifacts of no run", "GET", home + "/actions/runs/99/artifacts", "", 404, "", ""},
		{"a role of nobody", "GET", home + "/collaborators/nobody-at-all/permission", "", 404, "is not a user", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := town(t, githubtest.Options{})
			s.AddArtifact(githubtest.Artifact{ID: 9, Run: 7, Name: "old", Expired: true})
			a := ask(t, s, tt.method, tt.path, token, tt.body)
			if a.status != tt.status || !strings.Contains(a.body, tt.words) {
				t.Errorf("got %d %.300s", a.status, a.body)
			}
			violations := s.TakeViolations()
			if tt.violation == "" && len(violations) > 0 {
				t.Errorf("violations %v", violations)
			}
			if tt.violation != "" && (len(violations) == 0 || !strings.Contains(violations[0].Message, tt.violation)) {
				t.Errorf("violations %v, want %q", violations, tt.violation)
			}
		})
	}
}

func TestLocked(t *testing.T) {
	s := town(t, githubtest.Options{})
	id := s.AddComment(2, "octocat", "first")
	s.ChangePullRequest(2, func(pr *githubtest.PR) { pr.Locked = true })
	if a := ask(t, s, "POST", home+"/issues/2/comments", token, field("body", "x")); a.status != 403 || !strings.Contains(a.body, "issue is locked.") || !strings.Contains(a.body, "locking-conversations") {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if a := ask(t, s, "POST", reactionsOf(id), token, field("content", "eyes")); a.status != 403 || !strings.Contains(a.body, "locked") {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestReactions(t *testing.T) {
	s := town(t, githubtest.Options{})
	id := s.AddComment(2, "octocat", "first")
	for _, content := range []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"} {
		if a := ask(t, s, "POST", reactionsOf(id), token, field("content", content)); a.status != 201 {
			t.Errorf("%s: got %d", content, a.status)
		}
	}
	if a := ask(t, s, "POST", reactionsOf(id), token, field("content", "eyes")); a.status != 200 {
		t.Errorf("again: got %d", a.status)
	}
	if got := s.Reactions(id); len(got) != 8 || got[7].Author != githubtest.ActionsBot {
		t.Errorf("got %v", got)
	}
	if a := ask(t, s, "POST", reactionsOf(id), token, field("content", "tada")); a.status != 422 || len(s.TakeViolations()) == 0 {
		t.Errorf("got %d", a.status)
	}
}

// TestCheckRunGrows shows that annotations accumulate and that only the app that
// created a run can change it.
func TestCheckRunGrows(t *testing.T) {
	s := town(t, githubtest.Options{})
	s.AddToken("ghs_other", githubtest.Token{Login: "octo-reviewer[bot]", Permissions: map[string]string{"checks": "write"}})
	s.AddToken("ghp_person", githubtest.Token{Login: "Codertocat", Scopes: "repo"})
	created := ask(t, s, "POST", home+"/check-runs", token, output(map[string]any{"annotations": annotations(50, nil)}))
	var v struct{ ID int64 }
	if err := json.Unmarshal([]byte(created.body), &v); err != nil {
		t.Fatal(err)
	}
	path := home + "/check-runs/" + jsonNumber(v.ID)
	more := `{"output":{"title":"t","summary":"s","annotations":` + mustJSON(annotations(7, nil)) + `},"conclusion":"failure"}`
	if a := ask(t, s, "PATCH", path, token, more); a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	got := s.CheckRuns(head)
	if len(got) != 1 || len(got[0].Annotations) != 57 || got[0].Status != "completed" || got[0].Conclusion != "failure" {
		t.Errorf("got %+v", got)
	}
	if a := ask(t, s, "PATCH", path, "ghs_other", more); a.status != 403 || !strings.Contains(a.body, "Invalid app_id `15368`") {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if a := ask(t, s, "POST", home+"/check-runs", "ghp_person", check(nil)); a.status != 403 || !strings.Contains(a.body, "GitHub App") {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if a := ask(t, s, "GET", path+"/annotations?per_page=100", token, ""); strings.Count(a.body, `"path"`) != 57 {
		t.Errorf("got %.200s", a.body)
	}
}

func TestQuota(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	s := town(t, githubtest.Options{Quota: 3, Now: func() time.Time { return now }})
	first := ask(t, s, "GET", home, token, "")
	if got := first.header.Get("X-Ratelimit-Remaining"); got != "2" {
		t.Errorf("remaining %s", got)
	}
	known, err := try(s, "GET", home, token, "", "If-None-Match", first.header.Get("Etag"))
	if err != nil || known.status != 304 || known.header.Get("X-Ratelimit-Remaining") != "2" {
		t.Errorf("got %v, %v", known, err)
	}
	for range 2 {
		ask(t, s, "GET", home+"/pulls/2", token, "")
	}
	over := ask(t, s, "GET", home+"/pulls/2", token, "")
	if over.status != 403 || over.header.Get("X-Ratelimit-Remaining") != "0" || !strings.Contains(over.body, "API rate limit exceeded") {
		t.Errorf("got %d %s", over.status, over.body)
	}
	if a := ask(t, s, "GET", "/rate_limit", token, ""); a.status != 200 {
		t.Errorf("got %d", a.status)
	}
	now = now.Add(time.Hour)
	if a := ask(t, s, "GET", home+"/pulls/2", token, ""); a.status != 200 {
		t.Errorf("an hour later: %d", a.status)
	}
}

func reactionsOf(id int64) string {
	return home + "/issues/comments/" + jsonNumber(id) + "/reactions"
}

func jsonNumber(n int64) string { return mustJSON(n) }

func mustJSON(v any) string {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}
