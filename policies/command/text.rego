package fumehood.command

import data.fumehood.lib

# METADATA
# title: Sorting runs no other program
# custom:
#   rule: sort.program
#   match: ["sort --compress-program=sh x", "sort --compress sh x", "find . | sort --comp=./x"]
#   not_match: ["sort -u x", "sort -k2,2n x"]
deny contains lib.denial("sort.program", "--compress-program runs the program it names", "leave the option out") if {
	input.command.program == "sort"
	some o in input.command.options
	o.name == "--compress-program"
}

# METADATA
# title: sed edits the stream and nothing else
# custom:
#   rule: sed.script
#   match: ["sed '1e id' x", "sed 's/a/b/e' x", "sed -n '/x/w /tmp/y' x", "sed \"$s\" x", "sed --expr=1e x"]
#   not_match: ["sed -n '1,20p' x", "sed -e 's/a/b/g' -e '/x/d' x", "sed -i 's/a/b/' x"]
deny contains lib.denial("sed.script", input.command.script.why, "use addresses with p, d, q, s///g, y and the like, written literally") if {
	input.command.program in {"sed", "gsed"}
	not input.command.script.plain
}

# METADATA
# title: sed -i edits files of the workspace
# custom:
#   rule: sed.place
#   match: ["sed -i 's/a/b/' /etc/hosts", "sed -i s/a/b/ .git/config", "sed -i s/a/b/ .github/workflows/x.yml"]
#   not_match: ["sed -i s/a/b/ x.go", "sed s/a/b/ /etc/hosts"]
deny contains lib.denial("sed.place", sprintf("sed -i would change %q", [w.value]), "change files of the workspace or /tmp") if {
	input.command.program in {"sed", "gsed"}
	some o in input.command.options
	o.name == "--in-place"
	some i, w in input.command.operands
	i >= script_words
	not w.place in {"workspace", "tmp", "dynamic"}
}

default script_words := 1

script_words := 0 if {
	some o in input.command.options
	o.name in {"--expression", "--file"}
}

# METADATA
# title: awk computes and prints and nothing else
# custom:
#   rule: awk.script
#   match: ["awk 'BEGIN{system(\"id\")}'", "awk '{print | \"sh\"}' x", "awk '{\"id\" | getline y}' x", "awk '{print > \"/tmp/x\"}' x"]
#   not_match: ["awk '{print $1}' x", "awk -F: '$3 > 5 {n++} END {print n}' x", "awk '/a|b/ {print}' x"]
deny contains lib.denial("awk.script", input.command.script.why, "print to standard output; pipe and redirect in the shell") if {
	input.command.program in {"awk", "gawk", "mawk", "nawk", "original-awk"}
	not input.command.script.plain
}

# METADATA
# title: awk loads no code and no extension
# custom:
#   rule: awk.option
#   match: ["gawk -l filefuncs '{print}'", "gawk -i inplace '{print}' x", "gawk -E x.awk", "gawk -p '{print}' x"]
#   not_match: ["awk -v n=1 '{print n}' x"]
deny contains lib.denial("awk.option", sprintf("awk's %s loads code or writes a file", [o.name]), "leave the option out") if {
	input.command.program in {"awk", "gawk", "mawk", "nawk", "original-awk"}
	some o in input.command.options
	o.name in {"--load", "--include", "--exec", "--debug", "--dump-variables", "--profile", "--pretty-print", "-W"}
}

# METADATA
# title: Scripts of sed and awk come from the text
# custom:
#   rule: script.file
#   match: ["sed -f /etc/x y", "awk -f /opt/x.awk y", "awk -f - y"]
#   not_match: ["awk -f scripts/sum.awk x"]
deny contains lib.denial("script.file", "the script's file is no file of the workspace", "write the script literally, in single quotes") if {
	input.command.program in {"awk", "gawk", "mawk", "nawk", "original-awk", "sed", "gsed"}
	some o in input.command.options
	o.name == "--file"
	not script_file(o)
}

script_file(o) if {
	o.static
	o.place == "workspace"
	o.value != "-"
}

