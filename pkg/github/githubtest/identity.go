// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"maps"
	"net/http"
	"strings"
	"time"
)

// A User is an account: a person, an organisation or an app's bot.
type User struct {
	Login string
	ID    int64
	Type  string // "User", "Bot", "Organization"; default by the login
}

// knownUsers have the ids that they have on GitHub.
var knownUsers = []User{
	{"github-actions[bot]", 41898282, "Bot"},
	{"dependabot[bot]", 49699333, "Bot"},
	{"Codertocat", 21031067, "User"},
	{"octocat", 583231, "User"},
	{"hubot", 480938, "User"},
}

// ActionsBot writes with a workflow's token.
const ActionsBot = "github-actions[bot]"

// A Token is who writes, and what they may.
type Token struct {
	Login string
	// Permissions by scope: "issues", "pull_requests", "checks", "contents",
	// "actions", "statuses" to "read" or "write". A scope that is not here is not
	// granted, as in a workflow with `permissions:`.
	Permissions map[string]string
	// Scopes makes it a classic personal token: the header X-OAuth-Scopes says so,
	// and its rights are those that the user has in the repository.
	Scopes string

	used  int
	since time.Time
}

// AddUser makes an account known. A login that is used without being known gets an id
// of its own when it is first seen.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Type == "" {
		u.Type = "User"
		if strings.HasSuffix(u.Login, "[bot]") {
			u.Type = "Bot"
		}
	}
	s.users[strings.ToLower(u.Login)] = u
}

// UserID returns the id of a login.
func (s *Server) UserID(login string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.user(login).ID
}

// AddToken lets a token in.
func (s *Server) AddToken(token string, t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Permissions = maps.Clone(t.Permissions)
	s.tokens[token] = &t
}

// AddWorkflowToken is AddToken for github-actions[bot], with permissions as in
// "issues:write", "contents:read".
func (s *Server) AddWorkflowToken(token string, permissions ...string) {
	granted := map[string]string{}
	for _, p := range permissions {
		scope, level, _ := strings.Cut(p, ":")
		granted[strings.ReplaceAll(scope, "-", "_")] = strings.TrimSpace(level)
	}
	s.AddToken(token, Token{Login: ActionsBot, Permissions: granted})
}

// Permit gives login a role in the repository: "admin", "maintain", "write",
// "triage", "read" or "none".
func (s *Server) Permit(login, role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home.roles[strings.ToLower(login)] = role
}

func (s *Server) user(login string) User {
	u, ok := s.users[strings.ToLower(login)]
	if !ok {
		kind := "User"
		if strings.HasSuffix(login, "[bot]") {
			kind = "Bot"
		}
		u = User{login, 90_000_000 + int64(len(s.users)), kind}
		s.users[strings.ToLower(login)] = u
	}
	return u
}

// isApp reports whether the token belongs to an app's installation, as a workflow's
// does: such a token is nobody's, and GET /user is refused to it.
func (t *Token) isApp() bool { return strings.HasSuffix(t.Login, "[bot]") }

func bearer(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(kind, "bearer") || strings.EqualFold(kind, "token") {
		return token
	}
	_, password, _ := r.BasicAuth()
	return password
}
