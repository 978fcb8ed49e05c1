package fumehood.lib

# denial is a member of deny. Rules that only look up a table use it.
denial(rule, message, suggestion) := {"rule": rule, "message": message, "suggestion": suggestion}

# writable places take what a command writes; dynamic ones do not.
writable := {"workspace", "tmp", "null"}

# loadable places hold code of the repository or of the command itself.
loadable := {"workspace", "tmp", "null", "control"}
