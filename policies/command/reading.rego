package fumehood.command

import data.fumehood.lib

# METADATA
# title: Whole trees are read in the workspace and the system's own folders only
# custom:
#   rule: read.tree
#   match: ["find / -name x", "grep -rn password /etc", "rg -uu AKIA /", "tree /", "ls -R /opt", "du -a /var", "tar cf - /etc", "find ../.. -type f", "rg --files /opt", "grep --recursive x /"]
#   not_match: ["find . -name x", "grep -rn x src", "find /usr/include -name stdio.h", "find . -perm /111", "rg TODO /usr/local/go/src", "grep root /etc/passwd", "ls /", "find /tmp/x -type f"]
deny contains lib.denial("read.tree", sprintf("%s would read the whole of %q", [input.command.program, w.value]), "search the workspace") if {
	some w in input.command.operands
	w.place == "outside"
	tree_reader
	regex.match(`^(/|\.\./|\.\.$)`, w.value)
	not regex.match(`^/+(usr|lib\w*|bin|sbin|nix)(/|$)`, w.value)
	not find_argument(w.value)
}

# find's expressions have arguments that are no paths: -perm /111, -path '/x/*'.
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

# METADATA
# title: Nothing asks for a credential by name
# custom:
#   rule: read.credential
#   retry: never
#   match: ["echo \"$GITHUB_TOKEN\"", "echo ${AWS_SECRET_ACCESS_KEY}", "printenv GITHUB_TOKEN", "declare -p NPM_TOKEN", "jq -n '$ENV.GITHUB_TOKEN'", "yq -n 'env(GITHUB_TOKEN)'", "jq -n 'env.NPM_TOKEN'", "awk 'BEGIN{print ENVIRON[\"API_KEY\"]}'", "python3 -c \"print('$SECRET')\""]
#   not_match: ["printenv PATH", "grep GITHUB_TOKEN README.md", "token=1; echo $token", "echo $PATHS"]
deny contains lib.denial("read.credential", sprintf("%s would be a credential", [name]), "leave it out: the sandbox holds no credentials") if some name in input.command.credentials

deny contains lib.denial("read.credential", sprintf("%q asks for a credential", [word]), "leave it out: the sandbox holds no credentials") if {
	input.command.program in {"printenv", "declare", "typeset", "export", "env", "readonly", "local"}
	some word in input.command.argv
	not contains(word, "=")
	credential(word)
}

deny contains lib.denial("read.credential", "a filter may not read the environment", "pass what it needs with --arg or -v") if {
	input.command.program in {"jq", "yq", "gojq"}
	some word in input.command.argv
	regex.match(`\$(ENV|__prog_args)\b|\benv(\.|\[|\()|\bstrenv\(|\benvsubst\b|(^|[|( ,])env($|[|) ,])|\bload(_\w+)?\(|\binput_filename\b.*system|\bget_search_list\b`, word)
}

deny contains lib.denial("read.credential", "awk may not read the environment", "pass what it needs with -v") if {
	input.command.program in {"awk", "gawk", "mawk", "nawk", "original-awk"}
	some word in input.command.argv
	contains(word, "ENVIRON")
}

credential(name) if regex.match(`(?i)(^|_)(token|secrets?|password|passwd|credentials?|apikey|api_key|access_key|private_key|pat|auth)(_|$)`, name)

# METADATA
# title: ps shows no environments, and getent no passwords
# custom:
#   rule: read.process
#   retry: never
#   match: ["ps auxe", "ps eww 1", "ps axeww", "getent shadow", "getent gshadow x"]
#   not_match: ["ps aux", "ps -ef", "ps -o pid,etime", "getent passwd root", "ps -C node"]
deny contains lib.denial("read.process", "this shows the environment of other processes", "use ps aux or ps -ef") if {
	input.command.program == "ps"
	some i, word in input.command.argv
	regex.match(`^[a-zA-Z]*e[a-zA-Z]*$`, word)
	not ps_value(i)
}

ps_value(i) if {
	i > 0
	regex.match(`^(-[a-zA-Z]*[oCpugtU]|o|--\w+)$`, input.command.argv[i - 1])
}

deny contains lib.denial("read.process", "this shows passwords", "leave it out") if {
	input.command.program == "getent"
	some word in input.command.argv
	contains(word, "shadow")
}

# METADATA
# title: No word is decoded out of sight
# custom:
#   rule: text.decoded
#   match: ["cat \"$(echo L2V0Yw== | base64 -d)\"", "ls $(base64 --decode x)", "cat $(xxd -r -p <<< 2f)", "cat \"$(printf 2f | xxd -r -p)\"", "rm $(rev <<< x)"]
#   not_match: ["base64 -d x > y", "echo $(base64 x)", "base64 -d x | head"]
deny contains lib.denial("text.decoded", sprintf("%s decodes text that becomes part of a command", [input.command.program]), "write the text out") if {
	input.command.program in {"base64", "base32", "basenc", "xxd", "rev", "rot13", "openssl", "uudecode", "gunzip", "zcat", "iconv"}
	"substitution" in input.command.inside
	decodes
}

decodes if input.command.program in {"rev", "rot13", "openssl", "uudecode", "gunzip", "zcat", "iconv"}

decodes if {
	some word in input.command.argv
	regex.match(`^-[a-zA-Z]*[dDr]|^--d|^--reverse`, word)
}
