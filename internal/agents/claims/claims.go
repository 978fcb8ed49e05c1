// SPDX-License-Identifier: Apache-2.0

// Package claims is the client of fumehood-claims, which claims pods of Kubernetes and releases them:
// JSON over HTTP at a unix socket of this user.
package claims

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/peer"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 64 << 10

// A Request asks for a pod. Both fields are required.
type Request struct {
	Tenant   string        `json:"tenant"`   // namespace
	Lifetime time.Duration `json:"lifetime"` // after which Kubernetes removes the pod
}

// A Claim is a claimed pod.
type Claim struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Address   string `json:"address"` // of the pod
	Node      string `json:"node"`    // its name
}

// A Client asks the fumehood-claims at a socket. New returns one. Its errors are
// *proposal.StopErrors: those of fumehood-claims, and claims.socket.
type Client struct {
	ctx    context.Context // of what goes on after a call
	socket string
	holder string
	http   http.Client
}

// New returns a Client whose claims are held until ctx ends: if this process is gone for a minute,
// they are released.
func New(ctx context.Context, socket string) *Client {
	c := &Client{ctx: ctx, socket: socket, holder: strings.ToLower(rand.Text())}
	c.http.Transport = &http.Transport{DisableKeepAlives: true, DialContext: c.dial}
	go c.holdConnection(ctx)
	return c
}

// retry is the time between two connections that hold claims.
const retry = time.Second

// holdConnection keeps a connection.
func (c *Client) holdConnection(ctx context.Context) {
	for ctx.Err() == nil {
		if answer, err := c.send(ctx, http.MethodGet, "/holders/"+c.holder, nil); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// startTime is how long a claim waits for a fumehood-claims that starts.
const startTime = 5 * time.Second

// Claim returns a pod that is ready, and that no other Claim has. If ctx ends before, there is none.
// After an error, whatever fumehood-claims may have made for it is released, also if it restarts.
func (c *Client) Claim(ctx context.Context, r Request) (claim Claim, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return claim, err
	}
	for end := time.Now().Add(startTime); ; {
		claim, err = c.requestPod(ctx, r.Tenant, body)
		if err == nil || !isStarting(err) || time.Now().After(end) || ctx.Err() != nil {
			return claim, err
		}
		time.Sleep(retry / 10)
	}
}

// requestPod requests a pod once.
func (c *Client) requestPod(ctx context.Context, tenant string, body []byte) (claim Claim, err error) {
	path := "/holders/" + c.holder + "/claims/" + strings.ToLower(rand.Text())
	err = c.call(ctx, http.MethodPut, path, body, &claim)
	if _, bad := netip.ParseAddr(claim.Address); err == nil &&
		(bad != nil || claim.Node == "" || claim.Namespace != tenant) {
		err = c.socketError(errors.New("its answer names no pod"))
	}
	if err != nil {
		if !errors.Is(err, errNotSent) {
			go c.deleteUntilDone(path)
		}
		return Claim{}, err
	}
	return claim, nil
}

// deleteUntilDone deletes what path names. It goes on until that has succeeded: fumehood-claims forgets what
// it has to do if it is killed.
func (c *Client) deleteUntilDone(path string) {
	for c.call(c.ctx, http.MethodDelete, path, nil, nil) != nil {
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(retry):
		}
	}
}

// isStarting reports whether an error can be that of a fumehood-claims that starts: it does not answer,
// or does not know yet that this process is there.
func isStarting(err error) bool {
	code := proposal.FailureOf(err).Code
	return code == "claims.socket" || code == "claims.holder"
}

// Release gives a pod back, and returns when it is no longer claimed. After an error it goes on until
// that has succeeded. It may be called again.
func (c *Client) Release(ctx context.Context, claim Claim) error {
	path := "/claims/" + url.PathEscape(claim.Namespace) + "/" + url.PathEscape(claim.Name)
	err := c.call(ctx, http.MethodDelete, path, nil, nil)
	if err != nil {
		go c.deleteUntilDone(path)
	}
	return err
}

// send returns the answer to a request.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://claims"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return c.http.Do(r)
}

// call sends a request and decodes the answer into v, if it is not nil.
func (c *Client) call(ctx context.Context, method, path string, body []byte, v any) error {
	answer, err := c.send(ctx, method, path, body)
	if err != nil {
		return c.socketError(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return c.socketError(err)
	}
	if answer.StatusCode/100 != 2 {
		return c.answerError(data, answer.Status)
	}
	if v != nil {
		if err := json.Unmarshal(data, v); err != nil {
			return c.socketError(err)
		}
	}
	return nil
}

// errNotSent is in the errors of calls that fumehood-claims cannot know of.
var errNotSent = errors.New("cannot connect")

// dial connects to the socket, at whose other end must be this user.
func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	if err := peer.CheckSameUser(conn.(*net.UnixConn)); err != nil {
		return nil, errors.Join(errNotSent, err, conn.Close())
	}
	return conn, nil
}

// answerError returns the error of an answer.
func (c *Client) answerError(data []byte, status string) error {
	var f proposal.Failure
	if err := json.Unmarshal(data, &f); err != nil || f.Code == "" {
		return c.socketError(errors.New(status))
	}
	return &proposal.StopError{Code: f.Code, Message: f.Message, Hint: f.Hint}
}

func (c *Client) socketError(err error) error {
	return &proposal.StopError{Code: "claims.socket",
		Message: fmt.Sprintf("fumehood-claims does not answer at %s", c.socket),
		Hint:    "start it beside this server, as the same user", Err: err}
}

// SameUser returns l, a listener at a unix socket, without connections of other users.
func SameUser(l net.Listener) net.Listener { return peer.Listener{UnixListener: l.(*net.UnixListener)} }
