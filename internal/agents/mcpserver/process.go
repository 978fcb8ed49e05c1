// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/agents/stdin"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	maxBeside    = 8         // commands of a session that run at once, as in its background
	maxProcesses = 16        // commands in the background that an answer can show, the newest
	maxBuffer    = 256 << 10 // bytes of output that are kept of each, the newest
	maxWait      = time.Minute
	startWait    = 300 * time.Millisecond // for the end of a command that fails at once
	stopWait     = 2 * time.Second        // from SIGINT to SIGKILL
)

type processArgs struct {
	ID    string `json:"id,omitempty" jsonschema:"all are listed if left out"`
	Since int64  `json:"since,omitempty" jsonschema:"first byte of output"`
	Wait  int    `json:"wait,omitempty" jsonschema:"seconds to wait for more, at most 60"`
	Input string `json:"input,omitempty" jsonschema:"text for stdin"`
	EOF   bool   `json:"eof,omitempty" jsonschema:"then close stdin"`
	Stop  bool   `json:"stop,omitempty"`
}

// A process is a command in the background.
type process struct {
	gate.Process
	id, command string
	began       time.Time
	printed     printed
	input       *stdin.Pipe // nil if it has none that comes later

	once    sync.Once
	outcome string // when it has ended
}

// A printed is the end of what a command has printed, on both streams as it came.
type printed struct {
	mu    sync.Mutex
	bytes []byte
	end   int64         // position of the end in all that was printed
	more  chan struct{} // closed when there is more
}

func (b *printed) addChunk(c proposal.Chunk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data := c.Data
	if c.Dropped > 0 {
		data = append(fmt.Appendf(nil, "\n[%d bytes are missing]\n", c.Dropped), data...)
	}
	if c.Withheld != "" {
		data = fmt.Appendf(slices.Clone(data), "\n[%s is withheld: %s]\n", c.Stream, c.Withheld)
	}
	b.bytes = append(b.bytes, data...)
	b.end += int64(len(data))
	if more := len(b.bytes) - maxBuffer; more > maxBuffer { // not at each chunk
		b.bytes = slices.Clone(b.bytes[more:])
	}
	close(b.more)
	b.more = make(chan struct{})
}

// readSince returns at most maxStdout bytes of what was printed from the byte since on, where they begin, and
// where all that was printed ends. It does not divide a character.
func (b *printed) readSince(since int64) (part []byte, begin, end int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.end - int64(len(b.bytes))
	begin = min(max(since, first), b.end)
	part = b.bytes[begin-first:]
	if len(part) > maxStdout {
		part = part[:maxStdout]
		for i := len(part); i > len(part)-utf8.UTFMax; i-- {
			if utf8.RuneStart(b.bytes[begin-first+int64(i)]) {
				part = part[:i]
				break
			}
		}
	}
	return slices.Clone(part), begin, b.end
}

