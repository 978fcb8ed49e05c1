// SPDX-License-Identifier: Apache-2.0

// Command containerd-shim-fumehood-v1 is the containerd shim of the runtime
// io.containerd.fumehood.v1: gVisor's shim, with fumehood's gate in every pod. Package task has
// what it adds, package node what the operator of a node configures.
//
// The operator runs it with one of commands as the first argument.
package main

import (
	"context"
	"os"

	"github.com/containerd/containerd/v2/pkg/shim"
	_ "gvisor.dev/gvisor/pkg/shim/v1/plugin" // registers the task service

	"github.com/fumehood/fumehood/k8s/internal/manager"
	"github.com/fumehood/fumehood/k8s/internal/session"
	"github.com/fumehood/fumehood/k8s/internal/task"
)

func main() {
	if code, is := task.Gateway(); is {
		os.Exit(code)
	}
	if len(os.Args) == 3 && os.Args[1] == session.Name {
		os.Exit(session.Main(os.Args[2]))
	}
	if len(os.Args) > 1 && commands[os.Args[1]] != nil {
		os.Exit(commands[os.Args[1]](context.Background(), os.Args[2:]))
	}
	if err := task.Wait(); err != nil {
		os.Exit(1)
	}
	task.Register()
	shim.Run(context.Background(),
		manager.New("io.containerd.fumehood.v1", manager.Hooks{Removed: task.Removed, Waiting: task.Waiting}))
}
