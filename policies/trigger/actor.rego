package fumehood.trigger

# METADATA
# title: Only commands that there are
# custom:
#   rule: trigger.command
#   match: [{command: deploy}, {command: ""}, {command: Run}]
#   not_match: [{command: run}, {command: help}]
deny contains {"rule": "trigger.command", "message": "there is no such command", "suggestion": "write run, approve, rerun, explain or help", "text": input.command} if {
	not input.command in starting | asking
}

# METADATA
# title: Nobody whose role is not known
# custom:
#   rule: trigger.role
#   match: [{actor: {permission: ""}}, {actor: {permission: Admin}}, {command: help, actor: {permission: owner, author: true}}]
#   not_match: [{actor: {permission: none}}, {actor: {permission: write}}]
deny contains {"rule": "trigger.role", "message": "the role of who asks is not known", "suggestion": "let the job read roles, and ask again", "text": input.actor.login} if {
	not input.actor.permission in roles
}

# METADATA
# title: Nobody who is neither a person nor a bot
# custom:
#   rule: trigger.actor
#   match: [{actor: {type: Organization}}, {actor: {type: ""}}, {command: help, actor: {type: Mannequin}}, {actor: {id: 0}}, {actor: {id: -1}, bots: [-1]}]
#   not_match: [{actor: {type: Bot}}, {actor: {type: User}}]
deny contains {"rule": "trigger.actor", "message": "who asks is neither a person nor a bot", "suggestion": "ask from an account of a person", "text": input.actor.login} if {
	not is_actor
}

is_actor if {
	input.actor.type in {"User", "Bot"}
	input.actor.id > 0
}

# METADATA
# title: Starting takes write permission, on forks too
# description: It is the permission of who comments that counts, never of the author.
# custom:
#   rule: trigger.permission
#   match: [{actor: {permission: triage}}, {actor: {permission: read, author: true}}, {command: approve, actor: {permission: none}}, {pr: {fork: true}, actor: {permission: read, author: true}}]
#   not_match: [{actor: {permission: maintain}}, {command: help, actor: {permission: read}}, {actor: {type: Bot, permission: none}}]
deny contains {"rule": "trigger.permission", "message": sprintf("%s takes write permission on the repository", [input.command]), "suggestion": "ask somebody with write permission to write it", "text": input.actor.login} if {
	starts
	not writer
	not bot
}

# METADATA
# title: Explaining takes triage permission, or being the author
# custom:
#   rule: trigger.asking
#   match: [{command: help, actor: {permission: read}}, {command: explain, actor: {permission: none}}]
#   not_match: [{command: help, actor: {permission: none, author: true}}, {command: explain, actor: {permission: triage}}, {actor: {permission: read}}]
deny contains {"rule": "trigger.asking", "message": sprintf("%s is for the author and for who may triage", [input.command]), "suggestion": "read the documentation; the comment says what ran", "text": input.actor.login} if {
	input.command in asking
	not may_ask
}

# METADATA
# title: Nobody approves what they wrote
# custom:
#   rule: trigger.own-approval
#   match: [{command: approve, actor: {author: true}}, {command: approve, actor: {author: true, permission: admin}}]
#   not_match: [{command: approve}, {command: run, actor: {author: true}}]
deny contains {"rule": "trigger.own-approval", "message": "the author of a pull request does not approve what runs on it", "suggestion": "ask somebody else with write permission to approve", "text": input.actor.login} if {
	input.command == "approve"
	input.actor.author
}

# METADATA
# title: Bots propose, when policy lists them, and do nothing else
# description: Bots are known by id, since anybody may choose a name.
# custom:
#   rule: trigger.bot
#   match: [{actor: {type: Bot, permission: admin}}, {command: approve, actor: {id: 41, type: Bot}, bots: [41]}, {command: help, actor: {type: Bot}}, {command: rerun, actor: {id: 41, type: User}, bots: [41]}]
#   not_match: [{actor: {id: 41, type: Bot}, bots: [41]}, {command: approve}]
deny contains {"rule": "trigger.bot", "message": "bots may only propose plans, and only those that the policy lists by id", "suggestion": "list the bot's id to let it propose; a person approves", "text": input.actor.login} if {
	bot
	not proposes
}

proposes if {
	listed
	input.command == "run"
}

# METADATA
# title: A bot that reads a fork's code starts nothing by itself
# description: It has read what a stranger wrote, and its permission is none.
# custom:
#   rule: trigger.fork
#   match: [{actor: {id: 41, type: Bot, permission: none}, bots: [41], pr: {fork: true}}]
#   not_match: [{actor: {id: 41, type: Bot, permission: none}, bots: [41]}, {pr: {fork: true}}, {actor: {permission: read}, pr: {fork: true}}, {command: help, actor: {type: Bot, permission: none}, pr: {fork: true}}, {actor: {id: 41, type: Bot, permission: write}, bots: [41], pr: {fork: true}}]
deny contains {"rule": "trigger.fork", "message": "on a fork's pull request only somebody with write permission starts a run", "suggestion": "a person with write permission may run the plan", "text": input.actor.login} if {
	starts
	bot
	input.pr.fork
	not writer
}
