// SPDX-License-Identifier: Apache-2.0

package githubtest_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// A document that the fake does not know, and one that is not strictly a request, is a violation.
func TestGraphQLUnknown(t *testing.T) {
	s := githubtest.New(t, githubtest.Options{})
	s.AddWorkflowToken("ghs", "contents:write", "pull-requests:write")
	for _, body := range []string{
		`{"query":"{viewer{login}}"}`, `{"query":"mutation($id: ID!) { mergePullRequest(input: {pullRequestId: $id}) { clientMutationId } }","variables":{"id":"x"}}`,
		`{"query":"{viewer{login databaseId}}","operation":"x"}`, `{"query":"{viewer{login databaseId}}"}{}`, ``, `{"query":""}`,
	} {
		ask(t, s, "POST", "/graphql", "ghs", body)
		if v := s.TakeViolations(); len(v) != 1 {
			t.Errorf("%s: %v", body, v)
		}
	}
	for body, want := range map[string]string{
		`{"query":"query { viewer { login } }"}`:        `"message":"Parse error"`,
		`{"query":"\n{ viewer {login, databaseId}}\n"}`: `"login":"github-actions[bot]"`,
		resolve(`{"id":"PRRT_1"}`):                      `"type":"NOT_FOUND"`,
		resolve(`{"id":1}`):                             `"message":"Variable`,
		resolve(`{"id":"PRRT_1","x":1}`):                `"message":"Variable`,
	} {
		if a := ask(t, s, "POST", "/graphql", "ghs", body); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	s.TakeViolations()
	if a := ask(t, s, "POST", "/graphql", "wrong", resolve(`{"id":"x"}`)); a.status != 401 {
		t.Errorf("a wrong token: %d", a.status)
	}
}

func resolve(variables string) string {
	return `{"query":"mutation($id: ID!) { result: resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }","variables":` + variables + `}`
}

// As on GitHub, the token of an app needs the right to write contents to resolve a thread.
func TestGraphQLRights(t *testing.T) {
	s := githubtest.New(t, githubtest.Options{})
	s.AddPR(githubtest.PR{Number: 2})
	id := s.AddReviewComment(2, "octocat", "c", "f", 1)
	for _, test := range []struct {
		permissions []string
		allowed     bool
	}{
		{[]string{"pull-requests:write"}, false}, {[]string{"contents:write"}, false}, {[]string{"contents:write", "pull-requests:read"}, false}, {[]string{"contents:write", "pull-requests:write"}, true},
	} {
		s.AddWorkflowToken("ghs", test.permissions...)
		s.SetResolved(id, "")
		a := ask(t, s, "POST", "/graphql", "ghs", resolve(`{"id":"PRRT_`+strconv.FormatInt(id, 10)+`"}`))
		if got := s.ReviewComments(2)[0].ResolvedBy != ""; got != test.allowed || strings.Contains(a.body, "FORBIDDEN") == test.allowed {
			t.Errorf("%v: %s", test.permissions, a.body)
		}
	}
}
