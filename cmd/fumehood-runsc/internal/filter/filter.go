// SPDX-License-Identifier: Apache-2.0

// Package filter gives runsc the seccomp programs that it would otherwise compile at every start of
// a sandbox (8 ms for the sentry, as much for the gofer).
//
// The programs are checked in, in programs_GOARCH.go. They are identical to the result of
// upstream's PrecompiledPrograms in the pinned version, except for a process id that upstream does
// not make a variable (see bindPID in the tests). An end-to-end test checks that, because a program
// from another version would weaken the sandbox. A second test, which always runs, renders each
// program for a process and compares it with what upstream compiles for that process. Only the
// variants that fumehood's flags can request are kept (systrap, netstack or no network, no cgo, no
// device proxies, no host sockets). For other flags or architectures upstream finds no program and
// compiles one as usual: slower, never weaker.
//
// # Why linkname
//
// Upstream fills the two maps below from generated files that only its Bazel build has; in a Go
// module they are empty and unexported, and there is no call to add to them. If a later version
// renames them, linking fails.
package filter

import (
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	boot "gvisor.dev/gvisor/runsc/boot/filter"
	gofer "gvisor.dev/gvisor/runsc/fsgofer/filter"
)

//go:generate go test -tags nightly . -run TestNightlyProgramsAreUpstreams -update

//go:linkname bootMap gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var bootMap map[string]precompiledseccomp.Program

//go:linkname goferMap gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
var goferMap map[string]precompiledseccomp.Program

// Register adds the compiled programs for the process that args (the command line without the
// program's name) starts. Other processes install no filter and pay nothing, unless they have a
// container named "boot".
//
// It must be called before runsc's own main. Unnecessary or repeated calls cannot weaken a filter:
// a program is found by its full description.
func Register(args []string) {
	for _, arg := range args {
		switch arg {
		case "boot":
			// The first lookup makes the map; if it came later, it would replace ours.
			boot.GetPrecompiled("")
			add(bootMap, bootPrograms())
			return
		case "gofer":
			gofer.GetPrecompiled("")
			add(goferMap, goferPrograms())
			return
		}
	}
}

func add(to map[string]precompiledseccomp.Program, programs []precompiledseccomp.Program) {
	for _, program := range programs {
		to[program.Name] = program
	}
}
