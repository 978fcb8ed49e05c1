// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The bounds of one response.
const (
	maxBody      = 8 << 20
	maxHeader    = 1 << 20
	maxRedirects = 5
)

// An apiTransport is the transport under go-github. It sends the token only to the API's own
// host, reads responses whole and within bounds, serves unchanged responses from
// its cache, and turns every unsuccessful response into an *Error.
type apiTransport struct {
	next  http.RoundTripper
	base  *url.URL
	token string
	cache *cache

	now    func() time.Time
	mu     sync.Mutex
	clock  *time.Duration // how far GitHub's clock was ahead in the first response; nil before
	scopes string
}

// RoundTrip returns a successful response whose whole body is in memory, a
// redirect, or an *Error.
func (w *apiTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.requireOwnHost(req.URL); err != nil {
		return nil, err
	}
	sent := req.Clone(req.Context())
	if w.token != "" {
		sent.Header.Set("Authorization", "Bearer "+w.token)
	}
	key := req.Header.Get("Accept") + " " + req.URL.String() // one URL has a document and a diff
	old, cached := w.cache.get(key)
	if cached = cached && req.Method == http.MethodGet; cached {
		sent.Header.Set("If-None-Match", old.etag)
	}
	resp, err := w.next.RoundTrip(sent)
	if err != nil {
		return nil, incompleteResponse(err)
	}
	defer resp.Body.Close()
	w.noteHeaders(resp.Header)
	if cached && resp.StatusCode == http.StatusNotModified {
		return old.cachedResponse(req), nil
	}
	body, err := readAtMost(resp.Body, maxBody)
	if err != nil {
		return nil, unreadResponse(resp.StatusCode, err)
	}
	if err := checkResponse(req, resp, body); err != nil {
		return nil, err
	}
	if isGraphQL(req) && resp.StatusCode == http.StatusOK {
		if err := graphQLRefusal(resp, body); err != nil {
			return nil, err
		}
	}
	if req.Method == http.MethodGet && resp.StatusCode == http.StatusOK {
		w.cache.put(key, entry{resp.Header.Get("ETag"), resp.Header.Clone(), body})
	}
	return stripRateLimit(req, resp, body), nil
}

// requireOwnHost refuses every URL outside the API's own scheme and host.
func (w *apiTransport) requireOwnHost(u *url.URL) error {
	if u.Scheme == w.base.Scheme && strings.EqualFold(u.Host, w.base.Host) && u.User == nil {
		return nil
	}
	return &Error{Kind: Moved, Message: makePrintable("to " + u.Scheme + "://" + u.Host), unsent: true}
}

// keepTo returns a redirect policy: few redirects, of the same method, and only to
// URLs that allow accepts.
func keepTo(allow func(*url.URL) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return &Error{Kind: Moved, Message: "too many redirects"}
		}
		if req.Method != via[0].Method {
			return &Error{Kind: Moved, Message: makePrintable("to " + req.URL.Path)}
		}
		return allow(req.URL)
	}
}

func (w *apiTransport) noteHeaders(h http.Header) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if scopes := h.Get("X-OAuth-Scopes"); scopes != "" {
		w.scopes = makePrintable(scopes)
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil && w.clock == nil {
		ahead := date.Sub(w.now())
		w.clock = &ahead
	}
}

func (w *apiTransport) clockOffset() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clock == nil {
		return 0
	}
	return *w.clock
}

func (w *apiTransport) lastScopes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scopes
}

// stripRateLimit returns resp as go-github will see it, without the rate limit's headers:
// because of them, go-github would refuse requests by itself.
func stripRateLimit(req *http.Request, resp *http.Response, body []byte) *http.Response {
	seen := *resp
	seen.Header = resp.Header.Clone()
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"} {
		seen.Header.Del(name)
	}
	seen.Request = req
	seen.Body, seen.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return &seen
}

// checkResponse returns what is wrong with a response to req.
func checkResponse(req *http.Request, resp *http.Response, body []byte) error {
	switch status := resp.StatusCode; {
	case isSuccess(req.Method, status) && wantsDiff(req):
		return checkDiff(resp)
	case isSuccess(req.Method, status) && wantsFile(req):
		return checkFile(resp)
	case isSuccess(req.Method, status):
		if status != http.StatusNoContent && (!json.Valid(body) || bytes.Equal(bytes.TrimSpace(body), []byte("null"))) {
			return &Error{Kind: Malformed, Status: status, Message: "not a JSON document"}
		}
		return nil
	case status >= 400:
		return parseErrorResponse(resp, body)
	case status >= 300 && status != http.StatusNotModified && resp.Header.Get("Location") != "":
		return nil // left to the redirect policy
	}
	return &Error{Kind: Malformed, Status: resp.StatusCode, Message: "unexpected status"}
}

// isSuccess reports whether status is a success. go-github accepts any 2xx, and
// treats a response without a body as an empty list.
func isSuccess(method string, status int) bool {
	switch method {
	case http.MethodGet:
		return status == http.StatusOK
	case http.MethodDelete:
		return status == http.StatusNoContent
	}
	return status == http.StatusOK || status == http.StatusCreated
}

func unreadResponse(status int, err error) *Error {
	if errors.Is(err, errTooLarge) {
		return &Error{Kind: Malformed, Status: status, Message: "the response is larger than 8 MiB", long: true}
	}
	e := incompleteResponse(err)
	e.Status = status
	return e
}
