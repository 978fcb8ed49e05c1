// SPDX-License-Identifier: Apache-2.0

package sentry

import "golang.org/x/sys/unix"

func forks(sysno uint64) bool {
	switch sysno {
	case unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_FORK, unix.SYS_VFORK:
		return true
	}
	return false
}
