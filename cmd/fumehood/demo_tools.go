// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// demoTools are the programs that the demo's commands need from the host.
var demoTools = []string{"go", "gofmt", "node", "python3"}

// keepInstalled leaves out the proposals whose program this host lacks: they would show a
// missing program, not fumehood.
func keepInstalled(proposals []proposal.Proposal, say func(string)) []proposal.Proposal {
	for _, tool := range demoTools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		say(tool + " is not installed: the demo skips the commands that need it")
		proposals = slices.DeleteFunc(proposals, func(q proposal.Proposal) bool { return demoToolOf(q) == tool })
	}
	return proposals
}

// demoToolOf is the first word of a proposal of the demo.
func demoToolOf(q proposal.Proposal) string {
	switch q.Form() {
	case "argv":
		return q.Argv[0]
	case "code":
		return "python3"
	}
	first, _, _ := strings.Cut(q.Run, " ")
	return first
}
