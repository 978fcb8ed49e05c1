// SPDX-License-Identifier: Apache-2.0

package sandbox

import "golang.org/x/sys/unix"

var archCalls = []int{
	unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_MKDIR,
	unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_RENAME, unix.SYS_RENAMEAT,
}
