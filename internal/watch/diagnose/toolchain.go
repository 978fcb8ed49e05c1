// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"slices"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/toolchain"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// oldToolchain finds that the command started a toolchain that is older than the repository asks
// for: one that the pull request's base asks for, too.
func oldToolchain(c *command) *proposal.Cause {
	for _, u := range c.unmet {
		if u.Base && u.Version != "" && isPlain(u) && c.hasStarted(toolchain.Tools[u.Tool].Programs...) {
			return &proposal.Cause{Kind: causeToolchain, Reason: DescribeUnmet(u), Advice: describeInstall(u)}
		}
	}
	return nil
}

// askedByChange returns the entry of unmet for the toolchain of v, if it is not known that the base of the
// pull request asks for a newer one, too, or nil.
func (v version) askedByChange(unmet []proposal.Unmet) *proposal.Unmet {
	for _, u := range unmet {
		tool, known := toolchain.Tools[u.Tool]
		if known && !u.Base && u.Version != "" && isPlain(u) && (v.tool == u.Tool || v.tool == tool.Toolchain) {
			return &u
		}
	}
	return nil
}

// OldToolchain returns what to do about r, which failed with the message that a toolchain is too old for
// what only the pull request is known to ask for, or "". It is a hint and no Cause.
func OldToolchain(r proposal.Record, unmet []proposal.Unmet) string {
	c, ok := newCommand(r, unmet)
	if !ok {
		return ""
	}
	for _, v := range versions {
		if _, m := c.findLine(v.line); m == nil || !c.hasStarted(v.programs...) {
			continue
		}
		if u := v.askedByChange(unmet); u != nil {
			return DescribeUnmet(*u) + ". " + describeInstall(*u)
		}
	}
	return ""
}

// absentToolchain returns the Cause that the program name is not installed, if it belongs to a
// toolchain that the repository asks for, or nil.
func absentToolchain(c *command, name, line string) *proposal.Cause {
	for _, u := range c.unmet {
		if u.Version == "" && isPlain(u) && slices.Contains(toolchain.Tools[u.Tool].Programs, trimProgramName(name)) {
			return &proposal.Cause{Kind: causeTool, Reason: DescribeUnmet(u), Subject: name, Evidence: line,
				Advice: describeInstall(u)}
		}
	}
	return nil
}

// DescribeUnmet describes u: "Node 20.20.2 is too old: package.json wants >=22".
func DescribeUnmet(u proposal.Unmet) string {
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
	return known && plainPath.MatchString(u.File) && plainVersion.MatchString(u.Version) &&
		plainNumber.MatchString(u.Least) && plainRange.MatchString(u.Wants)
}

// describeInstall says what installs the toolchain, with the lines for a workflow.
func describeInstall(u proposal.Unmet) string {
	if step := toolchain.InstallStep(u.Tool, u.Least); step != "" {
		return "Put such a version first in `PATH`. In a workflow, add this step before fumehood: `" + step + "`."
	}
	return "Put such a version first in `PATH`, in a workflow by a step before fumehood."
}
