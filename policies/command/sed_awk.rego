# sed and awk may edit text with a script that the command shows. Both languages can run
# programs and write files, so pkg/policy reads the script. A script that it cannot read
# is denied.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: sed scripts may only edit text
# custom:
#   rule: sed.script
#   severity: medium
#   category: code
#   match: ["sed '1e id' x", "sed 's/a/b/e' x", "sed -n '/x/w /tmp/y' x", "sed --expr=1e x", "sed"]
#   not_match: ["sed -n '1,20p' x", "sed -e 's/a/b/g' -e '/x/d' x", "sed -i 's/a/b/' x", "sed -n \"${from},${to}p\" x"]
deny contains lib.denial("sed.script", input.command.script.why, "write the script literally, with addresses and commands such as p, d, q, s///g and y") if {
	input.command.program in {"sed", "gsed"}
	input.command.script.why != ""
	not describes_itself
}

# METADATA
# title: sed -i edits files in the workspace and /tmp only
# custom:
#   rule: sed.place
#   severity: medium
#   category: files
#   match: ["sed -i 's/a/b/' /etc/hosts", "sed -i s/a/b/ .git/config", "sed -i s/a/b/ .github/workflows/x.yml"]
#   not_match: ["sed -i s/a/b/ x.go", "sed s/a/b/ /etc/hosts"]
deny contains lib.denial("sed.place", sprintf("sed -i must not change %q", [w.value]), "change files in the workspace or /tmp") if {
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
# title: awk scripts may only compute and print
# custom:
#   rule: awk.script
#   severity: medium
#   category: code
#   match: ["awk 'BEGIN{system(\"id\")}'", "awk '{print | \"sh\"}' x", "awk '{\"id\" | getline y}' x", "awk '{print > \"/tmp/x\"}' x"]
#   not_match: ["awk '{print $1}' x", "awk -F: '$3 > 5 {n++} END {print n}' x", "awk '/a|b/ {print}' x"]
deny contains lib.denial("awk.script", input.command.script.why, "print to standard output; pipe and redirect in the shell") if {
	input.command.program in {"awk", "gawk", "mawk", "nawk", "original-awk"}
	input.command.script.why != ""
	not describes_itself
}

# METADATA
# title: awk reads only files that its command line names
# custom:
#   rule: awk.argv
#   severity: low
#   category: files
#   match: ["awk 'BEGIN{ARGV[1]=\"/etc/shadow\";ARGC=2}{print}'", "awk '{ARGC=3}' x"]
#   not_match: ["awk '{print $1}' x", "awk 'BEGIN{print ARGC}' x"]
deny contains lib.denial("awk.argv", "an awk script must not choose the files that it reads", "name the files on the command line") if {
	input.command.program in {"awk", "gawk", "mawk", "nawk", "original-awk"}
	some word in input.command.argv
	regex.match(awk_hidden_input, word)
}

awk_hidden_input := concat("", [
	`ARGV\s*\[[^\]]*\]\s*=[^=]|ARGC\s*[-+]?=[^=]|ARGC\s*(\+\+|--)|PROCINFO|SYMTAB|@(load|include`,
	`|namespace)|FUNCTAB`,
])

# METADATA
# title: sed and awk scripts come from the text or the workspace
# custom:
#   rule: script.file
#   severity: medium
#   category: code
#   match: ["sed -f /etc/x y", "awk -f /opt/x.awk y", "awk -f - y"]
#   not_match: ["awk -f scripts/sum.awk x"]
deny contains lib.denial("script.file", "the script file is not in the workspace", "write the script literally, in single quotes") if {
	input.command.program in {"awk", "gawk", "mawk", "nawk", "original-awk", "sed", "gsed"}
	some o in input.command.options
	o.name == "--file"
	not script_file(o)
}

script_file(o) if {
	o.place in {"workspace", "dynamic"}
	o.value != "-"
}
