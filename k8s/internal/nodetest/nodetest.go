// SPDX-License-Identifier: Apache-2.0

// Package nodetest starts a Kubernetes node without Kubernetes, for tests: containerd,
// the shim of this module beside gVisor's own, two images, a network, and a client of
// the Container Runtime Interface that does what a kubelet would.
//
// A Node needs root, Debian's containernetworking-plugins, and, unless Programs names what it would
// build, Go, apt-get and a minute for its first start, for containerd in the user's cache. It has its own
// directory, sockets and network namespace, from which no packet gets out; nodes can
// run beside each other and beside the machine's own containerd. When the test ends,
// all of it is removed, and whatever the removal of its pods left behind fails the test.
//
// Its pods are not what a kubelet would make in two respects: containerd does not lower any
// oom_score_adj, so it does not test which process the kernel kills first; and nothing runs in a
// cgroup (runsc is configured to ignore them), unless Options.Config says otherwise: see PodCgroup.
package nodetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/fumehood/fumehood/internal/sandbox/install"
)

// Handlers of a Node: the names of its runtimes.
const (
	Fumehood = "fumehood" // this module's shim
	GVisor   = "gvisor"   // gVisor's shim, unchanged except for its Start
	Runc     = "runc"     // the machine's runc, if Options say so
)

// namespace is that of CRI in containerd.
const namespace = "k8s.io"

const (
	setupTime = 30 * time.Minute // with the builds, on a busy machine
	callTime  = 30 * time.Second // of each call
	endTime   = 10 * time.Second // for containerd, and for what a pod leaves, to end
)

// Options configure a Node. The zero value is a node whose handlers have gVisor's
// default options.
type Options struct {
	// Env is added to the environment of containerd, and so of every shim.
	Env []string
	// Shim is the program of the handler Fumehood. Empty means one built from this module.
	Shim string
	// Config has keys added to the file that the options of Fumehood name (ConfigPath),
	// in the form of TOML: strings, numbers and tables. They replace the defaults; see
	// the method runsc.
	Config map[string]any
	// Install, if set, writes the configuration of the handler Fumehood into the directory conf.d of
	// Dir, from which containerd imports it, instead of this package. Options of gVisor's shim
	// are in fumehood.toml there.
	Install func(n *Node) error
	// Runc adds the handler Runc, as the default.
	Runc bool
}

// A Node is a running containerd. Its methods may be called concurrently, except for
// Kill and Serve.
type Node struct {
	Dir    string // everything below it belongs to this node
	Socket string // of containerd
	Root   string // of runsc
	Runsc  install.Runsc

	containerd *exec.Cmd
	env        []string
	lock       *os.File // on Dir
	netns      *os.File
	ended      chan error // receives once, when containerd has ended
	conn       *grpc.ClientConn
	runtime    cri.RuntimeServiceClient
	images     cri.ImageServiceClient
	pods       atomic.Int64
}

// Start returns a node that can run pods. It fails the test if it cannot, and when the
// test ends and something of the node is left. If the test failed, the end of
// containerd's log, which has the shims' messages, is logged.
func Start(t testing.TB, o Options) *Node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("a node needs root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), setupTime)
	defer cancel()
	n, err := prepare(ctx, o)
	if n != nil {
		t.Cleanup(func() { n.end(t) })
	}
	if err == nil {
		err = n.Serve(ctx)
	}
	if err == nil {
		err = n.load(ctx)
	}
	if err == nil {
		err = n.sees(ctx, Pause, Busybox)
	}
	if err != nil {
		t.Fatalf("cannot start a node: %v", err)
	}
	return n
}

// StartBare returns a node without containerd: a directory and a network namespace, for programs
// that need no pods. It is removed when the test ends.
func StartBare(t testing.TB) *Node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("a node needs root")
	}
	n, err := bare()
	if n != nil {
		t.Cleanup(func() { n.end(t) })
	}
	if err != nil {
		t.Fatalf("cannot start a node: %v", err)
	}
	return n
}

