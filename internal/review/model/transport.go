// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/retry"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	maxHeader = 64 << 10         // bytes of a response's header, and of an error's body
	maxDetail = 200              // characters of a provider's text in an error
	maxCall   = 10 * time.Minute // of one request
)

// A format is the wire format of a provider's interface.
type format interface {
	// headers returns what the interface requires besides the type of the body.
	headers(key string) map[string]string
	// encode returns where a request is sent, below the provider's address, and its body. The
	// path is "" if the name of the model is not one.
	encode(Request) (path string, body any)
	// decode reads a response. Its error contains nothing that is shown.
	decode([]byte) (Answer, error)
}

// A httpProvider is a Provider that is reached by HTTP.
type httpProvider struct {
	format
	key    string
	base   *url.URL
	client *http.Client
}

// newService returns the service at base. It follows no redirect: a redirect would take the key
// to another host.
func newService(f format, key string, base *url.URL) *httpProvider {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = maxHeader
	return &httpProvider{f, key, base, &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Ask implements Provider.
func (s *httpProvider) Ask(ctx context.Context, r Request) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	request, err := s.newRequest(ctx, r)
	if err != nil {
		return a, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return a, &Error{Again: true, Spent: !isUndialed(err),
			Message: "cannot reach the provider: " + s.redactKey(innermostCause(err))}
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return a, s.responseError(response)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	if len(data) > MaxAnswer {
		return a, &Error{Status: response.StatusCode, Spent: true,
			Message: fmt.Sprintf("the answer is larger than %d bytes", MaxAnswer)}
	}
	if err == nil {
		a, err = s.decode(data)
	}
	if err != nil {
		return Answer{}, &Error{Status: response.StatusCode, Again: true, Spent: true,
			Message: "the answer ended early, or is not what the provider's interface describes"}
	}
	return a, nil
}

// newRequest encodes r. Its error is an *Error: nothing was sent.
func (s *httpProvider) newRequest(ctx context.Context, r Request) (*http.Request, error) {
	path, body := s.encode(r)
	if path == "" {
		return nil, &Error{Message: "invalid name of a model: " + text.Inline(r.Model, maxDetail)}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, &Error{Message: "cannot encode the request: " + innermostCause(err)}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base.JoinPath(path).String(),
		bytes.NewReader(data))
	if err != nil {
		return nil, &Error{Message: "cannot make the request: " + innermostCause(err)}
	}
	for name, value := range s.headers(s.key) {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "fumehood")
	return request, nil
}

// redactKey removes the key from what an error shows.
func (s *httpProvider) redactKey(message string) string {
	return text.Inline(strings.ReplaceAll(message, s.key, "[key]"), maxDetail)
}

// responseError returns what a response without an answer means.
func (s *httpProvider) responseError(response *http.Response) *Error {
	e := &Error{Status: response.StatusCode}
	e.After, _ = retry.ParseRetryAfter(response.Header.Get("Retry-After"), time.Now())
	e.Message = fmt.Sprintf("the provider answered %d %s", e.Status, cmp.Or(http.StatusText(e.Status), "(overloaded)"))
	detail := s.redactKey(readDetail(response.Body))
	if detail != "" {
		e.Message += ": " + detail
	}
	switch {
	case isTooLong(e.Status, detail):
		e.TooLong = true
	case e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout || e.Status >= 500:
		e.Again = true
	}
	return e
}

// readDetail returns the code and the message of an error's body, which is the same in all formats.
func readDetail(body io.Reader) string {
	data, _ := io.ReadAll(io.LimitReader(body, maxHeader))
	var e struct {
		Error struct{ Message, Code any }
	}
	if json.Unmarshal(data, &e) != nil {
		return ""
	}
	message, _ := e.Error.Message.(string)
	if code, ok := e.Error.Code.(string); ok {
		message = code + " " + message
	}
	return message
}

func isTooLong(status int, detail string) bool {
	if status == http.StatusRequestEntityTooLarge {
		return true
	}
	for _, words := range []string{"context_length_exceeded", "prompt is too long", "maximum context length",
		"exceeds the maximum number of tokens"} {
		if status == http.StatusBadRequest && strings.Contains(detail, words) {
			return true
		}
	}
	return false
}

// isUndialed reports whether no connection was made, so that nothing was sent.
func isUndialed(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// innermostCause returns the innermost reason, without the address, which may contain credentials.
func innermostCause(err error) string {
	var outer *url.Error
	for errors.As(err, &outer) {
		err = outer.Err
	}
	return text.Inline(err.Error(), maxDetail)
}

// parseURL refuses an address that would show the key to others: only https, and http to this
// machine.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" &&
		(u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())) {
		return u, nil
	}
	return nil, &proposal.StopError{Code: "model.address", Message: "unsupported address of a provider",
		Hint: "use an https address without user and query; http only for a loopback address"}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
