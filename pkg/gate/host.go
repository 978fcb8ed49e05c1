// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// underHost returns the ceiling that also respects this host: a command gets at most nine
// tenths of the memory, so that the kernel ends the command and not the runner.
func underHost(ceiling proposal.Limits) proposal.Limits {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return ceiling
	}
	limit := proposal.Bytes(uint64(info.Totalram) * uint64(info.Unit) / 10 * 9)
	if ceiling.Memory == 0 || limit < ceiling.Memory {
		ceiling.Memory = limit
	}
	return ceiling
}
