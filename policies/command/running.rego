# Tools that run the repository's code. Whatever the option, their arguments may name only
# the workspace, and /tmp for output.
package fumehood.command

import data.fumehood.lib

# running is true for build, test and check tools, and for programs in the workspace.
running if input.command.program in lib.runners

running if input.command.place in {"workspace", "tmp"}

running if client

running if input.command.inspector

running if composing

# joined is for a first check of all words at once: checking each costs ten times as much.
joined := concat("\n", input.command.argv)
