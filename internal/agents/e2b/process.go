// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A processConfig is a command as the SDK describes it.
type processConfig struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args"`
	Envs map[string]string `json:"envs"`
	Cwd  string            `json:"cwd,omitempty"`
}

type startRequest struct {
	Process processConfig `json:"process"`
	Pty     any           `json:"pty"`
	Tag     string        `json:"tag"`
	Stdin   bool          `json:"stdin"`
}

type selector struct {
	Pid uint32 `json:"pid"`
	Tag string `json:"tag"`
}

type processRequest struct {
	Process selector `json:"process"`
	Signal  any      `json:"signal"` // a name, or a number
	Input   any      `json:"input"`
	Pty     any      `json:"pty"`
}

// proposal returns what in proposes. The SDK's commands are text for a login shell: the text
// is proposed, so that policy reads it.
func (in startRequest) proposal(timeout time.Duration) (proposal.Proposal, error) {
	p := proposal.Proposal{Env: in.Process.Envs, Timeout: proposal.Duration(timeout)}
	switch {
	case in.Pty != nil:
		return p, refuse(unimplemented, "pseudo-terminals are not supported: use commands.run")
	case in.Stdin:
		return p, refuse(unimplemented, "commands have no standard input: leave stdin out")
	case in.Process.Cmd == "":
		return p, refuse(invalidArgument, "process.cmd: missing")
	}
	dir, err := inWorkspace(in.Process.Cwd)
	if err != nil {
		return p, err
	}
	if dir != "." {
		p.Cwd = dir
	}
	if args := in.Process.Args; in.Process.Cmd == "/bin/bash" && len(args) == 3 && args[0] == "-l" && args[1] == "-c" {
		p.Run = args[2]
		return p, nil
	}
	p.Argv = append([]string{in.Process.Cmd}, in.Process.Args...)
	return p, nil
}

// A process is a command that runs, or waits for others to end.
type process struct {
	pid    uint32 // counted for each sandbox; not the kernel's
	about  startRequest
	cancel context.CancelFunc

	mu    sync.Mutex
	feeds []*feed
	ended bool
}

// processes are a sandbox's. The sandbox guards it.
type processes struct {
	list  map[uint32]*process
	count uint32
}

func newProcesses() processes { return processes{list: map[uint32]*process{}} }

// find returns the process that s selects.
func (b *sandbox) find(s selector) (*process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.processes.list {
		if p.pid == s.Pid || s.Pid == 0 && s.Tag != "" && p.about.Tag == s.Tag {
			return p, nil
		}
	}
	return nil, refuse(notFound, "no process %d is running", s.Pid)
}

func (s *Server) processRoutes(mux *http.ServeMux) {
	const service = "POST /process.Process/"
	mux.HandleFunc(service+"Start", streaming(s, start))
	mux.HandleFunc(service+"Connect", streaming(s, connect))
	mux.HandleFunc(service+"List", unary(s, listProcesses))
	mux.HandleFunc(service+"SendSignal", unary(s, signal))
	for call, what := range map[string]string{"Update": "pseudo-terminals are", "SendInput": "standard input is", "CloseStdin": "standard input is"} {
		mux.HandleFunc(service+call, unary(s, func(context.Context, *sandbox, processRequest) (any, error) {
			return nil, refuse(unimplemented, "%s not supported", what)
		}))
	}
}

func listProcesses(_ context.Context, b *sandbox, _ noInput) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := []map[string]any{}
	for _, p := range b.processes.list {
		one := map[string]any{"pid": p.pid, "config": p.about.Process}
		if p.about.Tag != "" {
			one["tag"] = p.about.Tag
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b map[string]any) int { return int(a["pid"].(uint32)) - int(b["pid"].(uint32)) })
	return map[string]any{"processes": found}, nil
}

// signal kills a process: SIGTERM, too, because what runs is a whole tree.
func signal(_ context.Context, b *sandbox, in processRequest) (any, error) {
	switch in.Signal {
	case "SIGNAL_SIGKILL", "SIGNAL_SIGTERM", 9.0, 15.0:
	default:
		return nil, refuse(invalidArgument, "signal: must be SIGNAL_SIGKILL or SIGNAL_SIGTERM")
	}
	p, err := b.find(in.Process)
	if err != nil {
		return nil, err
	}
	p.cancel()
	return map[string]any{}, nil
}

// start proposes a command and follows it. The command does not end with the connection, but
// at its timeout.
func start(ctx context.Context, b *sandbox, in startRequest, out *stream) error {
	if name, _, _ := out.r.BasicAuth(); sameUser(name) != nil {
		return sameUser(name)
	}
	timeout, err := out.timeout()
	if err != nil {
		return err
	}
	p, err := in.proposal(min(timeout, b.server.o.MaxTimeout))
	if err != nil {
		return err
	}
	if err := b.wait(ctx); err != nil {
		return err
	}
	x, f, err := b.begin(in, p)
	if err != nil {
		return err
	}
	return x.follow(ctx, b, f, out)
}

func connect(ctx context.Context, b *sandbox, in processRequest, out *stream) error {
	x, err := b.find(in.Process)
	if err != nil {
		return err
	}
	f, err := x.attach()
	if err != nil {
		return err
	}
	return x.follow(ctx, b, f, out)
}

// maxProcesses is how many commands of one sandbox run or wait.
const maxProcesses = 32

