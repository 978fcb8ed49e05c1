// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"

	gh "github.com/google/go-github/v62/github"
)

const (
	pageSize = 100 // GitHub's most
	// maxPages bounds a list: a conversation has at most 2,500 comments, and the
	// token of a workflow 1,000 requests an hour.
	maxPages = 100
)

// path returns the path of something of the repository.
func (c *Client) path(rest string) string {
	return fmt.Sprintf("repos/%s/%s/%s", c.owner, c.name, rest)
}

// get reads one document that go-github has no call for, or reads only in part.
func (c *Client) get(ctx context.Context, path string, query url.Values, into any) (*gh.Response, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	req, err := c.gh.NewRequest("GET", path, nil)
	if err != nil {
		return nil, err
	}
	return c.gh.Do(ctx, req, into)
}

// pages reads a list page by page and gives each to take, whose error ends it.
func pages[P any](ctx context.Context, c *Client, op operation, path string, query url.Values, take func(P) error) error {
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("per_page", strconv.Itoa(pageSize))
	p := c.patience(op)
	for n := 1; ; n++ {
		if n > maxPages {
			return malformed("the list has more than %d pages", maxPages).stop(op)
		}
		query.Set("page", strconv.Itoa(n))
		var page P
		resp, err := attempt(ctx, p, func(ctx context.Context) (*gh.Response, error) {
			var zero P
			page = zero // nothing of a try before
			return c.get(ctx, path, query, &page)
		})
		if err != nil {
			return err
		}
		if err := take(page); err != nil {
			return asError(err).stop(op)
		}
		if more, err := nextPage(resp, n); err != nil {
			return err.stop(op)
		} else if !more {
			return nil
		}
	}
}

// nextPage says whether page n is followed by another. A link that does not lead to
// page n+1 is refused: a list that ends early, jumps or turns in a circle is not the
// list.
func nextPage(resp *gh.Response, n int) (bool, *Error) {
	link := strings.Join(resp.Header.Values("Link"), ",")
	switch {
	case !strings.Contains(link, `rel="next"`):
		return false, nil
	case resp.NextPage != n+1:
		return false, malformed("page %d is followed by %s", n, link)
	}
	return true, nil
}

// unique drops items whose key came before: a list that changes while it is read
// shows some of it twice.
func unique[T any, K comparable](list []T, key func(T) K) []T {
	seen := make(map[K]bool, len(list))
	kept := list[:0]
	for _, item := range list {
		if k := key(item); !seen[k] {
			seen[k] = true
			kept = append(kept, item)
		}
	}
	return kept
}
