// SPDX-License-Identifier: Apache-2.0

// Package session is the process of a pod that is a session of fumehood serve: it has the gate,
// whose sandbox shows the files of the pod's image, and answers at the pod's address (package
// remote of the main module has the protocol). The shim starts it for the pod's container and ends
// it with that. If the shim is killed, the process ends by itself, and seals its log.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/k8s/internal/logfile"
	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Config describes the session. All fields but Resolvers, Ceiling and Cgroup are required.
type Config struct {
	Namespace string // of Kubernetes
	Named     string // the bundle that the pod names
	Policy    string // the digest of its bundle
	Root      string `json:"-"` // directory with the files of the image
	Work      string // new directory for everything that is written
	Log       string // path of the log, which must not exist
	Netns     string // path of the pod's network namespace
	Gateway   []string
	Resolvers []netip.AddrPort
	Ceiling   proposal.Limits
	Cgroup    string // of the container
}

// A State is what the process writes to its standard output once: Failure is nil if the session can
// be opened.
type State struct {
	Failure *proposal.Failure
}

// Name is the argument with which the shim's program is this process. Another one is Config.Root, so
// that a list of processes says whose it is.
const Name = "session-host"

// Main serves the session that standard input describes, until that ends, SIGTERM arrives or the
// session has ended, and returns the exit code. Standard error gets lines for the container's log.
func Main(root string) int {
	c := Config{Root: root}
	in := json.NewDecoder(os.Stdin)
	if err := in.Decode(&c); err != nil {
		return answer(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // the shim holds the other end
		_, _ = io.Copy(io.Discard, in.Buffered())
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel(errors.New("the shim has ended"))
	}()
	if err := c.serve(ctx, cancel); err != nil {
		return answer(err)
	}
	return 0
}

// answer reports a session that cannot be served.
func answer(err error) int {
	_ = json.NewEncoder(os.Stdout).Encode(State{Failure: proposal.FailureOf(err)})
	say("%v", err)
	return 1
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "fumehood: "+format+"\n", args...)
}

// A host is the process's state.
type host struct {
	Config
	node   node.Config
	locked atomic.Pointer[os.File] // the log
}

func (c Config) serve(ctx context.Context, cancel context.CancelCauseFunc) error {
	config, err := node.Read()
	if err != nil {
		return err
	}
	if config.Sessions == nil {
		return stop("session.none", "this node has no sessions", "add [sessions] to the node's configuration", nil)
	}
	h := &host{Config: c, node: config}
	if err := h.make(); err != nil {
		return err
	}
	defer os.RemoveAll(c.Work)
	secure, err := config.Sessions.TLS(c.Namespace)
	if err != nil {
		return stop("node.config", "cannot use the certificates for sessions", "correct the files", err)
	}
	listener, err := listen(c.Netns, config.Sessions.Port)
	if err != nil {
		return stop("session.door", "cannot listen at the pod's address", "use another port for sessions", err)
	}
	defer listener.Close()
	pool := gate.NewPool(1)
	defer pool.Close()
	g, err := h.gate(ctx, pool)
	if err != nil {
		return err
	}
	defer g.Close()
	go h.watch(ctx, cancel)
	if err := json.NewEncoder(os.Stdout).Encode(State{}); err != nil {
		return err
	}
	say("ready at port %d, with policy %s", config.Sessions.Port, c.Policy)
	return remote.Serve(ctx, listener, remote.Options{Gate: g, TLS: secure, Ended: h.ended})
}

