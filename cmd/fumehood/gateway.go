// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/fumehood/fumehood/internal/egress"
)

// isGateway reports whether this process is the gateway of a sandbox. fumehood run starts
// it; it is not a command of the command line.
func isGateway(args []string) bool { return len(args) == 1 && args[0] == egress.DoorName }

// runGateway is the gateway process. Started by hand, it prints so and does nothing.
func runGateway(stderr io.Writer) int {
	if code := egress.Main(stderr); code != 0 {
		return exitStopped
	}
	return exitOK
}
