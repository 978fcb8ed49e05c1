package fumehood.trigger

# The role that the API reports decides, never what GitHub calls an association: a
# contributor is somebody whose pull request was merged once.
roles := {"admin", "maintain", "write", "triage", "read", "none"}

writers := {"admin", "maintain", "write"}

readers := writers | {"triage"}

starting := {"run", "rerun", "approve"}

asking := {"explain", "help"}

writer if input.actor.permission in writers

starts if input.command in starting

listed if input.actor.id in input.bots

# A machine user that policy lists is a bot, whatever its type says: it proposes and
# never approves.
bot if input.actor.type == "Bot"

bot if listed
