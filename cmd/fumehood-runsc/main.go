// SPDX-License-Identifier: Apache-2.0

// Command fumehood-runsc is upstream's runsc, from the gVisor version pinned in
// go.mod, reduced to what fumehood needs: the OCI commands, the processes that
// runsc itself starts, and the commands that doctor and the tests use.
//
// Its subcommands behave like upstream's, with the same flags, files and exit
// statuses, except for five differences: the seccomp programs of the sentry and the
// gofer are precompiled (package filter), fumehood's own sink is linked in, the 47
// MB of embedded sidecar binaries are not, a sandbox presents the bundle's
// limits as its hardware (package machine), and the sentry collects its garbage less
// often (package heap). It therefore needs
// "gvisor-bin/gvisor_sentry" in its directory, which may be a hard link to itself;
// package install sets up both.
//
// It does not decide what may run: the gate does, outside.
//
// # Why not upstream's binary
//
// Releases of runsc are not Go modules, so their version cannot be pinned, built
// and checked with go.sum; and a plain "go build" of runsc starts a sandbox two
// times slower than this does, because it compiles the seccomp programs each time.
// Without CGO_ENABLED=0 the compiled programs do not match, and it is slow again.
package main

import (
	"os"
	"runtime"

	"github.com/google/subcommands"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/trace"
	"gvisor.dev/gvisor/runsc/cmd/util"

	"github.com/fumehood/fumehood/cmd/fumehood-runsc/internal/filter"
	"github.com/fumehood/fumehood/cmd/fumehood-runsc/internal/heap"
	"github.com/fumehood/fumehood/cmd/fumehood-runsc/internal/machine"
	"github.com/fumehood/fumehood/cmd/fumehood-runsc/internal/restore"
	_ "github.com/fumehood/fumehood/internal/watch/monitor/sentry" // registers the sink
)

func main() {
	os.Args = machine.Args(os.Args, runtime.NumCPU())
	heap.Reserve(os.Args)
	filter.Register(os.Args[1:])
	cli.Run(nil, commands(), []subcommands.Command{})
}

// commands are the available subcommands; any other name is a usage error. "do",
// "debug" and "install" are left out, because they are other ways to start a sandbox
// incorrectly, and "restore" is package restore's.
func commands() map[util.SubCommand]string {
	const user, look, internal = "", "look", "internal use only"
	return map[util.SubCommand]string{
		new(cmd.Create): user,
		new(cmd.Start):  user,
		new(cmd.Run):    user,
		new(cmd.Exec):   user,
		new(cmd.Kill):   user,
		new(cmd.Delete): user,
		new(cmd.Wait):   user,
		new(cmd.State):  user,

		new(restore.Restore): user,

		new(cmd.Events):  look,
		new(cmd.List):    look,
		new(cmd.PS):      look,
		new(cmd.Tar):     look,
		new(trace.Trace): look,

		new(cmd.Gofer):        internal,
		new(sentrycmd.Boot):   internal,
		new(sentrycmd.Umount): internal,
	}
}
