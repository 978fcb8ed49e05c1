// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
)

// version is set by the release's linker flags. A build from source has its module
// version.
var version = ""

func fumehoodVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// gvisorVersion is the version that this binary was built against.
func gvisorVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == "gvisor.dev/gvisor" {
			return m.Version
		}
	}
	return "unknown"
}

func versionText() string {
	return fmt.Sprintf("fumehood %s\ngvisor   %s\ngo       %s %s/%s\n", fumehoodVersion(), gvisorVersion(),
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (c *invocation) versionCommand() *cobra.Command {
	var format cli.Format
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: cli.GroupSetup,
		Short:   "Print the versions of fumehood, gVisor and Go",
		Example: "  fumehood version\n  fumehood version -o json | jq -r .gvisor",
		Args:    cli.NoArgs,
		RunE: c.Run(func([]string) int {
			if format.Is(cli.JSON) {
				return c.ExitCode(exitOK, c.PrintJSON(json.Marshal(map[string]string{"fumehood": fumehoodVersion(),
					"gvisor": gvisorVersion(), "go": runtime.Version()})))
			}
			return c.ExitCode(exitOK, c.Print([]byte(versionText()), nil))
		}),
	}
	format.Define(cmd, cli.Text, cli.JSON)
	return cmd
}
