// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ClientOptions configure a Client. Address, TLS and Logs are required.
type ClientOptions struct {
	// Address is the server's, host:port.
	Address string
	// TLS must have a client certificate, RootCAs and the ServerName. It must verify the
	// server: InsecureSkipVerify is refused. TLS 1.3 is the minimum, whatever it says.
	TLS *tls.Config
	// Logs is the directory where Session.Close puts the log, as ID.jsonl. It must exist.
	Logs string
	// Artifacts is the directory for files that answers name: patches, and the whole of
	// output that a Record has cut. It must exist. If empty, no answer names a file.
	Artifacts string
}

// A Client is a gate on another machine. New returns one. Its methods are safe for concurrent
// use. Its errors are *proposal.StopErrors, or the error of a context that has ended. The
// server's own keep their codes; in addition there are
//
//   - session.lost: the connection ended, or nothing answers,
//   - session.answer: the server answered what this version does not accept.
type Client struct {
	o      ClientOptions
	url    string
	http   *http.Client
	bounds answerLimits
	lost   func(error) error // the error of a connection
	local  bool              // the server is a process of this user on this machine: its files are ours

	mu      sync.Mutex
	closed  bool
	session *Session
}

// answerLimits are the maxima of what a server may send.
type answerLimits struct {
	line      int           // bytes of an event
	document  int64         // bytes of a JSON document that is not a report
	report    int           // bytes
	values    int           // JSON values of a document or an event
	output    int64         // bytes of all events of one command
	log       int64         // bytes
	silence   time.Duration // between two signs of life
	retry     time.Duration // the first pause before another try to reach the server
	patience  time.Duration // until a command that is interrupted is given up
	lastCalls time.Duration // until a receiver of output that does not return is given up
}

var defaultBounds = answerLimits{line: 64 << 20, document: 32 << 20, report: 64 << 20, values: 2 << 20, output: 1 << 30,
	log:     1 << 30,
	silence: 3 * heartbeat, retry: time.Second, patience: 30 * time.Second, lastCalls: 10 * time.Second}

// forever is the time of a client that waits: a pager, or one that its user's shell has stopped.
const forever = math.MaxInt64

// localBounds returns those of what a process of the same user sends, which the kernel says is alive.
func localBounds() answerLimits {
	b := defaultBounds
	b.output, b.silence, b.lastCalls = math.MaxInt64, forever, forever
	return b
}

// Time limits of connections.
const (
	dialTime    = 10 * time.Second
	clientIdle  = 30 * time.Second // below the server's
	maxFailure  = 64 << 10         // bytes of an error
	maxArtifact = 128 << 20        // bytes
	maxName     = 16 << 10         // bytes of a path or a pattern
)

