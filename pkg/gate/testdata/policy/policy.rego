package fumehood.command

deny contains {"rule": "own.no-make", "message": "make is not used here", "suggestion": "run the test itself"} if input.command.program == "make"
