// SPDX-License-Identifier: Apache-2.0

package sentry

import "golang.org/x/sys/unix"

func forks(sysno uint64) bool { return sysno == unix.SYS_CLONE || sysno == unix.SYS_CLONE3 }
