// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version is set by the release's linker flags; a build from source says its
// module version.
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

func printVersion(w io.Writer) {
	fmt.Fprintf(w, "fumehood %s\ngvisor   %s\ngo       %s %s/%s\n", fumehoodVersion(), gvisorVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
