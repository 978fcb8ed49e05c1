package fumehood.trigger

# METADATA
# title: Unknown commands are denied
# custom:
#   rule: trigger.command
#   severity: low
#   category: usage
#   match: [{command: deploy}, {command: ""}, {command: Run}]
#   not_match: [{command: run}, {command: help}]
deny contains {
	"rule": "trigger.command",
	"message": "unknown command",
	"suggestion": "use run, approve, rerun, review, explain or help",
	"text": input.command,
} if {
	not input.command in (starting | asking)
}

# METADATA
# title: Accounts with an unknown role are denied
# custom:
#   rule: trigger.role
#   severity: medium
#   category: approval
#   match: [{actor: {permission: ""}}, {actor: {permission: Admin}}, {command: help, actor: {permission: owner, author: true}}]
#   not_match: [{actor: {permission: none}}, {actor: {permission: write}}]
deny contains {
	"rule": "trigger.role",
	"message": "the role of this account is unknown",
	"suggestion": "allow the job to read roles, and try again",
	"text": input.actor.login,
} if {
	not input.actor.permission in roles
}

# METADATA
# title: Only people and bots may use commands
# custom:
#   rule: trigger.actor
#   severity: low
#   category: approval
#   match: [{actor: {type: Organization}}, {actor: {type: ""}}, {command: help, actor: {type: Mannequin}}, {actor: {id: 0}}, {actor: {id: -1}, bots: [-1]}]
#   not_match: [{actor: {type: Bot}}, {actor: {type: User}}]
deny contains {
	"rule": "trigger.actor",
	"message": "this account is neither a person nor a bot",
	"suggestion": "use a person's account",
	"text": input.actor.login,
} if {
	not is_actor
}

is_actor if {
	input.actor.type in {"User", "Bot"}
	input.actor.id > 0
}

# METADATA
# title: Starting a run requires write permission, also on forks
# description: The permission of the account that comments counts, never that of the author.
# custom:
#   rule: trigger.permission
#   severity: medium
#   category: approval
#   match: [
#     {actor: {permission: triage}}, {actor: {permission: read, author: true}}, {command: approve, actor: {permission: none}},
#     {pr: {fork: true}, actor: {permission: read, author: true}}
#   ]
#   not_match: [{actor: {permission: maintain}}, {command: help, actor: {permission: read}}, {actor: {type: Bot, permission: none}}]
deny contains {
	"rule": "trigger.permission",
	"message": sprintf("%s requires write permission on the repository", [input.command]),
	"suggestion": "ask someone with write permission to write it",
	"text": input.actor.login,
} if {
	starts
	not writer
	not bot
}

# METADATA
# title: Explanations require triage permission, except for the author
# custom:
#   rule: trigger.asking
#   severity: low
#   category: approval
#   match: [{command: help, actor: {permission: read}}, {command: explain, actor: {permission: none}}]
#   not_match: [{command: help, actor: {permission: none, author: true}}, {command: explain, actor: {permission: triage}}, {actor: {permission: read}}]
deny contains {
	"rule": "trigger.asking",
	"message": sprintf("%s is for the author and for people with triage permission", [input.command]),
	"suggestion": "read the documentation; the comment shows what ran",
	"text": input.actor.login,
} if {
	input.command in asking
	not may_ask
}

# METADATA
# title: Authors cannot approve their own pull requests
# custom:
#   rule: trigger.own-approval
#   severity: high
#   category: approval
#   match: [{command: approve, actor: {author: true}}, {command: approve, actor: {author: true, permission: admin}}]
#   not_match: [{command: approve}, {command: run, actor: {author: true}}]
deny contains {
	"rule": "trigger.own-approval",
	"message": "the author of a pull request cannot approve its commands",
	"suggestion": "ask someone else with write permission to approve",
	"text": input.actor.login,
} if {
	input.command == "approve"
	input.actor.author
}

# METADATA
# title: Bots may only propose plans, if the policy lists them
# description: Bots are identified by id, since anyone can choose a name.
# custom:
#   rule: trigger.bot
#   severity: medium
#   category: approval
#   match: [
#     {actor: {type: Bot, permission: admin}}, {command: approve, actor: {id: 41, type: Bot}, bots: [41]}, {command: help, actor: {type: Bot}},
#     {command: rerun, actor: {id: 41, type: User}, bots: [41]}
#   ]
#   not_match: [{actor: {id: 41, type: Bot}, bots: [41]}, {command: approve}]
deny contains {
	"rule": "trigger.bot",
	"message": "bots may only propose plans, and only if the policy lists their id",
	"suggestion": "list the bot's id to allow it to propose; a person approves",
	"text": input.actor.login,
} if {
	bot
	not proposes
}

proposes if {
	listed
	input.command == "run"
}

# METADATA
# title: Bots without write permission must not start runs on forks
# description: Such a bot may have read untrusted text, and it has no permission.
# custom:
#   rule: trigger.fork
#   severity: high
#   category: approval
#   match: [{actor: {id: 41, type: Bot, permission: none}, bots: [41], pr: {fork: true}}]
#   not_match: [
#     {actor: {id: 41, type: Bot, permission: none}, bots: [41]}, {pr: {fork: true}}, {actor: {permission: read}, pr: {fork: true}},
#     {command: help, actor: {type: Bot, permission: none}, pr: {fork: true}},
#     {actor: {id: 41, type: Bot, permission: write}, bots: [41], pr: {fork: true}}
#   ]
deny contains {
	"rule": "trigger.fork",
	"message": "on a fork's pull request only someone with write permission can start a run",
	"suggestion": "ask a person with write permission to run the plan",
	"text": input.actor.login,
} if {
	starts
	bot
	input.pr.fork
	not writer
}
