// SPDX-License-Identifier: Apache-2.0

package confine

import "gvisor.dev/gvisor/pkg/seccomp"

// archNeeded are needed calls that other architectures do not have.
func archNeeded() seccomp.SyscallRules { return seccomp.NewSyscallRules() }
