// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode"
)

func TestKinds(t *testing.T) {
	tests := []struct {
		name   string
		answer step
		kind   Kind
		code   string
		text   string // in the error's text
		hint   string
	}{
		{"missing right", say(403, `{"message":"Resource not accessible by integration"}`),
			Forbidden, "github.permission", "Resource not accessible", "`permissions: {pull-requests: write}`"},
		{"missing right by the last request of the quota",
			say(403, `{"message":"Resource not accessible by integration"}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9999999999"),
			Forbidden, "github.permission", "", "workflow_run"},
		{"locked", say(403, `{"message":"Unable to create comment because issue is locked."}`),
			Locked, "github.locked", "issue is locked", "unlock"},
		{"bad credentials", say(401, `{"message":"Bad credentials"}`), Unauthorized, "github.permission", "Bad credentials", "expired"},
		{"not found", say(404, `{"message":"Not Found"}`), NotFound, "github.not-found", "", "404 in both"},
		{"gone", say(410, `{"message":"Issues are disabled"}`), NotFound, "github.not-found", "disabled", ""},
		{"legal", say(451, `{"message":"Repository access blocked"}`), Forbidden, "github.permission", "blocked", ""},
		{"invalid", say(422, `{"message":"Validation Failed","errors":[{"resource":"IssueComment","code":"unprocessable","field":"data","message":"Body is too long (maximum is 65536 characters)"}]}`),
			Invalid, "github.invalid", "Validation Failed; Body is too long", ""},
		{"invalid by code", say(422, `{"message":"Validation Failed","errors":[{"resource":"CheckRun","code":"invalid","field":"head_sha"}]}`),
			Invalid, "github.invalid", "CheckRun head_sha invalid", ""},
		{"invalid in words", say(422, `{"message":"Invalid request.","errors":["No subschema matched"]}`), Invalid, "github.invalid", "No subschema matched", ""},
		{"conflict", say(409, `{"message":"Conflict"}`), Invalid, "github.invalid", "Conflict", ""},
		{"primary limit", say(403, `{"message":"API rate limit exceeded for installation ID 1."}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1795266000"),
			RateLimited, "github.rate-limit", "API rate limit exceeded", "2026-11-21 13:00:01 UTC"},
		{"secondary limit", say(429, `{"message":"slow down"}`, "Retry-After", "3600"), RateLimited, "github.rate-limit", "", "2026-11-21 13:00:00 UTC"},
		{"server error", say(502, "<html>Bad Gateway</html>"), Uncertain, "github.unavailable", "502", "check whether"},
		{"no JSON", say(201, "<html>log in first</html>"), Uncertain, "github.unavailable", "JSON", "check whether"},
		{"null", say(201, "null"), Uncertain, "github.unavailable", "JSON", ""},
		{"nothing", say(201, ""), Uncertain, "github.unavailable", "JSON", ""},
		{"another shape", say(201, `[]`), Uncertain, "github.unavailable", "cannot unmarshal", ""},
		{"without an id", say(201, `{}`), Uncertain, "github.unavailable", "without an id", ""},
		{"later", say(202, `{}`), Uncertain, "github.unavailable", "202", ""},
		{"redirect without a place", say(301, `{}`), Uncertain, "github.unavailable", "301", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := play(t, test.answer)
			c, _ := client(t, s.URL)
			_, err := c.CreateComment(context.Background(), 2, "hello")
			e, stop := wantError(t, err, test.kind, test.code)
			if !strings.Contains(err.Error(), test.text) || !strings.Contains(stop.Hint, test.hint) {
				t.Errorf("got %v\nhint: %s\nwant text %q, hint %q", err, stop.Hint, test.text, test.hint)
			}
			if e.Op != "create a comment" || stop.Message != "cannot create a comment on GitHub" {
				t.Errorf("got op %q, message %q", e.Op, stop.Message)
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("sent %d requests, want 1", n)
			}
		})
	}
}

// A server's text must not put control characters, endless lines or workflow
// commands into messages.
func TestHostileText(t *testing.T) {
	body := `{"message":"\u001b[31m::error::x\r\n::set-output name=a::b\u202e` + strings.Repeat("A", 5000) + `","errors":["\u0000",{"message":"` + strings.Repeat("b", 5000) + `"}]}`
	c, _ := client(t, play(t, say(422, body)).URL)
	_, err := c.Comment(context.Background(), 1)
	e, _ := wantError(t, err, Invalid, "github.invalid")
	if len(e.Message) > 4*maxMessage || strings.ContainsFunc(err.Error(), func(r rune) bool { return unicode.IsControl(r) || r == '\u202e' }) {
		t.Errorf("shows %q", err.Error())
	}
}

func TestNothingIsSent(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := play(t, say(201, commentJSON(1)))
	c, _ := client(t, s.URL)
	_, err := c.CreateComment(ctx, 2, "hello")
	wantError(t, err, Canceled, "github.canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is no context.Canceled", err)
	}
	_, err = c.Permission(context.Background(), "../../../user")
	wantError(t, err, Invalid, "github.invalid")
	_, err = c.CreateCheckRun(context.Background(), CheckRun{Name: "fumehood", HeadSHA: sha, Status: "completed"})
	wantError(t, err, Invalid, "github.invalid")
	err = c.UpdateCheckRun(context.Background(), 1, CheckRun{Status: "queued"})
	wantError(t, err, Invalid, "github.invalid")
	if n := len(s.requests()); n != 0 {
		t.Errorf("sent %d requests", n)
	}
}

func TestNew(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"no repository", Options{}, "invalid repository"},
		{"no owner", Options{Repository: "/x"}, "invalid repository"},
		{"three parts", Options{Repository: "a/b/c"}, "invalid repository"},
		{"dots", Options{Repository: "a/.."}, "invalid repository"},
		{"query", Options{Repository: "a/b?c"}, "invalid repository"},
		{"no scheme", Options{Repository: "a/b", BaseURL: "api.github.com"}, "invalid GitHub API URL"},
		{"file", Options{Repository: "a/b", BaseURL: "file:///etc"}, "invalid GitHub API URL"},
		{"user", Options{Repository: "a/b", BaseURL: "https://u:p@api.github.com"}, "invalid GitHub API URL"},
		{"query in the URL", Options{Repository: "a/b", BaseURL: "https://api.github.com?x=1"}, "invalid GitHub API URL"},
		{"newline in the token", Options{Repository: "a/b", Token: "x\ny"}, "invalid GitHub token"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := New(test.o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	c, err := New(Options{Repository: "a/b"})
	if err != nil || c.gh.BaseURL.String() != "https://api.github.com/" {
		t.Errorf("got %v, %v", c.gh.BaseURL, err)
	}
	c, err = New(Options{Repository: "a/b", BaseURL: "https://ghes.example/api/v3"})
	if err != nil || c.gh.BaseURL.String() != "https://ghes.example/api/v3/" {
		t.Errorf("got %v, %v", c.gh.BaseURL, err)
	}
}
