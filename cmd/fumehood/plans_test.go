// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

// Plans that several tests run, and a rule that holds one of them for approval.
const (
	lookPlan = "schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat README.md}\n"
	catPlan  = "INPUT_PLAN=" + lookPlan
)

const askPlan = `schema: fumehood.plan/v1
proposals:
  - {id: look, run: cat README.md}
  - {id: order, run: sort notes/new.txt}
`

var askRule = map[string]string{".github/fumehood/ask.rego": `package fumehood.command

# METADATA
# title: Sorting needs a person
ask contains {"rule": "house.sort", "message": "a person must look at what is sorted", "suggestion": "leave it unsorted"} if {
	input.command.program == "sort"
}
`}
