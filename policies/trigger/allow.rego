package fumehood.trigger

# METADATA
# title: People with write permission may start a run
# custom:
#   rule: trigger.writer
#   match: [{command: run}, {command: rerun, actor: {permission: maintain}}, {command: approve, actor: {permission: admin}}, {command: run, pr: {fork: true}}]
#   not_match: [{command: help}, {actor: {permission: triage}}, {actor: {type: Bot}}, {actor: {type: Organization}}, {bots: [9]}, {actor: {permission: ""}}]
allow contains {"rule": "trigger.writer"} if {
	starts
	writer
	input.actor.type == "User"
	not bot
}

# METADATA
# title: Bots that the policy lists may propose a plan
# custom:
#   rule: trigger.listed-bot
#   match: [{actor: {id: 41, type: Bot, permission: none}, bots: [41]}, {actor: {id: 41, type: User, permission: read}, bots: [7, 41]}]
#   not_match: [{actor: {id: 41, type: Bot}}, {command: approve, actor: {id: 41, type: Bot}, bots: [41]}, {actor: {id: 42}, bots: [41]}]
allow contains {"rule": "trigger.listed-bot"} if {
	input.command == "run"
	listed
}

# METADATA
# title: The author and people with triage permission may ask for explanations
# custom:
#   rule: trigger.reader
#   match: [{command: help, actor: {permission: triage}}, {command: explain, actor: {permission: read, author: true}}, {command: explain, pr: {state: closed}}]
#   not_match: [
#     {command: help, actor: {permission: read}}, {command: run}, {command: help, actor: {type: Bot}}, {command: help, actor: {type: Organization}},
#     {command: help, bots: [9]}
#   ]
allow contains {"rule": "trigger.reader"} if {
	input.command in asking
	may_ask
	input.actor.type == "User"
	not bot
}

may_ask if input.actor.permission in readers

may_ask if input.actor.author
