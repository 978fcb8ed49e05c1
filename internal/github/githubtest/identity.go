// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"maps"
	"net/http"
	"strings"
	"time"
)

// A User is an account: a person, an organization or an app's bot.
type User struct {
	Login string
	ID    int64
	Type  string // "User", "Bot", "Organization"; default by the login
}

// knownUsers have the same ids as on GitHub.
var knownUsers = []User{
	{"github-actions[bot]", 41898282, "Bot"},
	{"dependabot[bot]", 49699333, "Bot"},
	{"Codertocat", 21031067, "User"},
	{"octocat", 583231, "User"},
	{"hubot", 480938, "User"},
}

// ActionsBot is the login that a workflow's token writes as.
const ActionsBot = "github-actions[bot]"

// A Token identifies a user and the user's rights.
type Token struct {
	Login string
	// Permissions maps scopes ("issues", "pull_requests", "checks", "contents",
	// "actions", "statuses") to "read" or "write". A scope that is missing is not
	// granted, as in a workflow with `permissions:`.
	Permissions map[string]string
	// Scopes makes it a classic personal token: it is returned in the header
	// X-OAuth-Scopes, and the token's rights are those of the user in the repository.
	Scopes string
	// Repositories are the private repositories (owner/name) that a token with Permissions reaches,
	// as those on which an app is installed; nil is Options.Repository alone, as for a workflow's.
	Repositories []string

	used  int
	since time.Time
}

// AddUser adds an account. A login that is used without being added gets a new id
// on first use.
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
	return s.userOf(login).ID
}

// AddToken makes the server accept a token.
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

// SetRole gives login a role in the repository: "admin", "maintain", "write",
// "triage", "read" or "none".
func (s *Server) SetRole(login, role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home.roles[strings.ToLower(login)] = role
}

func (s *Server) userOf(login string) User {
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
// does. Such a token has no user, and GET /user is refused.
func (t *Token) isApp() bool { return strings.HasSuffix(t.Login, "[bot]") }

func requestToken(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(kind, "bearer") || strings.EqualFold(kind, "token") {
		return token
	}
	_, password, _ := r.BasicAuth()
	return password
}
