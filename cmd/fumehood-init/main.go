// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command fumehood-init is process 1 of a sandbox. It is started by fumehood
// inside gVisor and is of no use elsewhere; see pkg/sandbox/guest.
package main

import (
	"fmt"
	"os"

	"github.com/fumehood/fumehood/pkg/sandbox/guest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fumehood-init:", err)
		os.Exit(125)
	}
}

func run() error {
	if len(os.Args) > 1 && os.Args[1] == "limit" {
		return guest.Limit(os.Args[1:])
	}
	return guest.Main(os.Args, os.Stdin, os.Stdout)
}
