// SPDX-License-Identifier: Apache-2.0

// Command containerd-shim-runsc-v1 is gVisor's shim, of the version in go.mod, for
// comparisons. Its task service is unchanged.
//
// # Why not upstream's command
//
// Upstream's Start fails where a process cannot lower its oom_score_adj, which needs
// CAP_SYS_RESOURCE, and many machines for tests do not have it. This Start leaves the
// score alone. It also has no grouping, which the tests do not use.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	gvisor "gvisor.dev/gvisor/pkg/shim/v1"
	_ "gvisor.dev/gvisor/pkg/shim/v1/plugin" // registers the task service
)

func main() {
	shim.Run(context.Background(), manager{gvisor.NewShimManager("io.containerd.runsc.v1")})
}

type manager struct{ shim.Manager }

// Start starts this program again as the shim of container id, in the bundle, which is
// the working directory. Like upstream, it leaves the socket's address where Stop and
// the task service read it.
func (manager) Start(ctx context.Context, id string, o shim.StartOpts) (shim.BootstrapParams, error) {
	var none shim.BootstrapParams
	address, err := shim.SocketAddress(ctx, o.Address, id, o.Debug)
	if err != nil {
		return none, err
	}
	if err := serve(ctx, id, address, o); err != nil {
		return none, fmt.Errorf("cannot start the shim: %w", err)
	}
	if err := os.WriteFile("address", []byte(address), 0o644); err != nil {
		return none, err
	}
	return shim.BootstrapParams{Version: 2, Address: address, Protocol: "ttrpc"}, nil
}

// serve starts the process that serves address.
func serve(ctx context.Context, id, address string, o shim.StartOpts) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	namespace, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return err
	}
	socket, err := shim.NewSocket(address)
	if err != nil {
		return err
	}
	file, err := socket.File()
	if err != nil {
		return err
	}
	args := []string{"-namespace", namespace, "-address", o.Address, "-id", id}
	if o.Debug {
		args = append(args, "-debug")
	}
	cmd := exec.Command(self, args...)
	cmd.ExtraFiles = []*os.File{file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return shim.WritePidFile("shim.pid", cmd.Process.Pid)
}