# METADATA
# title: rg runs no preprocessor
# custom:
#   rule: rg.program
#   match: ["rg --pre ./x foo", "rg --pre=cat x", "rg --hostname-bin id x"]
#   not_match: ["rg -n TODO", "rg --pre-glob '*.pdf' x"]
deny contains lib.denial("rg.program", sprintf("rg's %s runs the program it names", [o.name]), "leave the option out") if {
	input.command.program == "rg"
	some o in input.command.options
	o.name in {"--pre", "--hostname-bin", "--search-zip"}
}

# METADATA
# title: find changes files of the workspace only
# custom:
#   rule: find.write
#   match: ["find / -delete", "find /etc -name x -delete", "find . -fprint /etc/x", "find .git -delete"]
#   not_match: ["find . -name '*.tmp' -delete", "find . -type f -name '*.go'"]
deny contains lib.denial("find.write", "find -delete and -fprint work in the workspace and /tmp only", "search below a folder of the workspace, and redirect the output") if {
	input.command.program == "find"
	some word in input.command.argv
	word in {"-delete", "-fprint", "-fprintf", "-fls", "-fprint0"}
	some i, w in input.command.operands
	i < 3
	not w.place in {"workspace", "tmp"}
}

deny contains lib.denial("find.write", "find -fprint writes a file", "redirect the output instead") if {
	input.command.program == "find"
	some word in input.command.argv
	word in {"-fprint", "-fprintf", "-fls", "-fprint0"}
}

# METADATA
# title: Printing tools run no pager and no other program
# custom:
#   rule: text.program
#   match: ["diff -l a b", "split --filter=sh x", "date -s 1", "file -C -m x"]
#   not_match: ["diff -u a b", "split -l 5 x", "date +%F"]
deny contains lib.denial("text.program", sprintf("%s's %s %s", [input.command.program, word, why]), "leave the option out") if {
	options := text_options[input.command.program]
	some word in input.command.argv
	startswith(word, "-")
	name := split(word, "=")[0]
	some option, why in options
	matches_option(name, option)
}

text_options := {
	"diff": {"-l": "runs pr", "--paginate": "runs pr"},
	"split": {"--filter": "runs a program"},
	"date": {"-s": "sets the clock", "--set": "sets the clock"},
	"hostname": {"-F": "sets the name", "-b": "sets the name"},
	"file": {"-C": "writes a file", "--compile": "writes a file", "-m": "loads a magic file", "--magic-file": "loads a magic file"},
	"zip": {"-TT": "runs a program", "--unzip-command": "runs a program", "-T": "runs a program"},
	"ldd": {}, "sdiff": {"-o": "runs an editor", "--output": "runs an editor", "--diff-program": "runs a program"},
	"diff3": {"--diff-program": "runs a program"},
	"yq": {"--security-enable-system-operator": "runs programs", "--from-file": "loads code"},
	"gzip": {}, "dc": {"-e": "may run a program", "-f": "may run a program"}, "bzip2": {}, "xmllint": {"--shell": "opens a shell", "--output": "writes a file", "--path": "loads files"},
	"man": {"-P": "runs a program"}, "zstd": {}, "patch": {"-o": "writes a file", "--output": "writes a file", "-d": "works elsewhere", "--directory": "works elsewhere", "--get": "runs a program", "-g": "runs a program"}, "install": {"-s": "runs strip", "--strip-program": "runs a program"},
	"pip3": {"--index-url": "reaches a registry", "--extra-index-url": "reaches a registry"},
	"tput": {}, "kill": {}, "timeout": {}, "shuf": {}, "nm": {"--plugin": "loads code"}, "objdump": {"--plugin": "loads code"}, "ar": {"--plugin": "loads code"}, "strings": {}, "size": {}, "bc": {}, "column": {}, "cmp": {},
}

# matches_option holds for the spelling, a value glued to a letter, and abbreviations.
matches_option(word, option) if word == option

matches_option(word, option) if {
	startswith(option, "--")
	count(word) > 4
	startswith(option, word)
}

matches_option(word, option) if {
	count(option) == 2
	not startswith(word, "--")
	startswith(word, option)
}

# METADATA
# title: xargs, find and dc words that hide a program
# custom:
#   rule: dc.program
#   match: ["echo '!id' | dc", "yes '!id' | dc"]
deny contains lib.denial("dc.program", "dc runs what follows an exclamation mark", "use bc or awk") if input.command.program == "dc"
