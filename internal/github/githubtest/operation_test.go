// SPDX-License-Identifier: Apache-2.0

package githubtest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github/githubtest"
	githubdata "github.com/fumehood/fumehood/testdata/github"
)

// TestOperations calls every operation once; the server itself checks the response
// against the description.
func TestOperations(t *testing.T) {
	s := town(t, githubtest.Options{})
	s.AddToken("ghp_person", githubtest.Token{Login: "Codertocat", Scopes: "repo"})
	s.AddCommit(head)
	s.SetRole("hubot", "triage")
	s.UserID("hubot")
	s.SetContent("master", "README.md", []byte("hello\n"))
	s.SetContent("master", ".github/fumehood/policy.rego", []byte("package x\n"))
	s.ChangePullRequest(2, func(pr *githubtest.PR) {
		pr.Files = []githubtest.File{{Path: "b.go", Previous: "a.go", Status: "renamed", Patch: "@@ -1 +1 @@\n-a\n+b\n"}}
	})
	id := jsonNumber(s.AddComment(2, "octocat", "first"))
	ask(t, s, "POST", home+"/issues/comments/"+id+"/reactions", token, field("content", "eyes"))
	reaction := jsonNumber(s.Reactions(s.Comments(2)[0].ID)[0].ID)
	ask(t, s, "POST", home+"/check-runs", token, output(map[string]any{"annotations": annotations(1, nil)}))
	run := jsonNumber(s.CheckRuns(head)[0].ID)
	remark := jsonNumber(s.AddReviewComment(2, "octocat", "why?", "b.go", 1))

	tests := []struct {
		op, method, path, body string
		status                 int
		words                  string
	}{
		{"meta/root", "GET", "/", "", 200, "current_user_url"},
		{"rate-limit/get", "GET", "/rate_limit", "", 200, `"remaining"`},
		{"repos/get", "GET", home, "", 200, `"full_name":"Codertocat/Hello-World"`},
		{"repos/get-commit", "GET", home + "/commits/" + head, "", 200, head},
		{"repos/get-commit", "GET", home + "/commits/" + githubtest.CommitID("none"), "", 422, "No commit found"},
		{"repos/get-branch", "GET", home + "/branches/master", "", 200, githubtest.CommitID("base")},
		{"repos/get-branch", "GET", home + "/branches/a/b", "", 404, "Branch not found"},
		{"git/get-ref", "GET", home + "/git/ref/heads/master", "", 200, githubtest.CommitID("base")},
		{"repos/get-content", "GET", home + "/contents/README.md", "", 200, "aGVsbG8K"},
		{"repos/get-content", "GET", home + "/contents/.github/fumehood?ref=master", "", 200, "policy.rego"},
		{"repos/get-content", "GET", home + "/contents/.github", "", 200, `"type":"dir"`},
		{"repos/get-content", "GET", home + "/contents/nothing", "", 404, "Not Found"},
		{"repos/get-collaborator-permission-level", "GET", home + "/collaborators/hubot/permission", "", 200, `"permission":"read","role_name":"triage"`},

		{"pulls/get", "GET", home + "/pulls/2", "", 200, `"full_name":"octocat/Hello-World"`},
		{"pulls/list", "GET", home + "/pulls?head=octocat:evil&state=all", "", 200, head},
		{"pulls/list", "GET", home + "/pulls?head=Codertocat:evil", "", 200, "[]"},
		{"pulls/list", "GET", home + "/pulls?state=closed", "", 200, "[]"},
		{"pulls/list-files", "GET", home + "/pulls/2/files", "", 200, `"previous_filename":"a.go"`},
		{"pulls/list-commits", "GET", home + "/pulls/2/commits", "", 200, head},

		{"pulls/create-review", "POST", home + "/pulls/2/reviews", `{"event":"COMMENT","body":"b","commit_id":"` + head + `","comments":[{"path":"b.go","line":1,"side":"RIGHT","body":"c"}]}`, 200, `"COMMENTED"`},
		{"pulls/list-review-comments", "GET", home + "/pulls/2/comments", "", 200, `"line":1`},
		{"pulls/update-review-comment", "PATCH", home + "/pulls/comments/" + remark, field("body", "because"), 200, "because"},
		{"pulls/delete-review-comment", "DELETE", home + "/pulls/comments/" + remark, "", 204, ""},

		{"issues/get", "GET", home + "/issues/2", "", 200, `"pull_request"`},
		{"issues/get", "GET", home + "/issues/3", "", 200, "No pull request"},
		{"issues/add-labels", "POST", home + "/issues/2/labels", `{"labels":["tested"]}`, 200, "tested"},
		{"issues/list-comments", "GET", home + "/issues/2/comments?since=2000-01-01T00:00:00Z", "", 200, "first"},
		{"issues/list-comments", "GET", home + "/issues/2/comments?since=2100-01-01T00:00:00Z", "", 200, "[]"},
		{"issues/create-comment", "POST", home + "/issues/2/comments", field("body", "second"), 201, "github-actions[bot]"},
		{"issues/get-comment", "GET", home + "/issues/comments/" + id, "", 200, "first"},
		{"issues/update-comment", "PATCH", home + "/issues/comments/" + id, field("body", "third"), 200, "third"},
		{"reactions/list-for-issue-comment", "GET", home + "/issues/comments/" + id + "/reactions?content=eyes", "", 200, "eyes"},
		{"reactions/create-for-issue-comment", "POST", home + "/issues/comments/" + id + "/reactions", field("content", "+1"), 201, "+1"},
		{"reactions/delete-for-issue-comment", "DELETE", home + "/issues/comments/" + id + "/reactions/" + reaction, "", 204, ""},
		{"issues/delete-comment", "DELETE", home + "/issues/comments/" + id, "", 204, ""},

		{"checks/create", "POST", home + "/check-runs", check(nil), 201, "fumehood"},
		{"checks/get", "GET", home + "/check-runs/" + run, "", 200, `"annotations_count":1`},
		{"checks/update", "PATCH", home + "/check-runs/" + run, `{"status":"in_progress"}`, 200, "in_progress"},
		{"checks/list-annotations", "GET", home + "/check-runs/" + run + "/annotations", "", 200, "a.go"},
		{"checks/list-for-ref", "GET", home + "/commits/" + head + "/check-runs?check_name=fumehood", "", 200, `"total_count":1`},
		{"checks/list-for-ref", "GET", home + "/commits/" + head + "/check-runs?filter=all", "", 200, `"total_count":2`},

		{"actions/get-workflow-run", "GET", home + "/actions/runs/7", "", 200, head},
		{"actions/list-workflow-runs-for-repo", "GET", home + "/actions/runs?event=pull_request&created=%3E%3D2000-01-01&head_sha=" + head, "", 200, `"total_count":1`},
		{"actions/list-workflow-runs", "GET", home + "/actions/workflows/fumehood.yml/runs?event=pull_request&created=%3E%3D2000-01-01", "", 200, `"total_count":1`},
		{"actions/list-workflow-runs", "GET", home + "/actions/workflows/other.yml/runs", "", 404, "Not Found"},
		{"actions/list-workflow-runs-for-repo", "GET", home + "/actions/runs?status=failure", "", 200, `"total_count":0`},
		{"actions/list-workflow-run-artifacts", "GET", home + "/actions/runs/7/artifacts?name=fumehood", "", 200, `"size_in_bytes":2`},
		{"actions/list-artifacts-for-repo", "GET", home + "/actions/artifacts?name=other", "", 200, `"total_count":0`},
		{"actions/get-artifact", "GET", home + "/actions/artifacts/8", "", 200, `"workflow_run"`},
		{"actions/download-artifact", "GET", home + "/actions/artifacts/8/zip", "", 302, ""},
	}
	for _, tt := range tests {
		t.Run(tt.op+" "+tt.path, func(t *testing.T) {
			a := ask(t, s, tt.method, tt.path, token, tt.body)
			if a.status != tt.status || !strings.Contains(a.body, tt.words) {
				t.Errorf("got %d %.300s", a.status, a.body)
			}
			if log := s.Requests(); log[len(log)-1].Op != tt.op || log[len(log)-1].Status != tt.status || log[len(log)-1].Login != githubtest.ActionsBot {
				t.Errorf("logged as %+v", log[len(log)-1])
			}
		})
	}
	if a := ask(t, s, "GET", "/user", "ghp_person", ""); a.status != 200 {
		t.Errorf("got %d", a.status)
	}
}

