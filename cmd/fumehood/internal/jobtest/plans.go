// SPDX-License-Identifier: Apache-2.0

package jobtest

// Plans that several tests run, and a rule that holds one of them for approval.
const (
	LookPlan = "schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat README.md}\n"
	CatPlan  = "INPUT_PLAN=" + LookPlan
)

const AskPlan = `schema: fumehood.plan/v1
proposals:
  - {id: look, run: cat README.md}
  - {id: order, run: sort notes/new.txt}
`

var AskRule = map[string]string{".github/fumehood/ask.rego": `package fumehood.command

# METADATA
# title: Sorting needs a person
ask contains {"rule": "house.sort", "message": "a person must look at what is sorted", "suggestion": "leave it unsorted"} if {
	input.command.program == "sort"
}
`}

const AcmeRules = `package fumehood.command

deny contains {"rule": "acme.grep", "message": "grep is not for reviewers", "suggestion": "none"} if input.command.program in data.acme.denied
`
