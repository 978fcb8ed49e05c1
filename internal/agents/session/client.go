// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/internal/kit/peer"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Client uses the session of a name. Its errors are *proposal.StopErrors.
type Client struct {
	*remote.Session
	name, path string
	info       Info
}

// Connect returns a client of the session name, which lives. Detach or End must be called.
func Connect(ctx context.Context, name string) (*Client, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	dir, err := userSessionsDir()
	if err != nil {
		return nil, err
	}
	c := &Client{name: name, path: filepath.Join(dir, name)}
	conn, err := dialSession(ctx, c.path)
	if err != nil {
		return nil, c.unreachableError(err)
	}
	_ = conn.Close()
	c.Session, err = remote.Attach(ctx, remote.AttachOptions{Lost: c.endedError, Description: &c.info,
		Dial: func(ctx context.Context) (net.Conn, error) { return dialSession(ctx, c.path) }})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// unreachableError says why nothing answers, and removes what a killed session left.
func (c *Client) unreachableError(err error) error {
	if errors.Is(err, peer.ErrOtherUser) {
		return newStopError("session.user",
			fmt.Sprintf("the process that serves the session %q belongs to another user", c.name), "remove "+c.path)
	}
	info, dead := removeKilled(c.path)
	switch {
	case !dead:
		return &proposal.StopError{Code: "session.busy", Message: fmt.Sprintf("the session %q does not answer", c.name),
			Hint: "wait: it starts or ends", Err: err}
	case info.Killed:
		return &killed{info}
	}
	return newStopError("session.unknown", fmt.Sprintf("there is no session %q", c.name),
		hintSessions(filepath.Dir(c.path)))
}

// hintSessions names the sessions in dir.
func hintSessions(dir string) string {
	var names []string
	entries, _ := os.ReadDir(dir) // without them there is none
	for _, e := range entries {
		if validName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return "start one: fumehood session start. A session that is idle or open for too long ends"
	}
	return "use one of: " + strings.Join(names, ", ")
}

// killed is the error about a session whose process was killed.
type killed struct{ info Info }

func (k *killed) Error() string { return k.Unwrap().Error() }

func (k *killed) Unwrap() error {
	return newStopError("session.killed",
		fmt.Sprintf("the process of the session %q was killed; its log is cut off: %s", k.info.Name, k.info.Log),
		"start another: fumehood session start --name "+k.info.Name)
}

func (c *Client) endedError(err error) error {
	return &proposal.StopError{Code: "session.ended",
		Message: fmt.Sprintf("the session %q ended during the request", c.name), Hint: "see: fumehood session list",
		Err: err}
}

// Do is gate.Session.Do after the set-up. The session gives p its ID; code without a Context has
// "main", and that of a language without state is a command: see interpreter.CommandOf. each is called with the output
// as it comes, progress with what is printed about set-up, and note with what the caller should know, such as set-up
// that failed. If ctx ends, the command is interrupted, and the Record says so.
func (c *Client) Do(
	ctx context.Context, p proposal.Proposal, each, progress func(proposal.Chunk), note func(string),
) (proposal.Record, error) {
	language := p.Language
	if _, keeps := interpreter.LanguageOf(language); keeps && p.Code != "" {
		p.Context = cmp.Or(p.Context, defaultContext)
	}
	p, stateless := interpreter.CommandOf(p)
	if stateless && p.Context != "" {
		return proposal.Record{}, newStopError("session.proposal",
			"invalid proposal: code of "+language+" keeps no state", "leave out its context")
	}
	err := c.SetUp(gate.WithOutput(ctx, progress), p, func(r proposal.Record) {
		if why := setupFailure(r); why != "" {
			note(why)
		}
	})
	if err != nil {
		return proposal.Record{}, err
	}
	r, err := c.Session.Do(gate.WithOutput(ctx, each), p)
	if missing := proposal.FailureOf(interpreter.MissingError(language, r)); missing != nil {
		note(missing.Code + ": " + missing.Message + "; " + missing.Hint)
	}
	return r, err
}

// defaultContext is the context of code that names none.
const defaultContext = "main"

// setupFailure says what a command of the set-up could not do, or "".
func setupFailure(r proposal.Record) string {
	command := "set-up command " + text.Inline(strings.TrimSpace(r.Analysis.Canonical), 80) + ": "
	switch {
	case !r.Runnable():
		return command + r.Decision.Effect.String()
	case r.Result != nil && !r.Result.Succeeded():
		command += r.Result.Outcome()
		if r.Cause != nil {
			command += ": " + r.Cause.Reason
		}
		return command
	}
	return ""
}

// End ends the session. When it returns, another can have the name.
func (c *Client) End(ctx context.Context) (Ended, error) {
	defer context.AfterFunc(ctx, c.Detach)()
	report, stopped, err := c.Session.End()
	if ctx.Err() != nil {
		err = c.endedError(ctx.Err())
	}
	if err != nil {
		return Ended{}, err
	}
	waitUntilFree(c.path)
	e := Ended{Name: c.name, Totals: report.Totals, Log: c.info.Log, Error: proposal.FailureOf(stopped)}
	if report.Audit != nil {
		e.Key = report.Audit.Key
	}
	return e, nil
}

// List returns all sessions of this user, sorted by name. It removes what killed ones left,
// and reports each of them once.
func List(ctx context.Context) ([]Info, error) {
	dir, err := userSessionsDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	list := []Info{}
	for _, e := range entries {
		if info, known := readSessionInfo(ctx, filepath.Join(dir, e.Name())); known && validName.MatchString(e.Name()) {
			list = append(list, info)
		}
	}
	return list, err
}

// readSessionInfo reports false for a session that starts or ends.
func readSessionInfo(ctx context.Context, path string) (info Info, known bool) {
	c, err := Connect(ctx, filepath.Base(path))
	if err == nil {
		c.Detach()
		return c.info, true
	}
	var k *killed
	if errors.As(err, &k) {
		return k.info, true
	}
	return info, false
}
