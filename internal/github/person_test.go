// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/http"
	"testing"
)

func TestPermission(t *testing.T) {
	tests := []struct {
		permission, role string
		want             string // "" means malformed
	}{
		{"admin", "admin", "admin"}, {"write", "maintain", "maintain"}, {"write", "write", "write"},
		{"read", "triage", "triage"}, {"read", "read", "read"}, {"none", "", "none"}, {"none", "none", "none"},
		{"write", "", "write"},          // an old GHES
		{"write", "releasers", "write"}, // a custom role
		{"read", "admin", "read"},       // a custom role of that name, or a lie: the permission is used
		{"none", "admin", "none"},
		{"owner", "admin", ""}, {"", "admin", ""},
	}
	for _, test := range tests {
		t.Run(test.permission+" as "+test.role, func(t *testing.T) {
			s := play(t, say(200, fmt.Sprintf(`{"permission":%q,"role_name":%q,"user":{"login":"octocat","id":583231}}`, test.permission, test.role)))
			c, _ := client(t, s.URL)
			got, err := c.Permission(context.Background(), "octocat")
			if test.want == "" {
				wantError(t, err, Malformed, "github.malformed")
				return
			}
			if want := (Permission{test.want, 583231}); err != nil || got != want {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
			if path := s.requests()[0].URL.Path; path != "/repos/Codertocat/Hello-World/collaborators/octocat/permission" {
				t.Errorf("asked for %s", path)
			}
		})
	}
}

func TestPermissionOfNobody(t *testing.T) {
	tests := []struct {
		name   string
		answer step
		kind   Kind // "" means the permission "none"
	}{
		{"unknown", say(404, `{"message":"octocat is not a user"}`), ""},
		{"not ours to know", say(403, `{"message":"Must have push access to view collaborator permission."}`), Forbidden},
		{"unavailable", say(503, ""), Unavailable},
		{"no user", say(200, `{"permission":"admin","user":null}`), Malformed},
		{"nothing", say(200, `{}`), Malformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, _ := client(t, play(t, test.answer).URL)
			got, err := c.Permission(context.Background(), "dependabot[bot]")
			if KindOf(err) != test.kind || (err == nil) != (test.kind == "") {
				t.Fatalf("got %v", err)
			}
			if test.kind == "" && got != (Permission{Level: "none"}) || test.kind != "" && got != (Permission{}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAuthor(t *testing.T) {
	tests := []struct {
		name   string
		answer step
		want   Author
		kind   Kind
	}{
		{"a person", say(200, `{"login":"octocat","id":583231,"type":"User"}`), Author{"octocat", 583231, "User"}, ""},
		{"a workflow", say(403, `{"message":"Resource not accessible by integration"}`), Author{"github-actions[bot]", 0, "Bot"}, ""},
		{"a bad token", say(401, `{"message":"Bad credentials"}`), Author{}, Unauthorized},
		{"a rate limit is no workflow", say(403, `{"message":"API rate limit exceeded"}`, "Retry-After", "3600"), Author{}, RateLimited},
		{"nobody", say(200, `{}`), Author{}, Malformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, _ := client(t, play(t, test.answer).URL)
			got, err := c.Author(context.Background())
			if got != test.want || KindOf(err) != test.kind {
				t.Errorf("got %v, %v, want %v", got, err, test.want)
			}
		})
	}
	forbidden := say(403, `{"message":"Resource not accessible by integration"}`)
	for want, viewer := range map[Author]step{
		{"reviews[bot]", 7, "Bot"}:        say(200, `{"data":{"viewer":{"login":"reviews[bot]","databaseId":7}}}`),
		{"github-actions[bot]", 0, "Bot"}: say(200, `{"data":{"viewer":{"login":"mona","databaseId":7}}}`), // an app's token is a bot's
	} {
		c, _ := client(t, play(t, forbidden, viewer).URL)
		if got, err := c.Author(context.Background()); got != want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	c, err := New(Options{Repository: "a/b", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return nil, &Error{Kind: Forbidden, Status: 403}
	})})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Author(context.Background()); err != nil || got.ID != 41898282 {
		t.Errorf("on github.com got %v, %v", got, err)
	}
}
