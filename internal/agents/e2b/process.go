// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/agents/stdin"
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
	Pty     *terminal     `json:"pty"`
	Tag     string        `json:"tag"`
	Stdin   bool          `json:"stdin"`
}

func (in startRequest) hasInput() bool { return in.Stdin || in.Pty != nil }

type selector struct {
	Pid uint32 `json:"pid"`
	Tag string `json:"tag"`
}

type processRequest struct {
	Process selector `json:"process"`
	Signal  any      `json:"signal"` // a name, or a number
	Input   struct {
		Stdin []byte `json:"stdin"`
		Pty   []byte `json:"pty"`
	} `json:"input"`
	Pty *terminal `json:"pty"`
}

// toProposal returns what in proposes. The SDK's commands are text for a login shell: the text
// is proposed, so that policy reads it.
func (in startRequest) toProposal(timeout time.Duration) (proposal.Proposal, error) {
	p := proposal.Proposal{Env: in.Process.Envs, Timeout: proposal.Duration(timeout)}
	switch {
	case in.Process.Cmd == "":
		return p, refuseRequest(invalidArgument, "process.cmd: missing")
	}
	if in.hasInput() {
		p.Stdin = stdin.Later
	}
	dir, err := findPlace(in.Process.Cwd)
	if err != nil {
		return p, err
	}
	if !dir.isRoot() {
		p.Cwd = dir.rel
	}
	if in.Pty != nil {
		p.Argv = []string{"python3", "-c", terminalBridge, strconv.Itoa(in.Pty.Size.Cols),
			strconv.Itoa(in.Pty.Size.Rows), dir.shown}
		return p, nil
	}
	if args := in.Process.Args; in.Process.Cmd == "/bin/bash" && len(args) == 3 && args[0] == "-l" && args[1] == "-c" {
		if p.Run = args[2]; dir.rel == "" { // a proposal's own directory is in the workspace
			p.Run = "cd -- " + quoteWord(dir.shown) + " || exit 1\n" + p.Run
		}
		return p, nil
	}
	if dir.rel == "" {
		return p, refuseRequest(invalidArgument, "cwd: only a text for bash can run outside of %s", home)
	}
	p.Argv = append([]string{in.Process.Cmd}, in.Process.Args...)
	return p, nil
}

