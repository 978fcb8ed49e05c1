# Tools that run the repository's code. What all their words may reach is bounded, whatever
# an option is called: the workspace, /tmp for what is written, and nothing else.
package fumehood.command

import data.fumehood.lib

# running holds for build, test and check tools, and for programs of the workspace.
running if input.command.program in lib.runners

running if input.command.place in {"workspace", "tmp"}

running if client

# joined is a first look at all words at once: a look at each costs ten times as much.
joined := concat("\n", input.command.argv)
