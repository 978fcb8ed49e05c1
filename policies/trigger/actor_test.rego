package fumehood.trigger

test_the_author_never_approves if {
	denied({"command": "approve", "actor": {"permission": "admin", "author": true}}) == {"trigger.own-approval"}
}

test_a_listed_bot_never_approves if {
	changes := {"command": "approve", "bots": [9], "actor": {"type": "Bot", "permission": "admin"}}
	denied(changes) == {"trigger.bot"}
	allowed(changes) == set()
}