// begin runs p in the background and returns it with a feed of all its events.
func (b *sandbox) begin(in startRequest, p proposal.Proposal) (*process, *feed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.processes.list) >= maxProcesses {
		return nil, nil, refuse(resourceExhausted, "the sandbox has %d commands at a time: wait for one to end", maxProcesses)
	}
	b.processes.count++
	ctx, cancel := context.WithCancel(b.ctx)
	x := &process{pid: b.processes.count, about: in, cancel: cancel}
	b.processes.list[x.pid] = x
	f, _ := x.attach()
	go func() {
		defer cancel()
		last := x.run(ctx, b, p)
		b.mu.Lock()
		delete(b.processes.list, x.pid)
		b.mu.Unlock()
		x.finish(last)
	}()
	return x, f, nil
}

// run runs p and returns its last event.
func (x *process) run(ctx context.Context, b *sandbox, p proposal.Proposal) map[string]any {
	shows := newPrinter(x.print, func(proposal.Display) {})
	r, err := b.do(gate.WithOutput(ctx, shows.chunk), b.background, p)
	if err != nil {
		why := refusalOf(err)
		shows.note(why.message)
		if why.code == invalidArgument {
			return ended(126, "invalid command: "+why.message)
		}
		return ended(-1, why.message)
	}
	if !r.Runnable() {
		v := reasonsOf(r)
		x.print(proposal.ChunkStderr, []byte(v.stderr()))
		return ended(126, v.name+": "+v.line())
	}
	shows.finish(r)
	if r.Result.Status == proposal.Exited {
		if r.Result.ExitCode == 0 {
			return ended(0, "")
		}
		return ended(r.Result.ExitCode, ending(*r.Result))
	}
	return ended(-1, ending(*r.Result))
}

// ended returns the event of an end. -1 means that there is no exit code.
func ended(exit int, why string) map[string]any {
	e := map[string]any{"exitCode": exit, "exited": exit >= 0, "status": "exit status 0"}
	if why != "" {
		e["status"], e["error"] = why, why
	}
	return map[string]any{"end": e}
}

func (x *process) print(stream string, data []byte) {
	event := map[string]any{"data": map[string]any{stream: base64.StdEncoding.EncodeToString(data)}}
	x.mu.Lock()
	feeds := slices.Clone(x.feeds)
	x.mu.Unlock()
	for _, f := range feeds {
		f.push(event, len(data))
	}
}

func (x *process) finish(last map[string]any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	for _, f := range x.feeds {
		f.close(last)
	}
}

// attach returns a feed of what comes from now on.
func (x *process) attach() (*feed, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return nil, refuse(notFound, "no process %d is running", x.pid)
	}
	f := &feed{wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	x.feeds = append(x.feeds, f)
	return f, nil
}

func (x *process) detach(f *feed) {
	x.mu.Lock()
	x.feeds = slices.DeleteFunc(x.feeds, func(other *feed) bool { return other == f })
	x.mu.Unlock()
	f.lose()
}

// keepAlive is the time between two messages of a stream on which nothing happens.
const keepAlive = 20 * time.Second

// follow sends what comes from f until it is closed, or the client has gone.
func (x *process) follow(ctx context.Context, b *sandbox, f *feed, out *stream) error {
	defer x.detach(f)
	if err := out.send(eventOf(map[string]any{"start": map[string]any{"pid": x.pid}})); err != nil {
		return err
	}
	ticks := time.NewTicker(keepAlive)
	defer ticks.Stop()
	for {
		events, last, err := f.take()
		if b.ctx.Err() != nil {
			return refuse(unavailable, "the sandbox has ended")
		}
		for _, e := range events {
			if err := out.send(eventOf(e)); err != nil {
				return err
			}
		}
		if err != nil || last {
			return err
		}
		select {
		case <-f.wake:
		case <-ticks.C:
			if err := out.send(eventOf(map[string]any{"keepalive": map[string]any{}})); err != nil {
				return err
			}
		case <-b.ctx.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func eventOf(e map[string]any) map[string]any { return map[string]any{"event": e} }

// A feed holds a process's events for one client. A client that reads too slowly loses it, not
// the process.
type feed struct {
	mu     sync.Mutex
	events []map[string]any
	bytes  int
	closed bool
	lost   bool
	wake   chan struct{} // has a value when there is something to take
	room   chan struct{} // has a value when something was taken
}

const (
	maxFeed  = 1 << 20         // bytes of output that wait
	slowFeed = 5 * time.Second // that a process waits for its client
)

// push adds an event, after those before it were taken if there are many.
func (f *feed) push(e map[string]any, size int) {
	for end := time.After(slowFeed); !f.add(e, size); {
		select {
		case <-f.room:
		case <-end:
			f.lose()
		}
	}
}

// add reports whether it added the event, or no event is taken any more.
func (f *feed) add(e map[string]any, size int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.lost || f.closed:
		return true
	case f.bytes > 0 && f.bytes+size > maxFeed:
		return false
	}
	f.events, f.bytes = append(f.events, e), f.bytes+size
	signalTo(f.wake)
	return true
}

// close adds the last event.
func (f *feed) close(last map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events, f.closed = append(f.events, last), true
	signalTo(f.wake)
}

func (f *feed) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = true
	signalTo(f.wake)
	signalTo(f.room)
}

func signalTo(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take returns the events that have come, and whether they are the last.
func (f *feed) take() (events []map[string]any, last bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		return nil, true, refuse(resourceExhausted, "the client read the output too slowly: the command goes on without it")
	}
	events, f.events, f.bytes = f.events, nil, 0
	signalTo(f.room)
	return events, f.closed, nil
}
