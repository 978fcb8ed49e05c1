// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
)

func policyDoor() *door {
	return &door{name: "policy", synopsis: "write, test, explain and roll out policy", run: runPolicy}
}

// policyDoors are the subcommands, in the order in which an author meets them.
func policyDoors() []*door {
	return []*door{policyInitDoor(), policyCheckDoor(), policyTestDoor(), policyEvalDoor(), policyExplainDoor(), policyInputDoor(), policyReplayDoor(), policySuggestDoor(), policyDocsDoor(), policyBundleDoor()}
}

func runPolicy(c *call) int {
	if len(c.args) == 0 {
		printPolicyHelp(c.stderr)
		return exitUsage
	}
	name, args := c.args[0], c.args[1:]
	switch {
	case name == "help" && len(args) > 0:
		name, args = args[0], []string{"--help"}
	case slices.Contains([]string{"help", "-h", "-help", "--help"}, name):
		printPolicyHelp(c.stdout)
		return exitOK
	}
	for _, d := range policyDoors() {
		if d.name == "policy "+name {
			c.door, c.args = d, args
			return d.run(c)
		}
	}
	fmt.Fprintf(c.stderr, "fumehood: unknown command \"policy %s\"\nfumehood: hint: fumehood policy --help lists the commands\n", printable(name))
	return exitUsage
}

func printPolicyHelp(w io.Writer) {
	fmt.Fprint(w, `write, test, explain and roll out policy

usage: fumehood policy COMMAND [flags]

`)
	for _, d := range policyDoors() {
		fmt.Fprintf(w, "  %-9s %s\n", d.name[len("policy "):], d.synopsis)
	}
	fmt.Fprint(w, `
fumehood policy COMMAND --help says more about one command.
`)
}
