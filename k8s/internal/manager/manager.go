// SPDX-License-Identifier: Apache-2.0

// Package manager starts and removes shims: gVisor's, which differ in four ways. Each container
// has a shim of its own, whatever other files say about grouping, because gVisor's cannot stop a
// group. A host that does not let the shim lower its OOM score starts it anyway. Its caller can
// remove what a shim that was killed has left. And a process that waits (package spare) may become the
// shim.
package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/sys"
	gvisor "gvisor.dev/gvisor/pkg/shim/v1"

	"github.com/fumehood/fumehood/k8s/internal/spare"
)

// Hooks are called for containers, whose bundle is the working directory.
type Hooks struct {
	// Removed is called when a container's shim is gone, and has been cleaned up.
	Removed func(ctx context.Context, id string) error
	// Waiting returns the socket of a process that waits for such a container, or "". If it is nil, none does.
	Waiting func() string
}

type manager struct {
	shim.Manager
	h Hooks
}

// New returns the manager of the runtime with this name.
func New(name string, h Hooks) shim.Manager { return manager{gvisor.NewShimManager(name), h} }

// oomScore keeps the kernel from killing the shim before what it watches.
const oomScore = -999

// Start implements shim.Manager. containerd has set the working directory to the bundle.
func (m manager) Start(ctx context.Context, id string, o shim.StartOpts) (shim.BootstrapParams, error) {
	none := shim.BootstrapParams{}
	address, err := shim.SocketAddress(ctx, o.Address, id, o.Debug)
	if err != nil {
		return none, err
	}
	socket, err := listen(address)
	if err != nil {
		return none, fmt.Errorf("cannot listen for containerd: %w", err)
	}
	cmd, err := command(ctx, id, o)
	pid := 0
	if err == nil {
		cmd.ExtraFiles = []*os.File{socket}
		pid, err = m.run(cmd)
	}
	if err != nil {
		return none, errors.Join(err, socket.Close(), shim.RemoveSocket(address))
	}
	_ = sys.SetOOMScore(pid, oomScore) // containerd reads all that this process prints as the address
	err = errors.Join(shim.WritePidFile("shim.pid", pid), os.WriteFile("address", []byte(address), 0o644))
	if err != nil {
		return none, errors.Join(err, syscall.Kill(pid, syscall.SIGKILL), shim.RemoveSocket(address))
	}
	return shim.BootstrapParams{Version: 2, Address: address, Protocol: "ttrpc"}, nil
}

// run has a process that waits become cmd, or starts it.
func (m manager) run(cmd *exec.Cmd) (pid int, err error) {
	if m.h.Waiting != nil {
		if at := m.h.Waiting(); at != "" {
			pid = spare.Take(at, cmd)
		}
	}
	if pid != 0 {
		return pid, nil
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() { _ = cmd.Wait() }()
	return cmd.Process.Pid, nil
}

// listen listens at address, and replaces the socket of a shim that was killed.
func listen(address string) (*os.File, error) {
	l, err := shim.NewSocket(address)
	if shim.SocketEaddrinuse(err) && !shim.CanConnect(address) {
		if err = shim.RemoveSocket(address); err == nil {
			l, err = shim.NewSocket(address)
		}
	}
	if err != nil {
		return nil, err
	}
	return l.File()
}

// command returns the shim itself.
func command(ctx context.Context, id string, o shim.StartOpts) (*exec.Cmd, error) {
	ns, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"-namespace", ns, "-address", o.Address, "-id", id}
	if o.Debug {
		args = append(args, "-debug")
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// Stop implements shim.Manager: it removes a container whose shim is gone.
func (m manager) Stop(ctx context.Context, id string) (shim.StopStatus, error) {
	if address, err := shim.ReadAddress("address"); err == nil {
		_ = shim.RemoveSocket(address) // a shim that was not killed has removed it
	}
	if _, err := os.Stat("state.json"); errors.Is(err, os.ErrNotExist) { // nothing was created
		return shim.StopStatus{ExitedAt: time.Now(), ExitStatus: 128 + int(syscall.SIGKILL)}, m.h.Removed(ctx, id)
	}
	status, err := m.Manager.Stop(ctx, id)
	return status, errors.Join(err, m.h.Removed(ctx, id))
}
