// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io"

	"github.com/fumehood/fumehood/pkg/egress"
)

// isGateway says that this is the process that holds a sandbox's wire, started by
// fumehood run itself: not a command of the command line.
func isGateway(args []string) bool { return len(args) == 1 && args[0] == egress.DoorName }

// runGateway is that process. By hand it says so and does nothing.
func runGateway(stderr io.Writer) int {
	if code := egress.Main(stderr); code != 0 {
		return exitStopped
	}
	return exitOK
}
