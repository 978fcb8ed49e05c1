// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/kit/retry"
)

// parseErrorResponse turns a response with a status of 400 or more into an *Error.
func parseErrorResponse(resp *http.Response, body []byte) *Error {
	said := joinErrorMessages(body)
	e := &Error{Status: resp.StatusCode, Message: makePrintable(said)}
	lower := strings.ToLower(said)
	switch status := resp.StatusCode; {
	case isRateLimited(resp, lower):
		e.Kind = RateLimited
	case status == http.StatusUnauthorized:
		e.Kind = Unauthorized
	case status == http.StatusForbidden && strings.Contains(lower, "locked"):
		e.Kind = Locked
	case status == http.StatusForbidden, status == http.StatusUnavailableForLegalReasons:
		e.Kind = Forbidden
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Kind = NotFound
	case status >= 500, status == http.StatusRequestTimeout:
		e.Kind = Unavailable
	default:
		e.Kind = Invalid
	}
	e.wait = serverWait(resp.Header, e.Kind)
	return e
}

// joinErrorMessages joins the messages of an error's body.
func joinErrorMessages(body []byte) string {
	var said struct {
		Message string            `json:"message"`
		Errors  []json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	parts := []string{said.Message}
	for _, raw := range said.Errors[:min(len(said.Errors), 5)] {
		parts = append(parts, parseErrorDetail(raw))
	}
	return strings.TrimSuffix(strings.Join(parts, "; "), "; ")
}

// parseErrorDetail reads one element of "errors", which is a string or an object.
func parseErrorDetail(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var object struct{ Resource, Field, Code, Message string }
	if json.Unmarshal(raw, &object) != nil {
		return ""
	}
	if object.Message != "" {
		return object.Message
	}
	return strings.TrimSpace(object.Resource + " " + object.Field + " " + object.Code)
}

// isRateLimited distinguishes a rate limit, primary or secondary, from a missing right.
// GitHub answers each of them with 403, sometimes 429, and with 422 if comments are
// created too fast.
func isRateLimited(resp *http.Response, lower string) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusUnprocessableEntity:
		return strings.Contains(lower, "submitted too quickly")
	case http.StatusForbidden:
	default:
		return false
	}
	if strings.Contains(lower, "rate limit") || resp.Header.Get("Retry-After") != "" {
		return true
	}
	// The last request before the limit may also be one that lacks the right.
	return resp.Header.Get("X-RateLimit-Remaining") == "0" && !strings.Contains(lower, "not accessible")
}

// serverWait returns how long the server asks to wait; 0 if it does not say.
func serverWait(h http.Header, kind Kind) time.Duration {
	now, err := http.ParseTime(h.Get("Date")) // GitHub counts by its own clock
	if err != nil {
		now = time.Now()
	}
	if v := h.Get("Retry-After"); v != "" {
		wait, _ := retry.ParseRetryAfter(v, now)
		return wait
	}
	if kind != RateLimited || h.Get("X-RateLimit-Remaining") != "0" {
		return 0
	}
	reset, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		return 0
	}
	return max(time.Unix(reset, 0).Sub(now)+time.Second, time.Second)
}

// incompleteResponse describes a request without a complete response.
func incompleteResponse(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	// A url.Error contains the whole URL, and an artifact's URL is itself a credential.
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	return &Error{Kind: Unavailable, Message: makePrintable(err.Error()), Err: err, unsent: isUnsent(err)}
}

// isUnsent reports whether err certainly occurred before anything was sent.
func isUnsent(err error) bool {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// asError converts an error of a go-github call to an *Error.
func asError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if _, ok := errors.AsType[*url.Error](err); ok || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return incompleteResponse(err)
	}
	// The response is complete and is JSON, so its shape is wrong.
	e := malformedError("%v", err)
	e.Err = err
	return e
}
