# Tools that read, compute and print may read wherever a command may read. The few options
# that run a program or write a file are marked in policies/options.txt.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Printing tools must not run a pager or another program
# custom:
#   rule: text.program
#   match: [
#     "diff -l a b", "diff -Nul a b", "split --filter=sh x", "date -s 1", "date -us 1", "file -C -m x", "sdiff -so /tmp/x a b", "install -vs a b",
#     "zip -rTT sh a b", "nm --plugin=./x.so a.o", "objdump --plugin ./x.so a.o", "jq -f x.jq", "unzip -: x.zip", "patch -e a < s",
#     "patch -p1 --ed < x"
#   ]
#   not_match: ["diff -u a b", "split -l 5 x", "date +%F", "unzip -l x.zip", "patch -p1 < x", "gzip -k x"]
deny contains lib.denial(
	"text.program",
	sprintf("%s's %s runs a program, loads code or reads arguments that the text does not show", [input.command.program, e.name]),
	"remove the option",
) if {
	some e in input.command.effects
	e.kind == "run"
	not running
	not input.command.program in apart
}

# apart are tools that have rules of their own for this.
apart := {
	"git", "go", "tar", "sort", "rg", "fd", "fdfind", "bat", "batcat", "awk", "gawk", "mawk", "nawk", "original-awk", "openssl", "helm", "terraform",
	"jupyter",
}

# METADATA
# title: Text and file tools must not write elsewhere or run what they read
# custom:
#   rule: text.option
#   match: [
#     "gzip -f /etc/hosts", "sed --in-place=/etc/%s s/a/b/ x", "sed -i/etc/%s s/a/b/ x", "sed --file=x.sed f", "sed -nf x.sed f", "xz -k /etc/hosts",
#     "jobs -x ls"
#   ]
#   not_match: ["unzip -l x.zip", "iconv -f latin1 -t utf8 x", "csplit f 1", "sed -i.bak s/a/b/ x", "gzip -k x", "split -l 5 x y"]
deny contains lib.denial("text.option", sprintf("%s %s writes elsewhere or runs what it reads", [input.command.program, word]), "remove the option") if {
	pattern := text_patterns[input.command.program]
	some word in input.command.argv
	regex.match(pattern, word)
}

text_patterns := {
	"time": `^(-o|--output|-a$|--append)`,
	"xargs": `^--process-slot`,
	"jobs": `^-\w*x`,
}

# A stream editor's script in a file of the workspace is written by the pull request. It is
# not read here, so it is denied.
deny contains lib.denial("text.option", sprintf("sed's %s writes elsewhere or runs what it reads", [o.name]), "remove the option") if {
	input.command.program in {"sed", "gsed"}
	some o in input.command.options
	regex.match(`^--file |^--in-place .*[/*]`, concat(" ", [o.name, o.value]))
}

deny contains lib.denial("text.option", sprintf("%s must not change %q", [input.command.program, w.value]), "change files in the workspace or /tmp") if {
	input.command.program in {"gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "patch", "zip", "unzip"}
	some w in input.command.operands
	not w.place in {"workspace", "tmp", "dynamic", "null"}
}

deny contains lib.denial(
	"text.option",
	sprintf("%s must not change or write %q", [input.command.program, o.value]),
	"change files in the workspace or /tmp",
) if {
	input.command.program in lib.changers
	not input.command.program in {"cp", "tee"}
	some o in input.command.options
	o.value != ""
	o.place in {"outside", "secret", "home", "git", "control"}
}

# METADATA
# title: sort must not run programs
# custom:
#   rule: sort.program
#   match: ["sort --compress-program=sh x", "sort --compress sh x", "find . | sort --comp=./x"]
#   not_match: ["sort -u x", "sort -k2,2n x"]
deny contains lib.denial("sort.program", "--compress-program runs a program", "remove the option") if {
	input.command.program == "sort"
	some e in input.command.effects
	e.kind == "run"
}

# METADATA
# title: dc is denied, since it can run programs
# custom:
#   rule: dc.program
#   match: ["echo '!id' | dc", "yes '!id' | dc"]
deny contains lib.denial(
	"dc.program",
	"dc runs the command after an exclamation mark",
	"use bc or awk, as in `awk 'BEGIN { print 6 * 7 }'`",
) if {
	input.command.program == "dc"
	not describes_itself
}