// A process is a command that runs, or waits for others to end.
type process struct {
	pid    uint32 // counted for each sandbox; not the kernel's
	about  startRequest
	cancel context.CancelFunc
	input  *stdin.Pipe // nil if it cannot be written to
	done   chan struct{}

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

// findProcess returns the process that s selects.
func (b *sandbox) findProcess(s selector) (*process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.processes.list {
		if p.pid == s.Pid || s.Pid == 0 && s.Tag != "" && p.about.Tag == s.Tag {
			return p, nil
		}
	}
	return nil, refuseRequest(notFound, "no process %d is running", s.Pid)
}

func (s *Server) processRoutes(mux *http.ServeMux) {
	const service = "POST /process.Process/"
	mux.HandleFunc(service+"Start", serveStreaming(s, startProcess))
	mux.HandleFunc(service+"Connect", serveStreaming(s, connectProcess))
	mux.HandleFunc(service+"List", serveUnary(s, listProcesses))
	mux.HandleFunc(service+"SendSignal", serveUnary(s, signalProcess))
	mux.HandleFunc(service+"Update", serveUnary(s, resizeTerminal))
	mux.HandleFunc(service+"SendInput", serveUnary(s, sendInput))
	mux.HandleFunc(service+"CloseStdin", serveUnary(s, closeInput))
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

// signalProcess kills a process: SIGTERM, too, because what runs is a whole tree.
func signalProcess(ctx context.Context, b *sandbox, in processRequest) (any, error) {
	switch in.Signal {
	case "SIGNAL_SIGKILL", "SIGNAL_SIGTERM", 9.0, 15.0:
	default:
		return nil, refuseRequest(invalidArgument, "signal: must be SIGNAL_SIGKILL or SIGNAL_SIGTERM")
	}
	p, err := b.findProcess(in.Process)
	if err != nil {
		return nil, err
	}
	p.cancel()
	select { // what it printed comes before the answer
	case <-p.done:
	case <-ctx.Done():
	case <-time.After(killWait):
	}
	p.drainFeeds(ctx)
	return map[string]any{}, nil
}

// drainFeeds waits until what the process printed is on its way to its clients. They read it by another connection
// than the answer to a signal.
func (x *process) drainFeeds(ctx context.Context) {
	for end := time.Now().Add(killWait); time.Now().Before(end) && ctx.Err() == nil; {
		x.mu.Lock()
		left := len(x.feeds)
		x.mu.Unlock()
		time.Sleep(drainStep)
		if left == 0 {
			return
		}
	}
}

const drainStep = 30 * time.Millisecond

// killWait is how long the answer to a signal waits for the end of the process.
const killWait = 3 * time.Second

// startProcess proposes a command and follows it. The command does not end with the connection, but
// at its timeout.
func startProcess(ctx context.Context, b *sandbox, in startRequest, out *stream) error {
	if name, _, _ := out.r.BasicAuth(); unprivilegedUser(name) != nil {
		return unprivilegedUser(name)
	}
	timeout, err := out.parseTimeout()
	if err != nil {
		return err
	}
	p, err := in.toProposal(min(timeout, b.server.o.MaxTimeout))
	if err != nil {
		return err
	}
	if err := b.waitForSetUp(ctx); err != nil {
		return err
	}
	x, f, err := b.startBackground(in, p)
	if err != nil {
		return err
	}
	return x.sendFeed(ctx, b, f, out)
}

func connectProcess(ctx context.Context, b *sandbox, in processRequest, out *stream) error {
	x, err := b.findProcess(in.Process)
	if err != nil {
		return err
	}
	f, err := x.attachFeed()
	if err != nil {
		return err
	}
	return x.sendFeed(ctx, b, f, out)
}

// maxProcesses is how many commands of one sandbox run or wait.
const maxProcesses = 32

// startBackground runs p in the background and returns it with a feed of all its events.
func (b *sandbox) startBackground(in startRequest, p proposal.Proposal) (*process, *feed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.processes.list) >= maxProcesses {
		return nil, nil, refuseRequest(resourceExhausted, "the sandbox has %d commands at a time: wait for one to end",
			maxProcesses)
	}
	b.processes.count++
	ctx, cancel := context.WithCancel(b.ctx)
	x := &process{pid: b.processes.count, about: in, cancel: cancel, done: make(chan struct{})}
	if in.hasInput() {
		var err error
		if x.input, err = stdin.Open(b.gate); err != nil {
			cancel()
			return nil, nil, err
		}
		ctx = x.input.WithInput(ctx)
	}
	b.processes.list[x.pid] = x
	f, _ := x.attachFeed()
	go func() {
		defer close(x.done)
		defer cancel()
		last := x.runProposal(ctx, b, p)
		if x.input != nil {
			x.input.Close()
		}
		b.noteChange()
		b.mu.Lock()
		delete(b.processes.list, x.pid)
		b.mu.Unlock()
		x.publishEnd(last)
	}()
	return x, f, nil
}

// runProposal runs p and returns its last event.
func (x *process) runProposal(ctx context.Context, b *sandbox, p proposal.Proposal) map[string]any {
	shows := newPrinter(x.publishOutput, func(proposal.Display) {})
	r, err := b.proposeAfterSetUp(gate.WithOutput(ctx, shows.printChunk), b.runInBackground, p)
	if err != nil {
		why := refusalOf(err)
		shows.printNote(why.message)
		if why.code == invalidArgument {
			return endEvent(126, "invalid command: "+why.message)
		}
		return endEvent(-1, why.message)
	}
	if !r.Runnable() {
		v := reasonsOf(r)
		x.publishOutput(proposal.ChunkStderr, []byte(v.formatStderr()))
		return endEvent(126, v.name+": "+v.joinLines())
	}
	shows.printRest(r)
	if r.Result.Status == proposal.Exited {
		if r.Result.ExitCode == 0 {
			return endEvent(0, "")
		}
		return endEvent(r.Result.ExitCode, describeEnd(*r.Result))
	}
	return endEvent(-1, describeEnd(*r.Result))
}

// endEvent returns the event of an end. -1 means that there is no exit code.
func endEvent(exit int, why string) map[string]any {
	e := map[string]any{"exitCode": exit, "exited": exit >= 0, "status": "exit status 0"}
	if why != "" {
		e["status"], e["error"] = why, why
	}
	return map[string]any{"end": e}
}

func (x *process) publishOutput(stream string, data []byte) {
	if x.about.Pty != nil {
		stream = "pty"
	}
	event := map[string]any{"data": map[string]any{stream: base64.StdEncoding.EncodeToString(data)}}
	x.mu.Lock()
	feeds := slices.Clone(x.feeds)
	x.mu.Unlock()
	for _, f := range feeds {
		f.pushWhenRoom(event, len(data))
	}
}

func (x *process) publishEnd(last map[string]any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	for _, f := range x.feeds {
		f.close(last)
	}
}

// attachFeed returns a feed of what comes from now on.
func (x *process) attachFeed() (*feed, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return nil, refuseRequest(notFound, "no process %d is running", x.pid)
	}
	f := &feed{wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	x.feeds = append(x.feeds, f)
	return f, nil
}

func (x *process) detachFeed(f *feed) {
	x.mu.Lock()
	x.feeds = slices.DeleteFunc(x.feeds, func(other *feed) bool { return other == f })
	x.mu.Unlock()
	f.markLost()
}

// keepAlive is the time between two messages of a stream on which nothing happens.
const keepAlive = 20 * time.Second

// sendFeed sends what comes from f until it is closed, or the client has gone.
func (x *process) sendFeed(ctx context.Context, b *sandbox, f *feed, out *stream) error {
	defer x.detachFeed(f)
	if err := out.sendMessage(eventOf(map[string]any{"start": map[string]any{"pid": x.pid}})); err != nil {
		return err
	}
	ticks := time.NewTicker(keepAlive)
	defer ticks.Stop()
	for {
		events, last, err := f.takeEvents()
		if b.ctx.Err() != nil {
			return refuseRequest(unavailable, "the sandbox has ended")
		}
		for _, e := range events {
			if err := out.sendMessage(eventOf(e)); err != nil {
				return err
			}
		}
		if err != nil || last {
			return err
		}
		select {
		case <-f.wake:
		case <-ticks.C:
			if err := out.sendMessage(eventOf(map[string]any{"keepalive": map[string]any{}})); err != nil {
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

// pushWhenRoom adds an event, after those before it were taken if there are many.
func (f *feed) pushWhenRoom(e map[string]any, size int) {
	for end := time.After(slowFeed); !f.addEvent(e, size); {
		select {
		case <-f.room:
		case <-end:
			f.markLost()
		}
	}
}

// addEvent reports whether it added the event, or no event is taken any more.
func (f *feed) addEvent(e map[string]any, size int) bool {
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

func (f *feed) markLost() {
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

// takeEvents returns the events that have come, and whether they are the last.
func (f *feed) takeEvents() (events []map[string]any, last bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		return nil, true, refuseRequest(resourceExhausted,
			"the client read the output too slowly: the command goes on without it")
	}
	events, f.events, f.bytes = f.events, nil, 0
	signalTo(f.room)
	return events, f.closed, nil
}
