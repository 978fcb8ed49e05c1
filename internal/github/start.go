// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"strings"
)

// ReadAccountAndBranch returns what Author and DefaultBranch do, in one request of the GraphQL API,
// where they take four. It tries once: an error, also of a server that does not have that API, is
// a reason to call the two, whose errors say what to do.
func (c *Client) ReadAccountAndBranch(ctx context.Context) (Author, Branch, error) {
	type answer struct {
		Viewer     user `json:"viewer"`
		Repository struct {
			Default struct {
				Name   string `json:"name"`
				Target struct {
					SHA string `json:"oid"`
				} `json:"target"`
			} `json:"defaultBranchRef"`
		} `json:"repository"`
	}
	p := c.newRetryState(readRepository)
	p.waited = c.maxWait // no further try
	got, err := queryGraphQL[answer](ctx, p, startDocument, map[string]any{"owner": c.owner, "name": c.name})
	if err != nil {
		return Author{}, Branch{}, err
	}
	author := Author{Login: got.Viewer.Login, ID: got.Viewer.ID, Type: "User"}
	if strings.HasSuffix(author.Login, "[bot]") {
		author.Type = "Bot"
	}
	tip := Branch{got.Repository.Default.Name, got.Repository.Default.Target.SHA}
	if author.ID <= 0 || author.Login == "" || tip.Name == "" || !fullSHA(tip.SHA) {
		return Author{}, Branch{}, malformedError("no account or no default branch").toStopError(readRepository)
	}
	return author, tip, nil
}

const startDocument = `query($owner: String!, $name: String!) {
	viewer { login databaseId }
	repository(owner: $owner, name: $name) { defaultBranchRef { name target { oid } } }
}`
