// SPDX-License-Identifier: Apache-2.0

// Package process sets up this process, watches the one that started it, and runs programs that the operator named.
package process

import (
	"context"
	"io"
	"os"
	"os/user"
	"runtime/debug"
	"strconv"
	"syscall"
)

// CloseOnExec keeps the descriptors that this process inherited, such as a runner's socket
// or a file with a secret, from every program that it starts. What is handed to a program
// on purpose is a copy, and still goes.
func CloseOnExec() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

// SetHome sets HOME to the account's home directory where it is not set, as in systemd
// services and cron jobs: the run's files, Go and the tools that know the registries
// look there.
func SetHome() {
	if os.Getenv("HOME") != "" {
		return
	}
	if account, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		_ = os.Setenv("HOME", account.HomeDir)
	}
}

// UntilEnd returns a context that is done when parent ends. The process that started us
// holds the other end of that pipe. It may not be allowed to signal us, since we are root
// and it is not, and may be killed without notice: either way its end closes.
func UntilEnd(ctx context.Context, parent io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, parent)
		cancel()
	}()
	return ctx, cancel
}

// CollectLess collects garbage only above 128 MiB until the function that it returns is
// called. Compiling the policy makes 40 MiB of garbage, and collecting it took a fifth of
// the time.
func CollectLess() (restore func()) {
	limit, percent := debug.SetMemoryLimit(128<<20), debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }
}

// SaveMemory makes the garbage collector run more often than usual for the rest of this process.
// It is for commands that read much and keep little: about 2 MB less, for twice the time in it.
func SaveMemory() { debug.SetGCPercent(25) }
