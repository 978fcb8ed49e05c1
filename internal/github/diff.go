// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"net/http"
	"strings"

	gh "github.com/google/go-github/v62/github"
)

// Diff returns the diff of a pull request as git prints it, for its current head: compare the head
// before and after. It is untrusted. If it has more than 8 MiB, or GitHub does not generate it
// because it has too many lines or files, the error is of Kind TooLarge.
func (c *Client) Diff(ctx context.Context, number int) ([]byte, error) {
	return requestWithRetry(ctx, c, readDiff, func(ctx context.Context) ([]byte, error) {
		text, _, err := c.gh.PullRequests.GetRaw(ctx, c.owner, c.name, number, gh.RawOptions{Type: gh.Diff})
		if e, ok := errors.AsType[*Error](err); ok && (e.long || e.Status == http.StatusNotAcceptable) {
			return nil, &Error{Kind: TooLarge, Status: e.Status, Message: e.Message}
		}
		return []byte(text), err
	})
}

// wantsDiff reports whether the response to req is not JSON.
func wantsDiff(req *http.Request) bool { return strings.HasSuffix(req.Header.Get("Accept"), ".diff") }

// checkDiff returns what is wrong with a successful response to such a request.
func checkDiff(resp *http.Response) error {
	if !strings.Contains(resp.Header.Get("Content-Type"), ".diff") {
		return &Error{Kind: Malformed, Status: resp.StatusCode, Message: "not a diff"}
	}
	return nil
}
