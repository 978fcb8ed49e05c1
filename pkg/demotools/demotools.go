// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package demotools finds what the demo needs of this host.
package demotools

import (
	"os/exec"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// tools are the programs that the demo's commands need from the host.
var tools = []string{"go", "gofmt", "node", "python3"}

// Keep leaves out the proposals whose program this host lacks: they would show a
// missing program, not fumehood.
func Keep(proposals []proposal.Proposal, say func(string)) []proposal.Proposal {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		say(tool + " is not installed: the demo skips the commands that need it")
		proposals = slices.DeleteFunc(proposals, func(q proposal.Proposal) bool { return toolOf(q) == tool })
	}
	return proposals
}

// toolOf is the first word of a proposal of the demo.
func toolOf(q proposal.Proposal) string {
	switch q.Form() {
	case "argv":
		return q.Argv[0]
	case "code":
		return "python3"
	}
	first, _, _ := strings.Cut(q.Run, " ")
	return first
}
