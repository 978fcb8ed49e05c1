// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/url"
	"strings"
)

// A Branch is a branch of the repository and its last commit at the time of the request.
type Branch struct {
	Name string // without refs/heads/; untrusted text, except for the default branch's
	SHA  string // full, lower-case hex
}

// DefaultBranch reads which branch is the default one, and its last commit. These are two
// requests: a branch that is renamed between them is an error, never another branch.
func (c *Client) DefaultBranch(ctx context.Context) (Branch, error) {
	name, err := requestWithRetry(ctx, c, readRepository, func(ctx context.Context) (string, error) {
		var repository struct {
			DefaultBranch string `json:"default_branch"`
		}
		if _, err := c.getDocument(ctx, strings.TrimSuffix(c.repositoryPath(""), "/"), nil, &repository); err != nil {
			return "", err
		}
		if repository.DefaultBranch == "" {
			return "", malformedError("a repository without a default branch")
		}
		return repository.DefaultBranch, nil
	})
	if err != nil {
		return Branch{}, err
	}
	return c.Branch(ctx, name)
}

// Branch reads the last commit of a branch.
func (c *Client) Branch(ctx context.Context, name string) (Branch, error) {
	return requestWithRetry(ctx, c, readBranch, func(ctx context.Context) (Branch, error) {
		var branch struct {
			Name   string `json:"name"`
			Commit struct {
				SHA string `json:"sha"`
			} `json:"commit"`
		}
		if _, err := c.getDocument(ctx, c.repositoryPath("branches/"+url.PathEscape(name)), nil, &branch); err != nil {
			return Branch{}, err
		}
		if branch.Name != name || !fullSHA(branch.Commit.SHA) {
			return Branch{}, malformedError("requested branch %q, got %q at %q", name, branch.Name, branch.Commit.SHA)
		}
		return Branch{name, branch.Commit.SHA}, nil
	})
}
