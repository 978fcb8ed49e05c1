// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package filter

import "gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"

// There are no checked-in programs for this architecture: upstream compiles its
// own.

func bootPrograms() []precompiledseccomp.Program { return nil }

func goferPrograms() []precompiledseccomp.Program { return nil }
