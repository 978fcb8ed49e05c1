// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/google/subcommands"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/trace"
	"gvisor.dev/gvisor/runsc/cmd/util"
)

func main() {
	cli.Run(nil, map[util.SubCommand]string{
		new(cmd.Create): "", new(cmd.Start): "", new(cmd.Run): "", new(cmd.Exec): "", new(cmd.Kill): "", new(cmd.Delete): "", new(cmd.Wait): "", new(cmd.State): "",
		new(cmd.List): "", new(cmd.PS): "", new(cmd.Events): "", new(cmd.Tar): "", new(trace.Trace): "",
		new(cmd.Gofer): "internal", new(sentrycmd.Umount): "internal", new(sentrycmd.Boot): "internal",
	}, []subcommands.Command{})
}
