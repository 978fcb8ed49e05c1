// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"strconv"
	"syscall"
)

// keepDescriptors sees to it that no program that we start gets a descriptor which
// whoever started us let through: a runner's socket, or a file with a secret. What we
// hand to a program by intent is a copy, and still goes.
func keepDescriptors() error {
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