// New returns a Client, which connects when it is used. The error has the code remote.options.
func New(o ClientOptions) (*Client, error) {
	if err := o.checkOptions(); err != nil {
		return nil, err
	}
	config := o.TLS.Clone()
	config.MinVersion, config.NextProtos = max(config.MinVersion, tls.VersionTLS13), []string{"http/1.1"}
	transport := &http.Transport{
		DialContext:     (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSClientConfig: config, TLSHandshakeTimeout: dialTime, IdleConnTimeout: clientIdle,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true, MaxIdleConnsPerHost: 8,
	}
	return &Client{o: o, url: "https://" + o.Address, http: newHTTP(transport), bounds: defaultBounds, lost: lostError},
		nil
}

func newHTTP(t *http.Transport) *http.Client {
	return &http.Client{Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (o ClientOptions) checkOptions() error {
	_, _, err := net.SplitHostPort(o.Address)
	why := ""
	switch c := o.TLS; {
	case err != nil:
		why = "Address is not of the form HOST:PORT"
	case c == nil || len(c.Certificates) == 0 && c.GetClientCertificate == nil:
		why = "TLS has no client certificate"
	case c.RootCAs == nil:
		why = "TLS.RootCAs is nil, which means every authority that this host trusts"
	case c.ServerName == "" || c.InsecureSkipVerify:
		why = "TLS does not verify the server: set ServerName, and not InsecureSkipVerify"
	case c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS13:
		why = "TLS.MaxVersion is below TLS 1.3"
	case o.Logs == "":
		why = "Logs is empty"
	default:
		return nil
	}
	return invalidOptions(why)
}

var validID = pattern.New(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{12}$`)

// Open is gate.Gate.Open. A server has one session, ever: another is refused with session.taken.
// If ctx ends, the session is closed. It is also closed when it is open for longer than
// o.Lifetime. Close must be called: it fetches the log.
func (c *Client) Open(ctx context.Context, o gate.SessionOptions) (gate.Session, error) {
	if o.Idle < 0 || o.Lifetime < 0 || o.Paused < 0 {
		return nil, refuseRequest("a duration of the session is negative", "leave it out, or make it positive")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	var answer openAnswer
	if err := c.callServer(ctx, request{method: http.MethodPost, path: "/session", document: openingOf(o)},
		&answer); err != nil {
		return nil, err
	}
	if !validID.MatchString(answer.ID) || len(answer.Token) > 256 {
		return nil, invalidAnswer(errors.New("the session has an invalid id"))
	}
	c.session = &Session{client: c, id: answer.ID, token: answer.Token, artifacts: c.o.Artifacts}
	c.session.logFile = filepath.Join(c.o.Logs, answer.ID+".jsonl")
	c.session.startFollowing(ctx)
	return c.session, nil
}

// AttachOptions configure Attach. Dial and Lost are required.
type AttachOptions struct {
	// Dial connects to ServeLocal. It must check that the other end is a process of this user.
	Dial func(ctx context.Context) (net.Conn, error)
	// Lost returns the error for a connection that ended, or that nothing answers.
	Lost func(error) error
	// Description, if it is not nil, is a pointer to where LocalOptions.Describe's answer is put.
	Description any
}

// Attach returns the session that a process on this machine serves with ServeLocal. Other clients may
// use it, too. Detach must be called, or Close, which ends the session for all of them.
func Attach(ctx context.Context, o AttachOptions) (*Session, error) {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return o.Dial(ctx) }}
	c := &Client{url: "http://session", http: newHTTP(transport), bounds: localBounds(), local: true,
		lost: func(err error) error { return o.Lost(connectionError{err}) }}
	var answer attachAnswer
	if err := c.callServer(ctx, request{method: http.MethodGet, path: "/session"}, &answer); err != nil {
		return nil, err
	}
	if !validID.MatchString(answer.ID) {
		return nil, invalidAnswer(errors.New("the session has an invalid id"))
	}
	if o.Description != nil {
		if err := decodeBounded(answer.Description, c.bounds.values, o.Description); err != nil {
			return nil, err
		}
	}
	s := &Session{client: c, id: answer.ID, logFile: answer.Log, artifacts: answer.Artifacts}
	s.startFollowing(context.WithoutCancel(ctx))
	return s, nil
}

var errClosed = &proposal.StopError{Code: "session.closed", Message: "the session is closed",
	Hint: "open another session"}

// Close closes the session, if Session.Close was not called, and refuses later calls of Open.
func (c *Client) Close() error {
	c.mu.Lock()
	session := c.session
	c.session, c.closed = nil, true
	c.mu.Unlock()
	var err error
	if session != nil && !session.closing.Load() {
		_, err = session.Close()
	}
	c.http.CloseIdleConnections()
	return err
}

// A request to the server. document is nil, or what is sent as JSON; data is nil, or what is
// sent as it is.
type request struct {
	method, path, token string
	document            any
	data                []byte
}

func (r request) encodeBody() (io.Reader, error) {
	if r.document == nil {
		return bytes.NewReader(r.data), nil
	}
	data, err := json.Marshal(r.document)
	if err == nil && len(data) > MaxDocument {
		err = refuseRequest("the request has more than 1 MiB", "send less")
	}
	return bytes.NewReader(data), err
}

// sendRequest returns the server's answer, or its error.
func (c *Client) sendRequest(ctx context.Context, q request) (*http.Response, error) {
	body, err := q.encodeBody()
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.url+q.path, body)
	if err != nil {
		return nil, refuseRequest(err.Error(), "correct the request")
	}
	if q.token != "" {
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, c.lost(err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, answerError(answer)
}

var validCode = pattern.New(`^[a-z0-9-]+(\.[a-z0-9-]+)*$`)

// answerError returns the error that an answer has.
func answerError(answer *http.Response) error {
	var e event
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxFailure))
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err != nil || e.Error == nil {
		return invalidAnswer(errors.New(answer.Status))
	}
	return toStopError(e.Error)
}

// toStopError returns the server's error.
func toStopError(f *proposal.Failure) error {
	if len(f.Code) > 64 || !validCode.MatchString(f.Code) {
		return invalidAnswer(errors.New("an error has no code"))
	}
	return &proposal.StopError{Code: f.Code, Message: f.Message, Hint: f.Hint}
}

// A connectionError is why a server's answer did not come.
type connectionError struct{ error }

func (e connectionError) Unwrap() error { return e.error }

// lostError is Client.lost for a server on another machine.
func lostError(err error) error {
	return &proposal.StopError{Code: "session.lost", Message: "the connection to the session is lost",
		Hint: "open another session; the log of this one is on the machine that ran it", Err: connectionError{err}}
}

func invalidAnswer(err error) error {
	return &proposal.StopError{Code: "session.answer", Message: "the server's answer is invalid",
		Hint: "check that client and server have the same version of fumehood", Err: err}
}

// callServer sends a request and decodes its answer into v.
func (c *Client) callServer(ctx context.Context, q request, v any) error {
	answer, err := c.sendRequest(ctx, q)
	if err != nil {
		return causeOrError(ctx, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, c.bounds.document+1))
	if err != nil {
		return causeOrError(ctx, c.lost(err))
	}
	if int64(len(data)) > c.bounds.document {
		return invalidAnswer(errTooLong)
	}
	return decodeBounded(data, c.bounds.values, v)
}

// causeOrError returns why ctx has ended, if that is why there is an error, otherwise err.
func causeOrError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}
