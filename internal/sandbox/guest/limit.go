// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const rlimitNproc = 6 // RLIMIT_NPROC, which package syscall does not name

// Limit lowers this process's own limits and execs another program: limit PIDS
// FILES PROGRAM ARG …. It is used for a command whose grant is smaller than the
// run's.
func Limit(args []string) error {
	if len(args) < 4 {
		return errors.New("usage: init limit PIDS FILES PROGRAM [ARG …]")
	}
	if err := setRlimit(rlimitNproc, args[1]); err != nil {
		return err
	}
	if err := setRlimit(syscall.RLIMIT_NOFILE, args[2]); err != nil {
		return err
	}
	return Exec(args[2:])
}

// Exec execs another program: exec PROGRAM ARG …. It is the first process of a container, so
// that gVisor's kernel, which knows what the name means there, asks about the program.
func Exec(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: init exec PROGRAM [ARG …]")
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	return syscall.Exec(path, args[1:], os.Environ())
}

func setRlimit(resource int, text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return fmt.Errorf("invalid limit %q", text)
	}
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: n, Max: n})
}
