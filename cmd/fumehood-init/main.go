// SPDX-License-Identifier: Apache-2.0

// Command fumehood-init is process 1 of a sandbox. fumehood starts it inside gVisor;
// it is not useful elsewhere. See internal/sandbox/guest.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"

	"github.com/fumehood/fumehood/internal/sandbox/guest"
)

// init keeps a process that becomes another program on its first thread. If another thread calls execve,
// the process has no live leader for a moment, and gVisor reports it as ended: runsc takes a container
// that has just started for a stopped one.
func init() {
	if len(os.Args) > 1 && (os.Args[1] == "limit" || os.Args[1] == "exec") {
		runtime.LockOSThread()
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fumehood-init:", err)
		os.Exit(exitCode(err))
	}
}

// exitCode returns a shell's exit code: 127 for a missing program, 126 for one that
// may not be started, 125 for everything else.
func exitCode(err error) int {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return 127
	case errors.Is(err, fs.ErrPermission):
		return 126
	}
	return 125
}

func run() error {
	if len(os.Args) > 1 && os.Args[1] == "limit" {
		return guest.Limit(os.Args[1:])
	}
	if len(os.Args) > 1 && os.Args[1] == "exec" {
		return guest.Exec(os.Args[1:])
	}
	return guest.Main(os.Args, os.Stdin, os.Stdout)
}
