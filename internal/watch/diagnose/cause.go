// SPDX-License-Identifier: Apache-2.0

package diagnose

import "github.com/fumehood/fumehood/pkg/proposal"

// The kinds of Cause.
const (
	causeDependencies = "dependencies" // packages of the project are not installed
	causeTool         = "tool"         // a program, or the needed version of one, is not installed
	causeToolchain    = "toolchain"    // a toolchain is older than the repository asks for
	causeNetwork      = "network"      // a host is not reachable from the sandbox
	causeService      = "service"      // a database or another local server does not run
	causeApproval     = "approval"     // what it needs waits for a person's approval
)

// IsOfMachine reports whether c is that this machine, or the set-up, lacks something which the
// base of the pull request could lack, too: if a command succeeds there, c is not why it fails.
func IsOfMachine(c proposal.Cause) bool {
	return c.After == "" && (c.Kind == causeToolchain || c.Kind == causeTool || c.Kind == causeDependencies)
}
