// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

// policyDoor has its commands in the order in which an author meets them.
func policyDoor() *door {
	d := &door{name: "policy", synopsis: "write, test, explain and roll out policy"}
	d.run = family{door: d, doors: []*door{policyInitDoor(), policyCheckDoor(), policyTestDoor(), policyEvalDoor(), policyExplainDoor(), policyInputDoor(), policyReplayDoor(), policySuggestDoor(), policyDocsDoor(), policyBundleDoor()}}.run
	return d
}