func TestMediaTypes(t *testing.T) {
	s := town(t, githubtest.Options{})
	s.SetContent("master", "README.md", []byte("hello\n"))
	s.ChangePullRequest(2, func(pr *githubtest.PR) { pr.Files = []githubtest.File{{Path: "a.go", Patch: "@@ -1 +1 @@\n"}} })
	for path, media := range map[string]string{"/contents/README.md": "application/vnd.github.raw+json", "/pulls/2": "application/vnd.github.diff"} {
		a, err := try(s, "GET", home+path, token, "", "Accept", media)
		if err != nil || !strings.HasPrefix(a.header.Get("Content-Type"), media) || strings.HasPrefix(a.body, "{") {
			t.Errorf("%s: got %v, %v", path, a, err)
		}
	}
}

// TestStandAlone serves an enterprise server's path on a listener of the test,
// blobs included.
func TestStandAlone(t *testing.T) {
	s, err := githubtest.NewHandler(githubtest.Options{Prefix: "/api/v3"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	s.URL = server.URL + "/api/v3"
	s.AddWorkflowToken(token, all...)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "7", "fumehood"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "7", "fumehood", "fumehood.zip"), []byte("PK from the runner"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.FindArtifacts(githubtest.ArtifactFolder(dir))
	s.AddRun(githubtest.Run{ID: 7})

	var list struct {
		Artifacts []struct {
			ID  int64
			URL string `json:"archive_download_url"`
		}
	}
	for range 2 { // the id does not change
		a := ask(t, s, "GET", home+"/actions/runs/7/artifacts", token, "")
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || len(list.Artifacts) != 1 {
			t.Fatalf("got %s, %v", a.body, err)
		}
	}
	to := ask(t, s, "GET", list.Artifacts[0].URL, token, "").header.Get("Location")
	if a := ask(t, s, "GET", to, "", ""); a.body != "PK from the runner" {
		t.Errorf("%s: got %d %s", to, a.status, a.body)
	}
	if got := s.Violations(); len(got) > 0 {
		t.Error(got)
	}
}

func TestFormerName(t *testing.T) {
	s := town(t, githubtest.Options{})
	s.AddFormerName("Codertocat/Hello")
	a := ask(t, s, "GET", "/repos/Codertocat/Hello/pulls/2", token, "")
	to := a.header.Get("Location")
	if a.status != http.StatusMovedPermanently || !strings.HasSuffix(to, "/repositories/186853002/pulls/2") {
		t.Errorf("got %d %s", a.status, to)
	}
	if a := ask(t, s, "GET", to, token, ""); a.status != 200 {
		t.Errorf("got %d", a.status)
	}
	if a := ask(t, s, "POST", "/repos/Codertocat/Hello/issues/2/comments", token, field("body", "x")); a.status != http.StatusTemporaryRedirect {
		t.Errorf("got %d", a.status)
	}
}

// TestAddEvent shows that the server knows the objects in each payload of its repository.
func TestAddEvent(t *testing.T) {
	known := 0
	for _, payload := range githubdata.Events() {
		s := githubtest.New(t, githubtest.Options{})
		s.AddWorkflowToken(token, all...)
		err := s.AddEvent(githubdata.Event(payload))
		if strings.HasPrefix(payload, "check_run") || payload == "workflow_run.completed" || payload == "workflow_run.completed.fork" {
			if err == nil {
				t.Errorf("%s: is of another repository", payload)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", payload, err)
			continue
		}
		known++
		if strings.HasPrefix(payload, "pull_request") {
			pr := s.PullRequest(2)
			if forked := pr.Head.Repository != "Codertocat/Hello-World"; pr.Head.SHA != head || forked != strings.Contains(payload, "fork") {
				t.Errorf("%s: %+v", payload, pr)
			}
			ask(t, s, "GET", home+"/pulls/2", token, "")
		}
		if strings.HasPrefix(payload, "issue_comment") {
			if a := ask(t, s, "GET", home+"/issues/comments/492700400", token, ""); a.status != 200 {
				t.Errorf("%s: got %d", payload, a.status)
			}
			pr := s.PullRequest(2)
			if pr.Locked != strings.HasSuffix(payload, "locked") || pr.Number == 2 && (pr.State == "closed") != strings.HasSuffix(payload, "closed") {
				t.Errorf("%s: %+v", payload, pr)
			}
		}
		if strings.HasPrefix(payload, "workflow_run") {
			if a := ask(t, s, "GET", home+"/actions/runs/289782451", token, ""); a.status != 200 && !strings.Contains(payload, "requested") {
				t.Errorf("%s: got %d %s", payload, a.status, a.body)
			}
		}
	}
	if known < 30 {
		t.Errorf("knows %d payloads", known)
	}
}
