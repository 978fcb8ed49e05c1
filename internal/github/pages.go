// SPDX-License-Identifier: Apache-2.0

package github

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	gh "github.com/google/go-github/v62/github"
)

const (
	pageSize = 100 // GitHub's maximum
	// maxItems bounds a list. A conversation has at most 2,500 comments, and a
	// workflow's token 1,000 requests an hour.
	maxItems = 10_000
)

// repositoryPath returns the path of a resource of the repository.
func (c *Client) repositoryPath(rest string) string {
	return fmt.Sprintf("repos/%s/%s/%s", c.owner, c.name, rest)
}

// getDocument reads a document for which go-github has no call, or whose fields it does not
// all return.
func (c *Client) getDocument(ctx context.Context, path string, query url.Values, into any) (*gh.Response, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	req, err := c.gh.NewRequest("GET", path, nil)
	if err != nil {
		return nil, err
	}
	return c.gh.Do(ctx, req, into)
}

// readPages reads a list page by page and passes each page to take; an error of take ends it.
//
// If a page exceeds the bound of a response, it is requested again in smaller
// pages: a hundred comments of maximum length do not fit, and the author of such
// comments must not be able to block reading the rest.
func readPages[P any](
	ctx context.Context, c *Client, op operation, path string, query url.Values, take func(P) error,
) error {
	p := c.newRetryState(op)
	for n, size := 1, pageSize; n*size <= maxItems; n++ {
		page, resp, err := onePage[P](ctx, p, path, query, n, size)
		if e := asError(err); e != nil && e.long && size > 1 {
			size /= 10
			n = (n - 1) * 10 // the loop requests the page after it
			continue
		}
		if err != nil {
			return err
		}
		if err := take(page); err != nil {
			return asError(err).toStopError(op)
		}
		if more, err := nextPage(resp, n); err != nil {
			return err.toStopError(op)
		} else if !more {
			return nil
		}
	}
	return malformedError("the list has more than %d items", maxItems).toStopError(op)
}

// listAll reads a list by ascending ID, each item once.
func listAll[P, T any](
	ctx context.Context, c *Client, op operation, path string, of func(P) (T, error), id func(T) int64,
) ([]T, error) {
	var all []T
	err := readPages(ctx, c, op, path, nil, func(page []P) error {
		for _, item := range page {
			read, err := of(item)
			if err != nil {
				return err
			}
			all = append(all, read)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(id(a), id(b)) })
	return dropRepeated(all, id), nil
}

func onePage[P any](
	ctx context.Context, p *retryState, path string, query url.Values, n, size int,
) (P, *gh.Response, error) {
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("page", strconv.Itoa(n))
	query.Set("per_page", strconv.Itoa(size))
	var page P
	resp, err := retryRequest(ctx, p, func(ctx context.Context) (*gh.Response, error) {
		var none P
		page = none // drop data of an earlier try
		return p.c.getDocument(ctx, path, query, &page)
	})
	return page, resp, err
}

// nextPage reports whether page n is followed by another. It refuses a link that
// does not lead to page n+1, so a list cannot end early, skip pages or loop.
func nextPage(resp *gh.Response, n int) (bool, *Error) {
	link := strings.Join(resp.Header.Values("Link"), ",")
	switch {
	case !strings.Contains(link, `rel="next"`):
		return false, nil
	case resp.NextPage != n+1:
		return false, malformedError("page %d is followed by %s", n, link)
	}
	return true, nil
}

// dropRepeated drops items whose key occurred before: a list that changes while it is
// read can return items twice.
func dropRepeated[T any, K comparable](list []T, key func(T) K) []T {
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
