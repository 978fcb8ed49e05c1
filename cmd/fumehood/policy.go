// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

// policyDoor has its commands in the order in which an author meets them.
func policyCommand() *command {
	d := &command{name: "policy", synopsis: "write, test, explain and roll out policy"}
	d.run = group{command: d, commands: []*command{policyInitCommand(), policyCheckCommand(), policyTestCommand(), policyEvalCommand(), policyExplainCommand(), policyInputCommand(), policyReplayCommand(), policySuggestCommand(), policyDocsCommand(), policyBundleCommand()}}.run
	return d
}