// make makes the directories for what is written. The session's processes use them for their own
// files, too.
func (h *host) make() error {
	if err := node.Directory(filepath.Dir(h.Work)); err != nil {
		return err
	}
	for _, dir := range []string{h.Work, h.workspace(), filepath.Join(h.Work, "tmp")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return stop("session.work", "cannot make the directory of the session",
				"make room in the directory for sessions", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(h.Log), 0o700); err != nil {
		return stop("pod.log", "cannot make the directory of the pod's log", "make room in the directory of the logs",
			err)
	}
	return os.Setenv("TMPDIR", filepath.Join(h.Work, "tmp"))
}

func (h *host) workspace() string { return filepath.Join(h.Work, "workspace") }

// gate makes the gate, and has its sandbox started.
func (h *host) gate(ctx context.Context, pool *gate.Pool) (*gate.Gate, error) {
	options, err := h.node.Policy(h.Policy)
	if err != nil {
		return nil, err
	}
	signer, err := h.node.Signer()
	if err != nil {
		return nil, err
	}
	layer := options.Layers[0]
	g, err := gate.New(ctx, gate.Options{
		Policies: []gate.Policy{{Name: layer.Name, Role: layer.Role.String(), Files: layer.Contents(),
			Origin: proposal.PolicyOrigin{Kind: "bundle", Digest: h.Policy}}},
		Ceiling: h.Ceiling, Workspace: h.workspace(), ImageFrom: math.MaxInt, Rootfs: "dir:" + h.Root,
		Runsc:     h.node.Runsc,
		Artifacts: filepath.Join(h.Work, "artifacts"), AuditFile: h.Log, Signer: signer,
		Resolvers: h.Resolvers, Registries: noRegistries, Gateway: h.Gateway, Pool: pool, Health: (*lock)(h),
		Cgroup: h.Cgroup,
		Notice: func(line string) { say("%s", line) },
	})
	if err != nil {
		return nil, err
	}
	return g, g.Prepare(ctx, gate.SessionOptions{})
}

// noRegistries refuses registries: their addresses and credentials would be those of the node's
// own user.
func noRegistries(_ context.Context, names []string) ([]gate.Registry, error) {
	return nil, stop("session.registry",
		fmt.Sprintf("a session in a pod has no registries, and policy grants %q", names),
		"grant the hosts of the registries", nil)
}

// ended releases the log, which is sealed, and reports what the session did.
func (h *host) ended(r proposal.Report, err error) {
	if f := h.locked.Load(); f != nil {
		_ = f.Close()
	}
	t := r.Totals
	say("the session has ended: %d proposed, %d denied, %d succeeded, %d failed%s", t.Proposed, t.Denied, t.Succeeded,
		t.Failed, t.Others())
	if err != nil {
		say("%v", err)
	}
}

// watch ends the session when its policy is revoked, or it has written too much.
func (h *host) watch(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(node.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := h.overdue(); err != nil {
				say("%v", err)
				end(err)
			}
		}
	}
}

// overdue returns why the session must end.
func (h *host) overdue() error {
	if err := node.Revoked(h.Namespace, h.Named, h.Policy); err != nil {
		return err
	}
	if info, err := os.Stat(h.Log); err == nil && info.Size() > h.node.LogLimit {
		return stop("pod.log-full", fmt.Sprintf("the pod's log is larger than %d bytes", h.node.LogLimit),
			"open another session", nil)
	}
	if size := sizeOf(h.Work); size > h.node.Sessions.Disk {
		return stop("session.disk", fmt.Sprintf("the session has %d bytes on the node's disk", size),
			"open another session, or raise disk in the node's configuration", nil)
	}
	return nil
}

// sizeOf returns how many bytes the files of a directory take. What cannot be read is being
// removed.
func sizeOf(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			sum += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return sum
}

// A lock is a host as gate.Health: it locks the log when there is one, so that readers know that it
// is being written.
type lock host

func (l *lock) Started(time.Duration, error) {}
func (l *lock) Ended()                       {}
func (l *lock) Ready(time.Duration)          {}
func (l *lock) CountDecision(time.Duration)  {}

func (l *lock) Log(log journal.Log) journal.Log {
	if f, err := logfile.Lock(l.Config.Log); err == nil {
		l.locked.Store(f)
	} else {
		say("%v", err)
	}
	return log
}

func stop(code, message, hint string, err error) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}
