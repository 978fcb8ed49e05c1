// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	gh "github.com/google/go-github/v62/github"
)

// WorkflowLogin is who a workflow's own token writes as.
const WorkflowLogin = "github-actions[bot]"

// A Permission is what somebody may do in the repository. Level is "admin",
// "maintain", "write", "triage", "read" or "none".
type Permission struct {
	Level  string
	UserID int64 // whose it is; 0 with a 404
}

// loginName is what GitHub lets a login be; apps have [bot] behind theirs.
var loginName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}(\[bot\])?$`)

// roles are the names that refine a permission. Custom roles have names of their
// own; for them the permission speaks.
var roles = map[string][]string{
	"admin": {"admin"}, "write": {"write", "maintain"}, "read": {"read", "triage"}, "none": {"none"},
}

// Permission says what login may do. Somebody whom GitHub does not know here has
// "none". A login can change hands: compare UserID with the one that acts.
func (c *Client) Permission(ctx context.Context, login string) (Permission, error) {
	if !loginName.MatchString(login) {
		e := &Error{Kind: Invalid, Message: printable("invalid login " + login), unsent: true}
		return Permission{}, e.stop(readPermission)
	}
	return call(ctx, c, readPermission, func(ctx context.Context) (Permission, error) {
		// Not go-github's own call, which leaves out the role.
		var answer struct {
			gh.RepositoryPermissionLevel
			Role string `json:"role_name"`
		}
		_, err := c.get(ctx, c.path("collaborators/"+login+"/permission"), nil, &answer)
		if KindOf(err) == NotFound {
			return Permission{Level: "none"}, nil
		}
		if err != nil {
			return Permission{}, err
		}
		return permissionOf(answer.GetPermission(), answer.Role, answer.GetUser())
	})
}

func permissionOf(level, role string, user *gh.User) (Permission, error) {
	names, known := roles[level]
	if !known {
		return Permission{}, malformed("a permission %q", level)
	}
	if user.GetID() <= 0 {
		return Permission{}, malformed("a permission of nobody")
	}
	if slices.Contains(names, role) {
		level = role
	}
	return Permission{Level: level, UserID: user.GetID()}, nil
}

// Author says who the token writes as. GitHub does not tell it to the token of an
// app; that is taken to be the workflow's own, WorkflowLogin with Type "Bot" and no
// ID. For the token of another app that is wrong, and only what CreateComment
// returns tells.
func (c *Client) Author(ctx context.Context) (Author, error) {
	return call(ctx, c, whoAmI, func(ctx context.Context) (Author, error) {
		user, _, err := c.gh.Users.Get(ctx, "")
		if e := asError(err); e != nil && e.Status == http.StatusForbidden && e.Kind == Forbidden {
			return Author{Login: WorkflowLogin, ID: c.workflowID(), Type: "Bot"}, nil
		}
		if err != nil {
			return Author{}, err
		}
		if user.GetID() <= 0 || user.GetLogin() == "" {
			return Author{}, malformed("a token of nobody")
		}
		return authorOf(user), nil
	})
}

// workflowID is the id of WorkflowLogin on github.com; every GHES has its own.
func (c *Client) workflowID() int64 {
	if strings.EqualFold(c.wire.base.Host, "api.github.com") {
		return 41898282
	}
	return 0
}
