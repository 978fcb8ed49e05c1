// SPDX-License-Identifier: Apache-2.0

// Command containerd-shim-fumehood-v1 is the containerd shim of the runtime
// io.containerd.fumehood.v1: gVisor's shim, with fumehood's gate in every pod. Package task has
// what it adds, package node what the operator of a node configures. With the argument check it says
// whether pods can run with that.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/containerd/containerd/v2/pkg/shim"
	_ "gvisor.dev/gvisor/pkg/shim/v1/plugin" // registers the task service

	"github.com/fumehood/fumehood/cmd/containerd-shim-fumehood-v1/internal/manager"
	"github.com/fumehood/fumehood/cmd/containerd-shim-fumehood-v1/internal/node"
	"github.com/fumehood/fumehood/cmd/containerd-shim-fumehood-v1/internal/task"
)

func main() {
	if code, is := task.Gateway(); is {
		os.Exit(code)
	}
	if len(os.Args) == 2 && os.Args[1] == "check" {
		if !node.Check(context.Background(), os.Stdout) {
			os.Exit(1)
		}
		return
	}
	// Policy is compiled once, of garbage that is small: less of it is collected meanwhile.
	debug.SetGCPercent(400)
	task.Register()
	shim.Run(context.Background(), manager.New("io.containerd.fumehood.v1", task.Removed))
}
