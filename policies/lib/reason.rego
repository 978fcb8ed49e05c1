package fumehood.lib

# denial makes a member of deny.
denial(rule, message, suggestion) := {"rule": rule, "message": message, "suggestion": suggestion}

# writable places may be written by a command; dynamic ones must not.
writable := {"workspace", "tmp", "null"}

# loadable places contain code of the repository or of the command itself.
loadable := {"workspace", "tmp", "null", "control"}
