package fumehood.command

deny contains {"rule": "own.no-task", "message": "the script is not used here", "suggestion": "run its command itself"} if input.command.program == "task"