// bare makes a directory and a network namespace. A Node with an error needs its end.
func bare() (*Node, error) {
	if err := sweep(); err != nil {
		return nil, err
	}
	dir, lock, err := newDir()
	if err != nil {
		return nil, err
	}
	n := at(dir)
	n.lock = lock
	n.netns, err = newNetns()
	return n, err
}

// prepare makes everything that containerd needs. A Node with an error needs its end.
func prepare(ctx context.Context, o Options) (*Node, error) {
	n, err := bare()
	if err != nil {
		return n, err
	}
	n.env = append(os.Environ(), o.Env...)
	if n.Runsc, err = install.Find(ctx, install.Options{Build: true}); err != nil {
		return n, err
	}
	if err := programs(ctx, n.path("bin")); err != nil {
		return n, err
	}
	if err := n.configure(ctx, o); err != nil {
		return n, err
	}
	n.conn, err = grpc.NewClient("unix://"+n.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	n.runtime, n.images = cri.NewRuntimeServiceClient(n.conn), cri.NewImageServiceClient(n.conn)
	return n, err
}

// at returns the node in a directory.
func at(dir string) *Node {
	return &Node{Dir: dir, Socket: filepath.Join(dir, "c.sock"), Root: filepath.Join(dir, "r")}
}

// Serve starts containerd and waits until pods can be run. After Kill it starts it again,
// with what the first one left.
func (n *Node) Serve(ctx context.Context) error {
	log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(n.path("bin", daemonName), "--config", n.path("containerd.toml"))
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = log, log, n.env, n.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ended, err := startIn(n.netns, cmd)
	if err != nil {
		return fmt.Errorf("cannot start containerd: %w", err)
	}
	n.containerd, n.ended = cmd, ended
	return n.ready(ctx)
}

// ready waits until containerd has loaded its plugins and the network's configuration.
func (n *Node) ready(ctx context.Context) error {
	return poll(ctx, callTime, func(ctx context.Context) error {
		select {
		case err := <-n.ended:
			n.ended <- err
			return errors.Join(errEnded, err)
		default:
		}
		s, err := n.runtime.Status(ctx, &cri.StatusRequest{})
		if err != nil {
			return err
		}
		for _, c := range s.Status.Conditions {
			if !c.Status && (c.Type == cri.RuntimeReady || c.Type == cri.NetworkReady) {
				return fmt.Errorf("%s: %s", c.Type, c.Message)
			}
		}
		return nil
	})
}

var errEnded = errors.New("containerd has ended")

// sees waits until CRI knows the images: it learns of an import by an event.
func (n *Node) sees(ctx context.Context, images ...string) error {
	return poll(ctx, callTime, func(ctx context.Context) error {
		for _, image := range images {
			s, err := n.images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: image}})
			if err != nil {
				return err
			}
			if s.Image == nil {
				return fmt.Errorf("CRI does not see the image %s", image)
			}
		}
		return nil
	})
}

// Pid is containerd's.
func (n *Node) Pid() int { return n.containerd.Process.Pid }

// Kill sends containerd a signal and waits until it has ended. Pods keep running.
func (n *Node) Kill(signal syscall.Signal) error {
	if err := n.containerd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-n.ended:
		n.ended <- err
		return nil
	case <-time.After(endTime):
		return fmt.Errorf("containerd did not end within %s of signal %v", endTime, signal)
	}
}

func (n *Node) path(elements ...string) string {
	return filepath.Join(append([]string{n.Dir}, elements...)...)
}

func (n *Node) log() string { return n.path("containerd.log") }

// Log returns containerd's log, with the messages of the shims.
func (n *Node) Log() (string, error) {
	text, err := os.ReadFile(n.log())
	return string(text), err
}

// poll calls f until it returns nil, at most for the time limit; then it returns f's
// last error. Once containerd has ended, it does not wait.
func poll(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil || errors.Is(err, errEnded) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (after %s)", err, limit)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
