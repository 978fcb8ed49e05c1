package fumehood.trigger

# METADATA
# title: Runs cannot start on closed or locked pull requests
# custom:
#   rule: trigger.closed
#   severity: low
#   category: approval
#   match: [{pr: {state: closed}}, {command: approve, pr: {locked: true}}, {pr: {state: ""}}]
#   not_match: [{command: help, pr: {state: closed}}, {command: explain, pr: {locked: true}}, {pr: {draft: true}}]
deny contains {
	"rule": "trigger.closed",
	"message": "runs cannot start on a closed or locked pull request",
	"suggestion": "reopen or unlock it first; help and explain still work",
} if {
	starts
	not takes_runs
}

takes_runs if {
	input.pr.state == "open"
	not input.pr.locked
}

# METADATA
# title: Runs need a known commit
# custom:
#   rule: trigger.head
#   severity: low
#   category: approval
#   match: [{pr: {head: ""}}, {pr: {head: main}}, {pr: {head: "0123456789abcdef"}}, {pr: {number: 0}}]
#   not_match: [{command: help, pr: {head: ""}}]
deny contains {"rule": "trigger.head", "message": "the commit of the pull request is unknown", "suggestion": "try again"} if {
	starts
	not known_head
}

known_head if {
	input.pr.number > 0
	regex.match(`^([0-9a-f]{40}|[0-9a-f]{64})$`, input.pr.head)
}

# METADATA
# title: The number of runs per pull request is limited
# custom:
#   rule: trigger.budget-pr
#   severity: low
#   category: limits
#   match: [{runs: {pr: 20}}, {runs: {pr: 21}}, {runs: {max_pr: 0}}, {command: approve, runs: {pr: 20}}, {runs: {pr: -1}}]
#   not_match: [{runs: {pr: 19}}, {command: help, runs: {pr: 20}}]
deny contains {
	"rule": "trigger.budget-pr",
	"message": sprintf("this pull request has used %d of its %d runs", [input.runs.pr, input.runs.max_pr]),
	"suggestion": "run the rest by hand, or raise the budget in the workflow",
} if {
	starts
	not within(input.runs.pr, input.runs.max_pr)
}

# METADATA
# title: The number of runs per day is limited
# custom:
#   rule: trigger.budget-day
#   severity: low
#   category: limits
#   match: [{runs: {day: 100}}, {runs: {day: 100, pr: 0}}, {command: rerun, runs: {max_day: 0}}, {runs: {day: -1}}]
#   not_match: [{runs: {day: 99}}, {command: explain, runs: {day: 100}}]
deny contains {
	"rule": "trigger.budget-day",
	"message": sprintf("this repository has used %d of its %d runs today", [input.runs.day, input.runs.max_day]),
	"suggestion": "wait until midnight UTC, or raise the budget in the workflow",
} if {
	starts
	not within(input.runs.day, input.runs.max_day)
}

within(used, maximum) if {
	used >= 0
	used < maximum
}
