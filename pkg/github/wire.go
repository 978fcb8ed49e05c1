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
)

// The bounds of one answer.
const (
	maxBody      = 8 << 20
	maxHeader    = 1 << 20
	maxRedirects = 5
)

// A wire is the transport under go-github: it gives the token to the API's own host
// alone, reads answers whole and within bounds, answers from its cache what has not
// changed, and turns every answer that is no success into an *Error.
type wire struct {
	next  http.RoundTripper
	base  *url.URL
	token string
	cache *cache

	mu     sync.Mutex
	scopes string
}

// RoundTrip answers with a success whose whole body is in memory, a redirect, or an
// *Error.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.own(req.URL); err != nil {
		return nil, err
	}
	sent := req.Clone(req.Context())
	if w.token != "" {
		sent.Header.Set("Authorization", "Bearer "+w.token)
	}
	key := req.URL.String()
	old, cached := w.cache.get(key)
	if cached = cached && req.Method == http.MethodGet; cached {
		sent.Header.Set("If-None-Match", old.etag)
	}
	resp, err := w.next.RoundTrip(sent)
	if err != nil {
		return nil, broken(err)
	}
	defer resp.Body.Close()
	w.note(resp.Header)
	if cached && resp.StatusCode == http.StatusNotModified {
		return old.answer(req), nil
	}
	body, err := readAtMost(resp.Body, maxBody)
	if err != nil {
		return nil, unread(resp.StatusCode, err)
	}
	if err := check(req.Method, resp, body); err != nil {
		return nil, err
	}
	if req.Method == http.MethodGet && resp.StatusCode == http.StatusOK {
		w.cache.put(key, entry{resp.Header.Get("ETag"), resp.Header.Clone(), body})
	}
	return answer(req, resp, body), nil
}

// own refuses every place but the API's own scheme and host.
func (w *wire) own(u *url.URL) error {
	if u.Scheme == w.base.Scheme && strings.EqualFold(u.Host, w.base.Host) && u.User == nil {
		return nil
	}
	return &Error{Kind: Moved, Message: printable("to " + u.Scheme + "://" + u.Host), unsent: true}
}

// keepTo makes a redirect policy: few, of the same method, and only to where allow
// allows.
func keepTo(allow func(*url.URL) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return &Error{Kind: Moved, Message: "again and again"}
		}
		if req.Method != via[0].Method {
			return &Error{Kind: Moved, Message: printable("to " + req.URL.Path)}
		}
		return allow(req.URL)
	}
}

func (w *wire) note(h http.Header) {
	if scopes := h.Get("X-OAuth-Scopes"); scopes != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.scopes = printable(scopes)
	}
}

func (w *wire) lastScopes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scopes
}

// answer is resp as go-github is to see it. The rate limit's headers are left out:
// by them go-github would refuse requests on its own account.
func answer(req *http.Request, resp *http.Response, body []byte) *http.Response {
	seen := *resp
	seen.Header = resp.Header.Clone()
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"} {
		seen.Header.Del(name)
	}
	seen.Request = req
	seen.Body, seen.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return &seen
}

// check says what is wrong with an answer to method.
func check(method string, resp *http.Response, body []byte) error {
	switch status := resp.StatusCode; {
	case success(method, status):
		if status != http.StatusNoContent && (!json.Valid(body) || bytes.Equal(bytes.TrimSpace(body), []byte("null"))) {
			return &Error{Kind: Malformed, Status: status, Message: "not a JSON document"}
		}
		return nil
	case status >= 400:
		return refusal(resp, body)
	case status >= 300 && status != http.StatusNotModified && resp.Header.Get("Location") != "":
		return nil // for the redirect policy
	}
	return &Error{Kind: Malformed, Status: resp.StatusCode, Message: "an answer that was not asked for"}
}

// success says which answers are one. go-github takes any 2xx, and one without a
// body for an empty list.
func success(method string, status int) bool {
	switch method {
	case http.MethodGet:
		return status == http.StatusOK
	case http.MethodDelete:
		return status == http.StatusNoContent
	}
	return status == http.StatusOK || status == http.StatusCreated
}

func unread(status int, err error) *Error {
	if errors.Is(err, errTooLarge) {
		return &Error{Kind: Malformed, Status: status, Message: "the answer is longer than 8 MiB", long: true}
	}
	e := broken(err)
	e.Status = status
	return e
}
