# Tools that walk directory trees may walk the workspace, and the system's directories
# below /usr. Searching a whole disk looks for things that were left there.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Whole trees are read in the workspace and system directories only
# custom:
#   rule: read.tree
#   severity: low
#   category: files
#   match: [
#     "find / -name x", "grep -rn password /etc", "rg -uu AKIA /", "tree /", "ls -R /opt", "du -a /var", "tar cf - /etc", "find ../.. -type f",
#     "rg --files /opt", "grep --recursive x /"
#   ]
#   not_match: [
#     "find . -name x", "grep -rn x src", "find /usr/include -name stdio.h", "find . -perm /111", "rg TODO /usr/local/go/src",
#     "grep root /etc/passwd", "ls /", "find /tmp/x -type f"
#   ]
deny contains lib.denial("read.tree", sprintf("%s must not read all of %q", [input.command.program, w.value]), "search the workspace") if {
	some w in input.command.operands
	w.place == "outside"
	tree_reader
	regex.match(`^(/|\.\./|\.\.$)`, w.value)
	not regex.match(`^/+(usr|lib\w*|bin|sbin|nix)(/|$)`, w.value)
	not find_argument(w.value)
}

# find's expressions have arguments that are not paths: -perm /111, -path '/x/*'.
find_argument(word) if {
	input.command.program == "find"
	some i, argument in input.command.argv
	argument == word
	i > 0
	regex.match(`^-[a-z]{3,}.*`, input.command.argv[i - 1])
}

tree_reader if input.command.program in {"find", "rg", "tree", "du", "tar", "fd", "fdfind", "ag", "ack", "zip", "cloc", "tokei", "scc", "ncdu", "cpio"}

tree_reader if {
	input.command.program in {"grep", "egrep", "fgrep", "zgrep"}
	some o in input.command.options
	o.name in {"--recursive", "--dereference-recursive", "--directories"}
}

tree_reader if {
	input.command.program in {"ls", "dir", "cp", "diff"}
	some word in input.command.argv
	regex.match(`^-[a-zA-Z]*[Rr][a-zA-Z]*$|^--rec`, word)
}
