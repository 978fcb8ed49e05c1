# Tools that run the repository's code have more options than any table holds. So
# what all their words may reach is bounded here, whatever the option is called:
# the workspace, /tmp for what is written, and nothing else.
package fumehood.command

import data.fumehood.lib

# running holds for build, test and check tools, and for programs of the workspace.
running if input.command.program in lib.runners

running if input.command.place in {"workspace", "tmp"}

running if client

# joined is a first look at all words at once: most commands hold nothing of what
# the rules below look for, and a look at each word costs ten times as much.
joined := concat("\n", input.command.argv)

pathlike if regex.match(`(?m)(^|[=:,;@"'])(~|/|\.\./)|^-[A-Za-z](~|/|\.\./)`, joined)

# spoken are the words that may name a path: not the code after -c or -e.
spoken contains [i, word] if {
	some i, word in input.command.argv
	not inline_code(i)
}

inline_code(i) if {
	i > 0
	input.command.program in interpreters
	regex.match(`^(-[a-zA-Z0-9]*[ceErRB]|--eval|--print|-p|-pe)$`, input.command.argv[i - 1])
}

# paths are the absolute, home or upward paths in a word, wherever they stand in it.
paths(word) := {trim_left(found, `=:,;@"'`) | some found in regex.find_n(`(^|[=:,;@"'])(~|/|\.\./)[^=:,;@"' ]*|^-[A-Za-z](~|/|\.\./)[^=:,;@"' ]*`, word, -1)}
