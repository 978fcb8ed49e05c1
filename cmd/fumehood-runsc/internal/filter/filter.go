// SPDX-License-Identifier: Apache-2.0

// Package filter gives runsc the seccomp programs that it would otherwise
// compile anew at every start of a sandbox (8 ms for the sentry, as much for the
// gofer).
//
// The programs are checked in, in programs_GOARCH.go. They are what upstream's
// own PrecompiledPrograms of the pinned version returns, word for word but for a
// process id that upstream forgets to make a variable (see bindPID in the tests),
// and an end-to-end test holds them to that: a program from another version would
// be a hole in the inner wall. A second test, which always runs, compares each, as
// it is rendered for a process, with what upstream compiles for that process. Only the variants that fumehood's flags can ask for are kept
// (systrap, netstack or no network, no cgo, no device proxies, no host sockets).
// For any other flags, and for any other architecture, upstream finds nothing
// under that name and compiles as always: slower, never weaker.
//
// # Why linkname
//
// Upstream fills the two maps below from generated files that only its Bazel
// build has; in a Go module they are empty and unexported, and there is no call
// to add to them. Should a later version rename them, linking fails.
package filter

import (
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	boot "gvisor.dev/gvisor/runsc/boot/filter"
	gofer "gvisor.dev/gvisor/runsc/fsgofer/filter"
)

//go:generate go test -tags e2e . -run TestProgramsAreUpstreams -update

//go:linkname bootMap gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var bootMap map[string]precompiledseccomp.Program

//go:linkname goferMap gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
var goferMap map[string]precompiledseccomp.Program

// Register adds the compiled programs of the process that args (the command line
// without the program's name) is about to be. The other processes install no
// filter and pay nothing, unless a container of theirs is called "boot".
//
// It must come before runsc's own main. It cannot weaken a filter by being
// called too often or for nothing: a program is found by its full description.
func Register(args []string) {
	for _, arg := range args {
		switch arg {
		case "boot":
			// The first look-up makes the map; made later, it would wipe ours.
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
