// SPDX-License-Identifier: Apache-2.0

// Command containerd-shim-fumehood-v1 is the containerd shim that starts pods in gVisor.
package main

import (
	"context"

	"github.com/containerd/containerd/v2/pkg/shim"
	gvisor "gvisor.dev/gvisor/pkg/shim/v1"
	_ "gvisor.dev/gvisor/pkg/shim/v1/plugin" // registers the task service
)

func main() {
	shim.Run(context.Background(), gvisor.NewShimManager("io.containerd.fumehood.v1"))
}
