// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"net/http"
	"slices"
	"strings"
)

// operation describes how the fake serves one of GitHub's operations, and the right
// that it requires: one of scopes at level. Without scopes, any token that can see
// the repository suffices.
type operation struct {
	level  string // "read" or "write"
	scopes []string
	serve  func(*Server, *call) reply
}

// conversation: either right suffices for a pull request's comments; an issue's
// comments need the one on issues. See granted.
var conversation = []string{"issues", "pull_requests"}

var operations = map[string]operation{
	"issues/create-comment": {"write", conversation, (*Server).createComment},
	"issues/list-comments":  {"read", conversation, (*Server).listComments},
	"issues/update-comment": {"write", conversation, (*Server).updateComment},
	"issues/get-comment":    {"read", conversation, (*Server).getComment},
	"issues/delete-comment": {"write", conversation, (*Server).deleteComment},
	"issues/get":            {"read", conversation, (*Server).getIssue},
	"issues/add-labels":     {"write", conversation, (*Server).addLabels},

	"reactions/create-for-issue-comment": {"write", conversation, (*Server).createReaction},
	"reactions/list-for-issue-comment":   {"read", conversation, (*Server).listReactions},
	"reactions/delete-for-issue-comment": {"write", conversation, (*Server).deleteReaction},

	"pulls/get":          {"read", []string{"pull_requests"}, (*Server).getPull},
	"pulls/list":         {"read", []string{"pull_requests"}, (*Server).listPulls},
	"pulls/list-files":   {"read", []string{"pull_requests"}, (*Server).listFiles},
	"pulls/list-commits": {"read", []string{"pull_requests"}, (*Server).listPullCommits},

	"pulls/create-review":         {"write", []string{"pull_requests"}, (*Server).createReview},
	"pulls/list-review-comments":  {"read", []string{"pull_requests"}, (*Server).listReviewComments},
	"pulls/update-review-comment": {"write", []string{"pull_requests"}, (*Server).updateReviewComment},
	"pulls/delete-review-comment": {"write", []string{"pull_requests"}, (*Server).deleteReviewComment},

	"checks/create":           {"write", []string{"checks"}, (*Server).createCheck},
	"checks/update":           {"write", []string{"checks"}, (*Server).updateCheck},
	"checks/get":              {"read", []string{"checks"}, (*Server).getCheck},
	"checks/list-for-ref":     {"read", []string{"checks"}, (*Server).listChecks},
	"checks/list-annotations": {"read", []string{"checks"}, (*Server).listAnnotations},

	"actions/list-artifacts-for-repo":     {"read", []string{"actions"}, (*Server).listArtifacts},
	"actions/list-workflow-run-artifacts": {"read", []string{"actions"}, (*Server).listRunArtifacts},
	"actions/get-artifact":                {"read", []string{"actions"}, (*Server).getArtifact},
	"actions/download-artifact":           {"read", []string{"actions"}, (*Server).downloadArtifact},
	"actions/get-workflow-run":            {"read", []string{"actions"}, (*Server).getRun},
	"actions/list-workflow-runs":          {"read", []string{"actions"}, (*Server).listRuns},
	"actions/list-workflow-runs-for-repo": {"read", []string{"actions"}, (*Server).listRuns},

	"repos/get": {"read", nil, (*Server).getRepository},
	"repos/get-collaborator-permission-level": {"read", nil, (*Server).getPermission},
	"repos/get-content":                       {"read", []string{"contents"}, (*Server).getContent},
	"repos/get-commit":                        {"read", []string{"contents"}, (*Server).getCommit},
	"repos/get-branch":                        {"read", []string{"contents"}, (*Server).getBranch},
	"git/get-ref":                             {"read", []string{"contents"}, (*Server).getRef},

	"users/get-authenticated": {"read", nil, (*Server).getUser},
	"rate-limit/get":          {"read", nil, (*Server).getRateLimit},
	"meta/root":               {"read", nil, (*Server).getRoot},
}

// refuseUnauthorized returns GitHub's refusal, or nil.
func (s *Server) refuseUnauthorized(op operation, c *call) *reply {
	var no reply
	switch {
	case c.token == nil && (op.level == "write" || c.op == "users/get-authenticated" ||
		c.op == "actions/download-artifact"):
		no = errorReply(http.StatusUnauthorized, "Requires authentication")
	case c.repo != nil && c.repo.Private && !s.isReached(c):
		return &notFound
	case c.repo == nil, op.level == "read" && !c.repo.Private && c.token == nil:
		return nil
	case c.token == nil:
		no = notFound
	case s.isGranted(op, c):
		return nil
	case op.level == "read":
		no = notFound
	case c.token.isApp():
		no = errorReply(http.StatusForbidden, "Resource not accessible by integration")
	default:
		no = errorReply(http.StatusForbidden, "Resource not accessible by personal access token")
	}
	return &no
}

// isReached reports whether the token is for the private repository at all.
func (s *Server) isReached(c *call) bool {
	switch {
	case c.token == nil || c.token.Scopes != "":
		return c.token != nil
	case c.token.Repositories == nil:
		return c.repo == s.home
	}
	return slices.ContainsFunc(c.token.Repositories,
		func(name string) bool { return strings.EqualFold(name, c.repo.Name) })
}

func (s *Server) isGranted(op operation, c *call) bool {
	if len(op.scopes) == 0 || op.level == "read" && !c.repo.Private {
		return true
	}
	if c.token.Scopes != "" {
		role := s.roleOf(c.repo, c.token.Login)
		return canWrite(role) || op.level == "read" && role != "none"
	}
	for _, scope := range op.scopes {
		if scope == "pull_requests" && len(op.scopes) > 1 && !c.onPull() {
			continue
		}
		if has := c.token.Permissions[scope]; has == "write" || has == "read" && op.level == "read" {
			return true
		}
	}
	return false
}

func canWrite(role string) bool {
	return slices.Contains([]string{"write", "maintain", "admin"}, role)
}

// onPull reports whether the call is about a pull request's conversation, where the
// right to write on pull requests is as good as the one on issues.
func (c *call) onPull() bool {
	number := c.pathNumber("issue_number")
	if comment := c.findComment(); comment != nil {
		number = int64(comment.Number)
	}
	return c.repo.prs[int(number)] != nil
}
