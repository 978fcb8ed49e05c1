// SPDX-License-Identifier: Apache-2.0

package githubtest_test

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github/githubtest"
)

func TestRights(t *testing.T) {
	const integration = "Resource not accessible by integration"
	s := town(t, githubtest.Options{})
	comment := home + "/issues/comments/" + jsonNumber(s.AddComment(2, "octocat", "x"))
	onIssue := home + "/issues/comments/" + jsonNumber(s.AddComment(3, "octocat", "x"))
	body := field("body", "x")
	tests := []struct {
		name               string
		granted            string
		method, path, body string
		status             int
		words              string
	}{
		{"comment with issues", "issues:write", "POST", home + "/issues/2/comments", body, 201, ""},
		{"comment with pull-requests", "pull-requests:write", "POST", home + "/issues/2/comments", body, 201, ""},
		{"comment on an issue with pull-requests", "pull-requests:write", "POST", home + "/issues/3/comments", body, 403, integration},
		{"comment on an issue with issues", "issues:write", "POST", home + "/issues/3/comments", body, 201, ""},
		{"comment with read", "issues:read pull-requests:read contents:write", "POST", home + "/issues/2/comments", body, 403, integration},
		{"comment with nothing", "", "POST", home + "/issues/2/comments", body, 403, integration},
		{"update with pull-requests", "pull-requests:write", "PATCH", comment, body, 200, ""},
		{"update on an issue with pull-requests", "pull-requests:write", "PATCH", onIssue, body, 403, integration},
		{"update with read", "pull-requests:read", "PATCH", comment, body, 403, integration},
		{"delete with read", "pull-requests:read", "DELETE", comment, "", 403, integration},
		{"react with read", "pull-requests:read", "POST", comment + "/reactions", field("content", "eyes"), 403, integration},
		{"react with pull-requests", "pull-requests:write", "POST", comment + "/reactions", field("content", "eyes"), 201, ""},
		{"list comments with nothing", "contents:read", "GET", home + "/issues/2/comments", "", 404, "Not Found"},
		{"list comments with pull-requests", "pull-requests:read", "GET", home + "/issues/2/comments", "", 200, ""},
		{"read the pull request with issues", "issues:write", "GET", home + "/pulls/2", "", 404, "Not Found"},
		{"read the pull request", "pull-requests:read", "GET", home + "/pulls/2", "", 200, ""},
		{"check run with read", "checks:read", "POST", home + "/check-runs", check(nil), 403, integration},
		{"check run with write", "checks:write", "POST", home + "/check-runs", check(nil), 201, ""},
		{"artifacts with nothing", "pull-requests:write", "GET", home + "/actions/runs/7/artifacts", "", 404, "Not Found"},
		{"artifacts with actions", "actions:read", "GET", home + "/actions/runs/7/artifacts", "", 200, "fumehood"},
		{"download with nothing", "contents:read", "GET", home + "/actions/artifacts/8/zip", "", 404, "Not Found"},
		{"download with actions", "actions:read", "GET", home + "/actions/artifacts/8/zip", "", 302, ""},
		{"role with nothing", "", "GET", home + "/collaborators/octocat/permission", "", 200, `"none"`},
		{"contents with nothing", "pull-requests:write", "GET", home + "/contents/README.md", "", 404, "Not Found"},
		{"who am I", "issues:write", "GET", "/user", "", 403, integration},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.AddWorkflowToken("ghs_row", strings.Fields(tt.granted)...)
			a := ask(t, s, tt.method, tt.path, "ghs_row", tt.body)
			if a.status != tt.status || !strings.Contains(a.body, tt.words) {
				t.Errorf("got %d %.200s", a.status, a.body)
			}
			if a.status == 403 && !strings.Contains(a.body, `"documentation_url":"https://docs.github.com/rest`) {
				t.Errorf("no documentation_url: %s", a.body)
			}
		})
	}
}

func TestIdentities(t *testing.T) {
	private, public := town(t, githubtest.Options{}), town(t, githubtest.Options{Public: true})
	for _, s := range []*githubtest.Server{private, public} {
		s.AddToken("ghp_writer", githubtest.Token{Login: "hubot", Scopes: "repo, read:org"})
		s.AddToken("ghp_reader", githubtest.Token{Login: "octocat", Scopes: "repo"})
		s.AddToken("github_pat", githubtest.Token{Login: "octocat", Permissions: map[string]string{"issues": "read"}})
		s.SetRole("hubot", "maintain")
		s.AddUser(githubtest.User{Login: "Copilot", ID: 198982749, Type: "Bot"})
	}
	body := field("body", "x")
	tests := []struct {
		name               string
		server             *githubtest.Server
		token              string
		method, path, body string
		status             int
		words              string
	}{
		{"nobody reads what is private", private, "", "GET", home + "/pulls/2", "", 404, "Not Found"},
		{"nobody reads what is public", public, "", "GET", home + "/pulls/2", "", 200, ""},
		{"nobody writes", public, "", "POST", home + "/issues/2/comments", body, 401, "Requires authentication"},
		{"nobody downloads", public, "", "GET", home + "/actions/artifacts/8/zip", "", 401, "Requires authentication"},
		{"a token that is none", public, "ghs_gone", "GET", home + "/pulls/2", "", 401, "Bad credentials"},
		{"a writer comments", private, "ghp_writer", "POST", home + "/issues/2/comments", body, 201, `"hubot"`},
		{"a reader does not", private, "ghp_reader", "POST", home + "/issues/2/comments", body, 403, "personal access token"},
		{"a reader sees nothing", private, "ghp_reader", "GET", home + "/pulls/2", "", 404, "Not Found"},
		{"a fine-grained token that may read", private, "github_pat", "POST", home + "/issues/2/comments", body, 403, "personal access token"},
		{"who am I", private, "ghp_writer", "GET", "/user", "", 200, `"login":"hubot"`},
		{"who is nobody", private, "", "GET", "/user", "", 401, "Requires authentication"},
		{"a role in words", private, token, "GET", home + "/collaborators/hubot/permission", "", 200, `"role_name":"maintain"`},
		{"a role in GitHub's older words", private, token, "GET", home + "/collaborators/hubot/permission", "", 200, `"permission":"write"`},
		{"the owner's role", private, token, "GET", home + "/collaborators/Codertocat/permission", "", 200, `"admin"`},
		{"a role without push access", public, "ghp_reader", "GET", home + "/collaborators/hubot/permission", "", 403, "Must have push access"},
		{"a bot's role", private, token, "GET", home + "/collaborators/github-actions%5Bbot%5D/permission", "", 200, `"none"`},
		{"a bot that is no user", private, token, "GET", home + "/collaborators/Copilot/permission", "", 404, "Copilot is not a user"},
		{"anybody's role in public", public, token, "GET", home + "/collaborators/octocat/permission", "", 200, `"read"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := ask(t, tt.server, tt.method, tt.path, tt.token, tt.body)
			if a.status != tt.status || !strings.Contains(a.body, tt.words) {
				t.Errorf("got %d %.200s", a.status, a.body)
			}
		})
	}
	if got := ask(t, private, "GET", "/user", "ghp_writer", "").header.Get("X-Oauth-Scopes"); got != "repo, read:org" {
		t.Errorf("scopes %q", got)
	}
	if got := ask(t, private, "GET", home, token, "").header.Get("X-Oauth-Scopes"); got != "" {
		t.Errorf("a workflow's token has scopes %q", got)
	}
}