// awaitMore waits until something was printed after since, done, or the time is up.
func (b *printed) awaitMore(ctx context.Context, since int64, done <-chan struct{}, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		b.mu.Lock()
		end, more := b.end, b.more
		b.mu.Unlock()
		if end > since {
			return
		}
		select {
		case <-more:
		case <-done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// runBeside runs p while other commands of the session run, as far as it can be. If ctx ends, the command is
// killed. A command with a network runs alone, as the network is the sandbox's. One with limits runs in the
// foreground, where the limit that ended it is known.
func (s *session) runBeside(
	ctx context.Context, p proposal.Proposal, a *proposal.ClientApproval,
) (proposal.Record, error) {
	places := int64(1)
	if len(p.Network) > 0 {
		places = maxBeside
	}
	if err := s.places.Acquire(ctx, places); err != nil {
		return proposal.Record{}, err
	}
	defer s.places.Release(places)
	if a != nil || p.Context != "" || p.Cache || p.Limits != nil || len(p.Outputs)+len(p.Network) > 0 {
		return doWithApproval(ctx, s, p, a)
	}
	x, err := s.Start(ctx, p)
	var stop *proposal.StopError
	if errors.As(err, &stop) && stop.Code == "session.background" {
		return s.Do(ctx, p)
	}
	if err != nil {
		return proposal.Record{}, err
	}
	defer context.AfterFunc(ctx, x.Kill)()
	return x.Wait(context.WithoutCancel(ctx))
}

// startProcess starts p, which goes on after the call, and answers with its id, or with its result if it ends at
// once. All of set-up runs before.
func (c *client) startProcess(
	ctx context.Context, s *session, p proposal.Proposal, input bool,
) (*mcp.CallToolResult, any, error) {
	switch {
	case p.Cache:
		return nil, nil, invalidArguments("cache: not in the background")
	case input && p.Stdin != "":
		return nil, nil, invalidArguments("input: not with stdin")
	}
	if err := s.setup.runBefore(ctx, c.ctx, s, proposal.Proposal{}); err != nil {
		return nil, nil, err
	}
	x := &process{id: p.ID, began: time.Now(), printed: printed{more: make(chan struct{})},
		command: text.Inline(cmp.Or(p.Run, strings.Join(p.Argv, " "), p.Code), 100)}
	used := s.isUsed()
	if err := x.start(gate.WithOutput(ctx, x.printed.addChunk), c, s, p, input); err != nil {
		return nil, nil, err
	}
	select {
	case <-x.Done():
		r, err := x.Wait(ctx)
		if err != nil {
			return nil, nil, err
		}
		return toolResult(s.ranOf(r, used).String())
	case <-time.After(startWait):
	case <-ctx.Done():
		x.Kill()
		return nil, nil, ctx.Err()
	}
	s.keepProcess(x)
	return toolResult(x.describeOutput(s, 0))
}

// start starts p, whose input is written later if input is set.
func (x *process) start(ctx context.Context, c *client, s *session, p proposal.Proposal, input bool) error {
	if !input {
		var err error
		x.Process, err = s.Start(ctx, p)
		return err
	}
	g, err := c.ensureGate()
	if err == nil {
		x.input, err = stdin.Open(g)
	}
	if err != nil {
		return err
	}
	p.Stdin = stdin.Later
	if x.Process, err = s.Start(x.input.WithInput(ctx), p); err != nil {
		x.input.Close()
		return err
	}
	go func() {
		<-x.Done()
		x.input.Close()
	}()
	return nil
}

// writeInput writes to the command, or ends its input.
func (x *process) writeInput(text string, end bool) error {
	switch {
	case text == "" && !end:
		return nil
	case x.input == nil:
		return invalidArguments("input: the command was not started with input")
	case text != "":
		if err := x.input.Write([]byte(text)); err != nil {
			return &proposal.StopError{Code: "mcp.input", Message: "cannot write to " + x.id + ": " + err.Error(),
				Hint: "look at its output: a part may have been written"}
		}
	}
	if end {
		x.input.CloseWrite()
	}
	return nil
}

// keepProcess keeps x, and forgets those that have ended if there are many.
func (s *session) keepProcess(x *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = append(s.processes, x)
	for i := 0; i < len(s.processes) && len(s.processes) > maxProcesses; {
		if s.processes[i].hasEnded() {
			s.processes = slices.Delete(s.processes, i, i+1)
		} else {
			i++
		}
	}
}

// keepSession has the session know that a client looks at the command: it is not idle.
func (x *process) keepSession() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = x.Wait(ctx)
}

func (x *process) hasEnded() bool {
	select {
	case <-x.Done():
		return true
	default:
		return false
	}
}

// handleProcess shows or stops a command in the background.
func (c *client) handleProcess(
	ctx context.Context, _ *mcp.CallToolRequest, s *session, in processArgs,
) (*mcp.CallToolResult, any, error) {
	if in.Since < 0 || in.Wait < 0 || in.Wait > int(maxWait.Seconds()) {
		return nil, nil, invalidArguments("since and wait: must be from 0 on, and wait at most 60")
	}
	s.mu.Lock()
	all := slices.Clone(s.processes)
	s.mu.Unlock()
	if in.ID == "" {
		return listProcesses(s, all, in)
	}
	at := slices.IndexFunc(all, func(x *process) bool { return x.id == in.ID })
	if at < 0 {
		return nil, nil, invalidArguments(fmt.Sprintf("id: no command %q is in the background",
			text.Inline(in.ID, 100)))
	}
	x := all[at]
	x.keepSession()
	if err := x.writeInput(in.Input, in.EOF); err != nil {
		return nil, nil, err
	}
	if in.Stop {
		x.stopCommand(ctx)
	}
	x.printed.awaitMore(ctx, in.Since, x.Done(), time.Duration(in.Wait)*time.Second)
	return toolResult(x.describeOutput(s, in.Since))
}

func listProcesses(s *session, all []*process, in processArgs) (*mcp.CallToolResult, any, error) {
	if in != (processArgs{}) {
		return nil, nil, invalidArguments("id: missing")
	}
	words := "no command was started in the background"
	for i, x := range all {
		if i == 0 {
			words = ""
		}
		words += fmt.Sprintf("%s: %s: %s\n", x.id, x.describeState(s), x.command)
	}
	return toolResult(words)
}

// stopCommand ends the command, as Ctrl-C does, or kills it if that is not enough.
func (x *process) stopCommand(ctx context.Context) {
	if x.Interrupt() == nil {
		select {
		case <-x.Done():
			return
		case <-time.After(stopWait):
		case <-ctx.Done():
		}
	}
	x.Kill()
	select {
	case <-x.Done():
	case <-time.After(maxWait):
	}
}

// describeOutput returns the state of the command, and what it has printed from the byte since on.
func (x *process) describeOutput(s *session, since int64) string {
	ended := x.hasEnded() // before its output is read, which is complete then
	part, begin, end := x.printed.readSince(since)
	state := "running"
	if ended {
		state = x.describeState(s)
	}
	words := fmt.Sprintf("%s: %s", x.id, state)
	if !ended {
		words += " in the background"
	}
	words += fmt.Sprintf("\noutput, bytes %d to %d of %d", begin, begin+int64(len(part)), end)
	if len(part) == 0 {
		return words
	}
	return words + ":\n" + fenceLines(text.Excerpt(part, nil, int64(len(part)), 4*maxStdout).Text)
}

// describeState says whether the command runs, or how it ended.
func (x *process) describeState(s *session) string {
	if !x.hasEnded() {
		return "running, " + time.Since(x.began).Round(time.Second).String()
	}
	x.once.Do(func() {
		r, err := x.Wait(context.Background())
		if err != nil {
			x.outcome = clientError(err).Error()
			return
		}
		answer := s.ranOf(r, true)
		words := slices.Concat([]string{answer.describeOutcome()}, answer.Notes, answer.FullOutput)
		x.outcome = strings.Join(words, "; ")
	})
	return x.outcome
}
