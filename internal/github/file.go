// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
)

// rawFile is the media type of a file's bytes.
const rawFile = "application/vnd.github.raw+json"

// CommitOf returns the full id of the commit that ref names at the time of the request: a branch, a tag or
// a commit. A ref that does not exist is an error of Kind Invalid, as GitHub says it, or NotFound.
func (c *Client) CommitOf(ctx context.Context, ref string) (string, error) {
	return requestWithRetry(ctx, c, readCommit, func(ctx context.Context) (string, error) {
		var commit struct {
			SHA string `json:"sha"`
		}
		path := c.repositoryPath("commits/" + url.PathEscape(ref))
		// One file of the commit's list: it cannot be left out, and a long one would exceed the bound.
		if _, err := c.getDocument(ctx, path, url.Values{"per_page": {"1"}}, &commit); err != nil {
			return "", err
		}
		if !fullSHA(commit.SHA) {
			return "", malformedError("requested the commit of %q, got %q", ref, commit.SHA)
		}
		return commit.SHA, nil
	})
}

// File returns the bytes of the file at path in a commit. Of a file with more than 8 MiB, the error is of
// Kind TooLarge; a directory is Malformed.
func (c *Client) File(ctx context.Context, commit, path string) ([]byte, error) {
	return requestWithRetry(ctx, c, readFile, func(ctx context.Context) ([]byte, error) {
		place := c.repositoryPath("contents/"+(&url.URL{Path: path}).EscapedPath()) + "?ref=" + url.QueryEscape(commit)
		req, err := c.gh.NewRequest(http.MethodGet, place, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", rawFile)
		var data bytes.Buffer
		if _, err := c.gh.Do(ctx, req, &data); err != nil {
			if e := asError(err); e != nil && e.long {
				return nil, &Error{Kind: TooLarge, Status: e.Status, Message: "the file has more than 8 MiB"}
			}
			return nil, err
		}
		return data.Bytes(), nil
	})
}

// wantsFile reports whether the response to req is a file's bytes.
func wantsFile(req *http.Request) bool { return req.Header.Get("Accept") == rawFile }

// checkFile returns what is wrong with a successful response to such a request: GitHub lists a directory
// as JSON.
func checkFile(resp *http.Response) error {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/vnd.github") ||
		!strings.Contains(resp.Header.Get("Content-Type"), "raw") {
		return &Error{Kind: Malformed, Status: resp.StatusCode, Message: "not a file"}
	}
	return nil
}
