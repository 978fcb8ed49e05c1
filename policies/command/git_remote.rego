# git may fetch from a remote over https when hosts were granted and no word can name a
# program. It never pushes.
package fumehood.command

# METADATA
# title: git may fetch over https when hosts were granted
# custom:
#   rule: git.remote
#   match: ["git clone . /tmp/x", "git clone --depth 1 file:///workspace /tmp/x"]
#   not_match: ["git clone . ../x", "git clone /etc /tmp/x", "git clone -c core.hooksPath=x . /tmp/x", "git clone . /tmp/x/../../etc"]
#   reaches: [
#     "git clone https://api.example.com/x.git", "git clone --depth 1 -b main https://api.example.com/a/b /tmp/b", "git fetch origin main",
#     "git ls-remote --heads https://api.example.com/x.git", "git pull --ff-only"
#   ]
#   not_reaches: [
#     "git push", "git push origin main", "git clone ext::./x", "git clone -u ./x https://api.example.com/x",
#     "git clone --config core.pager=x https://api.example.com/x", "git fetch --upload-pack=./x origin",
#     "git clone --template=./x https://api.example.com/x", "git clone https://u:p@api.example.com/x", "git clone \"$X\"", "git clone file:///etc x",
#     "git submodule update --init", "git remote add x https://api.example.com", "git clone --recurse-submodules https://api.example.com/x",
#     "git clone -c core.hooksPath=x https://api.example.com/x"
#   ]
allow contains {"rule": "git.remote"} if {
	input.command.program == "git"
	input.command.place in found
	git_remote
}

git_remote if {
	input.command.sub in {"clone", "fetch", "pull", "ls-remote"}
	networked
	input.command.static
	every word in input.command.argv { git_remote_word(word) }
}

# A clone of the workspace's own repository, below /tmp, is a copy of it, as a worktree is.
allow contains {"rule": "git.remote"} if {
	input.command.program == "git"
	input.command.place in found
	git_copy
}

git_copy if {
	input.command.sub == "clone"
	input.command.static
	count(input.command.operands) == 2
	regex.match(`^(file://)?/workspace/?$|^\.$`, input.command.operands[0].value)
	input.command.operands[1].place == "tmp"
	every o in input.command.options { regex.match(git_copy_option, o.name) }
}

git_copy_option := concat("", [
	`^(--depth|--branch|-b|--single-branch|--(no-)?tags|--quiet|-q|--no-checkout|-n`,
	`|--local|-l|--shared|-s|--no-hardlinks|--no-local)$`,
])

git_remote_word(word) if regex.match(`^(https://[\w.-]+(:\d+)?/[\w./~+%-]*|\w[\w./+-]*(:\w[\w./+-]*)?|/tmp/[\w./-]+|\.)$`, word)

git_remote_word(word) if regex.match(git_remote_option, word)

git_remote_option := concat("", [
	`^(--depth(=\d+)?|--branch|-b|--single-branch|--(no-)?tags|--quiet|-q|-v|--verbose|--progress`,
	`|--bare|--mirror|--no-checkout|-n|--filter=[\w:]+|--prune|--all|--heads|--refs|--exit-code`,
	`|--symref|--unshallow|--ff-only|--rebase|--no-recurse-submodules)$`,
])
