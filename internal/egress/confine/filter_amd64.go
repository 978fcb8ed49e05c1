// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/seccomp"
)

// archNeeded are needed calls that other architectures do not have.
func archNeeded() seccomp.SyscallRules {
	return allowAnyArguments([]uintptr{unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_TIME})
}
