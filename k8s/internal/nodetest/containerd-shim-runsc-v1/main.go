// SPDX-License-Identifier: Apache-2.0

// Command containerd-shim-runsc-v1 is gVisor's shim, of the version in go.mod, for comparisons. Its
// task service is unchanged; see package manager for what differs.
package main

import (
	"context"

	"github.com/containerd/containerd/v2/pkg/shim"
	_ "gvisor.dev/gvisor/pkg/shim/v1/plugin" // registers the task service

	"github.com/fumehood/fumehood/k8s/internal/manager"
)

func main() {
	none := func(context.Context, string) error { return nil }
	shim.Run(context.Background(), manager.New("io.containerd.runsc.v1", manager.Hooks{Removed: none}))
}
