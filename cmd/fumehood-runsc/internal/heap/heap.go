// SPDX-License-Identifier: Apache-2.0

// Package heap lets the sentry collect its garbage less often.
//
// The sentry's live heap is small, 10 to 30 MB, and its file systems make and drop an
// object for each name that a command looks up. Go's collector starts when the heap has
// doubled, so a command that reads 50,000 files waited for some forty collections: a
// sixth of its processor time and, on two processors, a third of the time of "git status".
//
// A higher GOGC would multiply whatever a command makes the sentry keep. A reserve adds a
// constant: memory that counts as live, and that nothing ever touches, so the host never
// provides it. See https://go.dev/doc/gc-guide#GOGC; runtime/debug.SetMemoryLimit is the
// opposite, a maximum.
package heap

import (
	"slices"
	"strconv"
)

const (
	most = 64 << 20
	// share of the sandbox's memory that the reserve, and thus the garbage that it permits,
	// may be.
	share = 64
)

var reserve []byte

// Reserve makes the reserve of a sandbox with these arguments of a runsc process. Only boot
// processes have a sandbox's memory among theirs; others get no reserve.
func Reserve(args []string) { reserve = make([]byte, size(args)) }

func size(args []string) uint64 {
	at := slices.Index(args, "--total-memory")
	if at < 0 || at+1 == len(args) {
		return 0
	}
	memory, err := strconv.ParseUint(args[at+1], 10, 64)
	if err != nil { // the boot process reports it
		return 0
	}
	return min(most, memory/share)
}
