package fumehood.trigger

# The role that GitHub's API reports decides, never the author association: a contributor
# is anyone whose pull request was merged once.
roles := {"admin", "maintain", "write", "triage", "read", "none"}

writers := {"admin", "maintain", "write"}

readers := writers | {"triage"}

starting := {"run", "rerun", "review", "approve"}

asking := {"explain", "help"}

writer if input.actor.permission in writers

starts if input.command in starting

listed if input.actor.id in input.bots

# A machine user that the policy lists is a bot, whatever its type: it may propose and
# never approve.
bot if input.actor.type == "Bot"

bot if listed
