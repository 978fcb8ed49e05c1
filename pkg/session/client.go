// SPDX-License-Identifier: Apache-2.0

//go:build linux

package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/internal/peer"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/session/internal/wire"
)

// A Client uses the session of a name. Its errors are *proposal.StopErrors.
type Client struct {
	name, path string
	http       http.Client
}

// Connect returns a client of the session name, which lives.
func Connect(ctx context.Context, name string) (*Client, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	dir, err := directory()
	if err != nil {
		return nil, err
	}
	c := &Client{name: name, path: filepath.Join(dir, name)}
	c.http.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, c.path) }}
	conn, err := dial(ctx, c.path)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return c, conn.Close()
}

// unreachable says why nothing answers, and removes what a killed session left.
func (c *Client) unreachable(err error) error {
	if errors.Is(err, peer.ErrOtherUser) {
		return stop("session.user", fmt.Sprintf("the process that serves the session %q belongs to another user", c.name), "remove "+c.path)
	}
	info, dead := bury(c.path)
	switch {
	case !dead:
		return &proposal.StopError{Code: "session.busy", Message: fmt.Sprintf("the session %q does not answer", c.name), Hint: "wait: it starts or ends", Err: err}
	case info.Killed:
		return &killed{info}
	}
	return stop("session.unknown", fmt.Sprintf("there is no session %q", c.name), "see: fumehood session list. A session that is idle or open for too long ends")
}

// killed is the error about a session whose process was killed.
type killed struct{ info Info }

func (k *killed) Error() string { return k.Unwrap().Error() }

func (k *killed) Unwrap() error {
	return stop("session.killed", fmt.Sprintf("the process of the session %q was killed; its log is cut off: %s", k.info.Name, k.info.Log), "start another: fumehood session start --name "+k.info.Name)
}

// call sends a request and decodes its answer into v.
func (c *Client) call(ctx context.Context, method, path string, body io.Reader, v any) error {
	r, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		return c.broken(err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://session"+path, body)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, c.broken(err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	var e wire.Event
	if err := json.NewDecoder(answer.Body).Decode(&e); err != nil || e.Error == nil {
		return nil, c.broken(errors.New(answer.Status))
	}
	return nil, stop(e.Error.Code, e.Error.Message, e.Error.Hint)
}

func (c *Client) broken(err error) error {
	return &proposal.StopError{Code: "session.ended", Message: fmt.Sprintf("the session %q ended during the request", c.name), Hint: "see: fumehood session list", Err: err}
}

// Info describes the session.
func (c *Client) Info(ctx context.Context) (info Info, err error) {
	return info, c.call(ctx, http.MethodGet, "/session", nil, &info)
}

// Do is gate.Session.Do. The session gives p its ID; code without a Context has "main". each
// is called with the output as it comes, and note with what the caller should know, such as
// set-up that failed. If ctx ends, the command is interrupted, and the Record says so.
func (c *Client) Do(ctx context.Context, p proposal.Proposal, each func(proposal.Chunk), note func(string)) (proposal.Record, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return proposal.Record{}, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r, err := c.send(running, http.MethodPost, "/proposals", bytes.NewReader(data))
	if err != nil {
		return proposal.Record{}, err
	}
	defer r.Body.Close()
	var id string
	read := bufio.NewReader(r.Body)
	for d := json.NewDecoder(read); ; {
		var e wire.Event
		if err := d.Decode(&e); err != nil {
			return proposal.Record{}, errors.Join(hood.Interruption(ctx), c.broken(err))
		}
		switch {
		case e.ID != "" && id == "":
			id = e.ID
			defer context.AfterFunc(ctx, func() { c.interrupt(running, id, cancel) })()
		case e.Error != nil:
			return proposal.Record{}, stop(e.Error.Code, e.Error.Message, e.Error.Hint)
		case e.Record != nil:
			return *e.Record, nil
		case e.Output != nil:
			each(*e.Output)
		case e.Note != "":
			note(e.Note)
		}
	}
}

// interrupt ends the command id, and gives up the request if that does not help.
func (c *Client) interrupt(ctx context.Context, id string, giveUp func()) {
	time.AfterFunc(30*time.Second, giveUp)
	var done struct{}
	_ = c.call(ctx, http.MethodPost, "/proposals/"+url.PathEscape(id)+"/interrupt", nil, &done)
}

func query(path, key string, values ...string) string {
	return path + "?" + url.Values{key: values}.Encode()
}

// List is gate.Session.List.
func (c *Client) List(ctx context.Context, pattern string) (found proposal.Changes, err error) {
	return found, c.call(ctx, http.MethodGet, query("/files", "pattern", pattern), nil, &found)
}

// Take is gate.Session.Take. Output.File is the path of the copy.
func (c *Client) Take(ctx context.Context, path string) (out proposal.Output, err error) {
	return out, c.call(ctx, http.MethodGet, query("/file", "path", path), nil, &out)
}

// Put is gate.Session.Put, for at most 32 MiB.
func (c *Client) Put(ctx context.Context, path string, data io.Reader) (out proposal.Output, err error) {
	return out, c.call(ctx, http.MethodPut, query("/file", "path", path), data, &out)
}

// Diff is gate.Session.Diff.
func (c *Client) Diff(ctx context.Context, paths []string) (d proposal.Diff, err error) {
	return d, c.call(ctx, http.MethodGet, query("/diff", "path", paths...), nil, &d)
}

// End ends the session. When it returns, another can have the name.
func (c *Client) End(ctx context.Context) (ended Ended, err error) {
	if err = c.call(ctx, http.MethodPost, "/end", nil, &ended); err == nil {
		gone(c.path)
	}
	return ended, err
}

// List returns all sessions of this user, sorted by name. It removes what killed ones left,
// and reports each of them once.
func List(ctx context.Context) ([]Info, error) {
	dir, err := directory()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	list := []Info{}
	for _, e := range entries {
		if info, known := describe(ctx, filepath.Join(dir, e.Name())); known && validName.MatchString(e.Name()) {
			list = append(list, info)
		}
	}
	return list, err
}

// describe reports false for a session that starts or ends.
func describe(ctx context.Context, path string) (info Info, known bool) {
	c, err := Connect(ctx, filepath.Base(path))
	if err == nil {
		info, err = c.Info(ctx)
		return info, err == nil
	}
	var k *killed
	if errors.As(err, &k) {
		return k.info, true
	}
	return info, false
}
