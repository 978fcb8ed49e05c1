// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// WorkflowLogin is the login that a workflow's own token writes as.
const WorkflowLogin = "github-actions[bot]"

// A Permission is a user's access to the repository. Level is "admin", "maintain",
// "write", "triage", "read" or "none".
type Permission struct {
	Level  string
	UserID int64 // of the user; 0 after a 404
}

// loginName matches the logins that GitHub allows; those of apps end in [bot].
var loginName = pattern.New(`^[A-Za-z0-9_-]{1,100}(\[bot\])?$`)

// roles are the names that refine a permission. Custom roles have other names; for
// them the permission is used.
var roles = map[string][]string{
	"admin": {"admin"}, "write": {"write", "maintain"}, "read": {"read", "triage"}, "none": {"none"},
}

// Permission returns login's access. A user that GitHub does not know here has
// "none". A login can change hands: compare UserID with the acting user's.
func (c *Client) Permission(ctx context.Context, login string) (Permission, error) {
	if !loginName.MatchString(login) {
		e := &Error{Kind: Invalid, Message: makePrintable("invalid login " + login), unsent: true}
		return Permission{}, e.toStopError(readPermission)
	}
	return requestWithRetry(ctx, c, readPermission, func(ctx context.Context) (Permission, error) {
		// go-github's own call leaves out the role.
		var answer struct {
			gh.RepositoryPermissionLevel
			Role string `json:"role_name"`
		}
		_, err := c.getDocument(ctx, c.repositoryPath("collaborators/"+login+"/permission"), nil, &answer)
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
		return Permission{}, malformedError("a permission %q", level)
	}
	if user.GetID() <= 0 {
		return Permission{}, malformedError("a permission without a user")
	}
	if slices.Contains(names, role) {
		level = role
	}
	return Permission{Level: level, UserID: user.GetID()}, nil
}

// Author returns the account that the token writes as. GitHub's REST API does not report
// it for the token of an app, such as the workflow's own; Author then asks the GraphQL API.
// If that does not answer, Author assumes the workflow's own token and returns
// WorkflowLogin with Type "Bot" (the ID is known only on github.com).
func (c *Client) Author(ctx context.Context) (Author, error) {
	author, err := c.readTokenUser(ctx)
	if err != nil || author.ID != 0 {
		return author, err
	}
	if viewer, err := c.queryViewer(ctx); err == nil {
		return viewer, nil
	}
	return Author{Login: WorkflowLogin, ID: c.workflowID(), Type: "Bot"}, ctx.Err()
}

// readTokenUser is the token's account, or a zero Author for the token of an app.
func (c *Client) readTokenUser(ctx context.Context) (Author, error) {
	return requestWithRetry(ctx, c, whoAmI, func(ctx context.Context) (Author, error) {
		user, _, err := c.gh.Users.Get(ctx, "")
		if e := asError(err); e != nil && e.Status == http.StatusForbidden && e.Kind == Forbidden {
			return Author{}, nil
		}
		if err != nil {
			return Author{}, err
		}
		if user.GetID() <= 0 || user.GetLogin() == "" {
			return Author{}, malformedError("a token without an account")
		}
		return authorOf(user), nil
	})
}

// queryViewer asks the GraphQL API for the account of an app's token.
func (c *Client) queryViewer(ctx context.Context) (Author, error) {
	type answer struct {
		Viewer user `json:"viewer"`
	}
	got, err := queryGraphQL[answer](ctx, c.newRetryState(whoAmI), "{viewer{login databaseId}}", nil)
	v := got.Viewer
	if err == nil && (v.ID <= 0 || !strings.HasSuffix(v.Login, "[bot]")) {
		err = (&Error{Kind: Invalid, Message: "an app's token without a bot"}).toStopError(whoAmI)
	}
	return Author{Login: v.Login, ID: v.ID, Type: "Bot"}, err
}

// workflowID returns the id of WorkflowLogin on github.com, or 0: every GHES has its own.
func (c *Client) workflowID() int64 {
	if strings.EqualFold(c.wire.base.Host, "api.github.com") {
		return 41898282
	}
	return 0
}
