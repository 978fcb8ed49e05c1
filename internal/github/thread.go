// SPDX-License-Identifier: Apache-2.0

package github

import "context"

// A ReviewThread is a comment on lines of a pull request with the replies to it.
type ReviewThread struct {
	ID       string // of the GraphQL API
	Comment  int64  // the ID of its first ReviewComment
	Resolved bool
	// ResolvedBy is who resolved it, without Type; zero if GitHub names no account: a deleted one,
	// or a bot, since the field is one for a person.
	ResolvedBy Author
}

const threadsQuery = `query($owner: String!, $name: String!, $number: Int!, $after: String) {
	repository(owner: $owner, name: $name) {
		pullRequest(number: $number) {
			reviewThreads(first: 100, after: $after) {
				pageInfo { hasNextPage endCursor }
				nodes { id isResolved resolvedBy { login databaseId } comments(first: 1) { nodes { fullDatabaseId } } }
			}
		}
	}
}`

// A threadPage is the answer to threadsQuery.
type threadPage struct {
	Repository struct {
		PullRequest struct {
			ReviewThreads *threadList `json:"reviewThreads"`
		} `json:"pullRequest"`
	} `json:"repository"`
}

type threadList struct {
	PageInfo struct {
		HasNextPage bool   `json:"hasNextPage"`
		EndCursor   string `json:"endCursor"`
	} `json:"pageInfo"`
	Nodes []threadNode `json:"nodes"`
}

type threadNode struct {
	ID         string `json:"id"`
	IsResolved bool   `json:"isResolved"`
	ResolvedBy user   `json:"resolvedBy"`
	Comments   struct {
		Nodes []struct {
			ID int64 `json:"fullDatabaseId,string"`
		} `json:"nodes"`
	} `json:"comments"`
}

// ReviewThreads lists the threads of a pull request's reviews, each once: 10,000 at most. The REST
// API does not have them; see ResolveThread about servers and tokens.
func (c *Client) ReviewThreads(ctx context.Context, number int) ([]ReviewThread, error) {
	var all []ReviewThread
	p, variables := c.newRetryState(listThreads), map[string]any{"owner": c.owner, "name": c.name, "number": number}
	for len(all) < maxItems {
		got, err := queryGraphQL[threadPage](ctx, p, threadsQuery, variables)
		if err != nil {
			return nil, err
		}
		page := got.Repository.PullRequest.ReviewThreads
		if page == nil {
			return nil, malformedError("a pull request without a list of threads").toStopError(listThreads)
		}
		for _, n := range page.Nodes {
			all = append(all, threadOf(n))
		}
		if !page.PageInfo.HasNextPage {
			return dropRepeated(all, func(t ReviewThread) string { return t.ID }), nil
		}
		if len(page.Nodes) == 0 {
			return nil, malformedError("an empty page of threads is followed by another").toStopError(listThreads)
		}
		variables["after"] = page.PageInfo.EndCursor
	}
	return nil, malformedError("the list has more than %d items", maxItems).toStopError(listThreads)
}

// threadOf reads a thread. One whose comments were deleted meanwhile has none.
func threadOf(n threadNode) ReviewThread {
	t := ReviewThread{ID: n.ID, Resolved: n.IsResolved,
		ResolvedBy: Author{Login: n.ResolvedBy.Login, ID: n.ResolvedBy.ID}}
	if len(n.Comments.Nodes) > 0 {
		t.Comment = n.Comments.Nodes[0].ID
	}
	return t
}

const (
	resolveMutation   = `mutation($id: ID!) { result: resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`
	unresolveMutation = `mutation($id: ID!) { result: unresolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`
)

// ResolveThread resolves a thread, or unresolves it. Of the token of an app, such as a workflow's
// own, GitHub requires contents: write for it; without that, the error is of Kind Forbidden.
func (c *Client) ResolveThread(ctx context.Context, id string, resolved bool) error {
	type answer struct {
		Result struct {
			Thread struct {
				IsResolved *bool `json:"isResolved"`
			} `json:"thread"`
		} `json:"result"`
	}
	document := unresolveMutation
	if resolved {
		document = resolveMutation
	}
	got, err := queryGraphQL[answer](ctx, c.newRetryState(resolveThread), document, map[string]any{"id": id})
	if now := got.Result.Thread.IsResolved; err == nil && (now == nil || *now != resolved) {
		err = malformedError("the thread has not changed").toStopError(resolveThread)
	}
	return err
}
