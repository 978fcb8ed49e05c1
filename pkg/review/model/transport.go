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

	"github.com/fumehood/fumehood/pkg/internal/retry"
	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	maxHeader = 64 << 10         // bytes of a response's header
	maxDetail = 200              // characters of a provider's text in an error
	maxCall   = 10 * time.Minute // of one request
)

// errTooLarge is what a body of more than MaxAnswer bytes ends with.
var errTooLarge = errors.New("the answer is too large")

// A call is what HTTP showed about one request. The SDKs' errors differ and contain the
// answer's text; so errors are made from this alone.
type call struct {
	status   int
	after    time.Duration
	detail   string // of an error
	tooLarge bool
}

type callKey struct{}

// do calls f, which sends one request, and returns its error as an *Error. key is removed
// from it.
func do(ctx context.Context, key string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	var c call
	err := f(context.WithValue(ctx, callKey{}, &c))
	if err == nil && c.status < 300 {
		return nil // some SDKs take a redirect for an answer
	}
	e := c.failure(err)
	if key != "" {
		e.Message = strings.ReplaceAll(e.Message, key, "[key]")
	}
	return e
}

// failure says what the failure of a request means.
func (c *call) failure(err error) *Error {
	e := &Error{Status: c.status, After: c.after, Message: c.words()}
	switch {
	case c.tooLarge:
		return &Error{Status: c.status, Spent: true, Message: fmt.Sprintf("the answer is larger than %d bytes", MaxAnswer)}
	case c.status == 0:
		e.Again, e.Spent, e.Message = true, !undialed(err), "cannot reach the provider: "+cause(err)
	case c.status < 300:
		e.Again, e.Spent, e.Message = true, true, "the answer ended early, or is not what the provider's interface describes"
	case c.tooLong():
		e.TooLong = true
	case c.status == http.StatusTooManyRequests || c.status == http.StatusRequestTimeout || c.status >= 500:
		e.Again = true
	}
	return e
}

func (c *call) words() string {
	words := fmt.Sprintf("the provider answered %d %s", c.status, cmp.Or(http.StatusText(c.status), "(overloaded)"))
	if c.detail != "" {
		words += ": " + c.detail
	}
	return words
}

func (c *call) tooLong() bool {
	if c.status == http.StatusRequestEntityTooLarge {
		return true
	}
	for _, words := range []string{"context_length_exceeded", "prompt is too long", "maximum context length", "exceeds the maximum number of tokens"} {
		if c.status == http.StatusBadRequest && strings.Contains(c.detail, words) {
			return true
		}
	}
	return false
}

// undialed reports whether no connection was made, so that nothing was sent.
func undialed(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// cause returns the innermost reason, without the address, which may contain credentials.
func cause(err error) string {
	var outer *url.Error
	for errors.As(err, &outer) {
		err = outer.Err
	}
	return text.Inline(err.Error(), maxDetail)
}

// A transport bounds what is read, and notes what the call of the request's context needs.
type transport struct{ inner http.RoundTripper }

// newClient returns a client for one provider. It follows no redirect: a redirect would take
// the key to another host.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = maxHeader
	return &http.Client{
		Transport:     transport{t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	c, ok := r.Context().Value(callKey{}).(*call)
	if !ok {
		return nil, errors.New("a request outside of a call")
	}
	if c.status != 0 {
		return nil, errors.New("a second request for one question")
	}
	resp, err := t.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	c.status = resp.StatusCode
	c.after, _ = retry.After(resp.Header.Get("Retry-After"), time.Now())
	resp.Body = &bounded{ReadCloser: resp.Body, left: MaxAnswer, call: c}
	if resp.StatusCode >= 300 {
		c.keep(resp)
	}
	return resp, nil
}

// keep reads the body of an error, and notes what it says.
func (c *call) keep(resp *http.Response) {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxHeader))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(data))
	var body struct {
		Error struct{ Message, Code any }
	}
	if json.Unmarshal(data, &body) != nil {
		return
	}
	message, _ := body.Error.Message.(string)
	if code, ok := body.Error.Code.(string); ok {
		message = code + " " + message
	}
	c.detail = text.Inline(message, maxDetail)
}

// A bounded body fails after left bytes.
type bounded struct {
	io.ReadCloser
	left int
	call *call
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		b.call.tooLarge = true
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// checkURL refuses an address that would show the key to others: only https, and http to this
// machine.
func checkURL(address string) error {
	u, err := url.Parse(address)
	if err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && (u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())) {
		return nil
	}
	return &proposal.StopError{Code: "model.address", Message: "unsupported address of a provider", Hint: "use an https address without user and query; http only for a loopback address"}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
