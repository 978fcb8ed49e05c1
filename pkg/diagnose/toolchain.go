// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"slices"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/internal/toolchain"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// oldToolchain finds that the command started a toolchain that is older than the repository asks
// for: one that the pull request's base asks for, too.
func oldToolchain(c *command) *proposal.Cause {
	for _, u := range c.unmet {
		if u.Base && u.Version != "" && isPlain(u) && c.started(toolchain.Tools[u.Tool].Programs...) {
			return &proposal.Cause{Kind: proposal.CauseToolchain, Reason: Describe(u), Advice: describeInstall(u)}
		}
	}
	return nil
}

// absentToolchain returns the Cause that the program name is not installed, if it belongs to a
// toolchain that the repository asks for, or nil.
func absentToolchain(c *command, name, line string) *proposal.Cause {
	for _, u := range c.unmet {
		if u.Version == "" && isPlain(u) && slices.Contains(toolchain.Tools[u.Tool].Programs, bare(name)) {
			return &proposal.Cause{Kind: proposal.CauseTool, Reason: Describe(u), Subject: name, Evidence: line, Advice: describeInstall(u)}
		}
	}
	return nil
}

// Describe describes u: "Node 20.20.2 is too old: package.json wants >=22".
func Describe(u proposal.Unmet) string {
	title := toolchain.Tools[u.Tool].Title
	if u.Version == "" {
		return title + " is not installed: " + u.File + " wants " + u.Wants
	}
	return title + " " + u.Version + " is too old: " + u.File + " wants " + u.Wants
}

var (
	plainPath    = pattern.New(`^[A-Za-z0-9._][A-Za-z0-9._/-]{0,119}$`)
	plainVersion = pattern.New(`^[A-Za-z0-9.+_-]{0,40}$`)
	plainNumber  = pattern.New(`^[0-9]{1,7}(?:\.[0-9]{1,7}){0,3}$`)
	plainRange   = pattern.New(`^[A-Za-z0-9 .,|<>=~^*!+_-]{1,120}$`)
)

// isPlain reports whether u, which may come from an untrusted report, names a known toolchain, and
// its texts are short and in the characters of paths, versions and ranges.
func isPlain(u proposal.Unmet) bool {
	_, known := toolchain.Tools[u.Tool]
	return known && plainPath.MatchString(u.File) && plainVersion.MatchString(u.Version) && plainNumber.MatchString(u.Least) && plainRange.MatchString(u.Wants)
}

// describeInstall says what installs the toolchain, with the lines for a workflow.
func describeInstall(u proposal.Unmet) string {
	if step := toolchain.Step(u.Tool, u.Least); step != "" {
		return "Put such a version first in `PATH`. In a workflow, add this step before fumehood: `" + step + "`."
	}
	return "Put such a version first in `PATH`, in a workflow by a step before fumehood."
}
