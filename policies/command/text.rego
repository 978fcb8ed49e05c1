# Tools that read, compute and print may do so wherever a command may read. The few of their
# options that run a program or write a file are listed by tool.
package fumehood.command

import data.fumehood.lib

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
	"ldd": {},
	"sdiff": {"-o": "runs an editor", "--output": "runs an editor", "--diff-program": "runs a program"},
	"diff3": {"--diff-program": "runs a program"},
	"yq": {"--security-enable-system-operator": "runs programs", "--from-file": "loads code"},
	"gzip": {},
	"dc": {"-e": "may run a program", "-f": "may run a program"},
	"bzip2": {},
	"xmllint": {"--shell": "opens a shell", "--output": "writes a file", "--path": "loads files"},
	"man": {"-P": "runs a program"},
	"zstd": {},
	"patch": {"-o": "writes a file", "--output": "writes a file", "-d": "works elsewhere", "--directory": "works elsewhere", "--get": "runs a program", "-g": "runs a program"},
	"install": {"-s": "runs strip", "--strip-program": "runs a program"},
	"pip3": {"--index-url": "reaches a registry", "--extra-index-url": "reaches a registry"},
	"tput": {},
	"kill": {},
	"timeout": {},
	"shuf": {},
	"nm": {"--plugin": "loads code"},
	"objdump": {"--plugin": "loads code"},
	"ar": {"--plugin": "loads code"},
	"strings": {},
	"size": {},
	"bc": {},
	"column": {},
	"cmp": {},
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
# title: Options of text and file tools that write elsewhere or run what they read
# custom:
#   rule: text.option
#   match: ["unzip -: x.zip", "iconv -o /etc/x f", "csplit -f /etc/x f 1", "patch -e a < s", "patch -p1 --ed < x", "gzip -f /etc/hosts", "sed --in-place=/etc/%s s/a/b/ x", "sed -i/etc/%s s/a/b/ x", "split x /etc/y", "sed --file=x.sed f", "c++filt @/etc/x", "xz -k /etc/hosts"]
#   not_match: ["unzip -l x.zip", "iconv -f latin1 -t utf8 x", "patch -p1 < x", "csplit f 1", "sed -i.bak s/a/b/ x", "gzip -k x", "split -l 5 x y"]
deny contains lib.denial("text.option", sprintf("%s %s writes elsewhere or runs what it reads", [input.command.program, word]), "leave the option out") if {
	pattern := text_patterns[input.command.program]
	some word in input.command.argv
	regex.match(pattern, word)
}

deny contains lib.denial("text.option", sprintf("%s would change %q", [input.command.program, w.value]), "change files of the workspace or /tmp") if {
	input.command.program in {"gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "csplit", "split", "patch", "zip", "unzip", "chmod"}
	some w in input.command.operands
	not w.place in {"workspace", "tmp", "dynamic", "null"}
	not input.command.program in {"chmod", "csplit", "split"}
}

deny contains lib.denial("text.option", sprintf("%s would change or write %q", [input.command.program, o.value]), "change files of the workspace or /tmp") if {
	input.command.program in lib.changers
	not input.command.program in {"cp", "tee"}
	some o in input.command.options
	o.value != ""
	o.place in {"outside", "secret", "home", "git", "control"}
}

deny contains lib.denial("text.option", sprintf("split would write %q", [w.value]), "write in the workspace or /tmp") if {
	input.command.program in {"split", "csplit"}
	some i, w in input.command.operands
	i > 0
	not w.place in {"workspace", "tmp", "dynamic"}
	regex.match(`^(/|~|\.\.|\.g)`, w.value)
}

# A stream editor's own script may be a file of the workspace by -f alone, which the
# pull request wrote: it is not read here, so it is refused.
text_patterns := {
	"unzip": `^-[a-zA-Z]*:|^-[a-zA-Z]*:[a-zA-Z]*$`,
	"iconv": `^(-o|--output)=?(/|~|\.\./|$)|^-o`,
	"csplit": `^(-f|--prefix=?)(/|~|\.\./)`,
	"patch": `^-[a-zA-Z]*[eD]$|^--ed|^-i/|^-B|^-Y|^-z/|^--(prefix|basename-prefix|suffix)`,
	"sed": `^(-i|--in-place=?|--in-pl\w*=?).*[/*]|^--fi|^-[nErsuz]*f`,
	"gsed": `^(-i|--in-place=?).*[/*]|^--fi|^-[nErsuz]*f`,
	"gzip": `^-S/|^--suffix=.*/`,
	"time": `^(-o|--output|-a$|--append)`,
	"xargs": `^--process-slot`,
	"jobs": `^-\w*x`,
	"ln": `^--backup=|^-S/`,
	"sort": `^--files0-from=-?/`,
	"wc": `^--files0-from=/`,
	"nm": `^(--plugin|@)`,
	"objdump": `^(--plugin|@)`,
	"c++filt": `^@`,
	"readelf": `^@`,
	"size": `^@`,
	"strings": `^@`,
	"ar": `^(--plugin|@)`,
	"tree": `^-[a-zA-Z]*o|^--output`,
	"file": `^-[a-zA-Z]*[Cm]`,
	"tee": `^--output-error=/`,
	"yq": `^(-s|--split-exp)`,
}

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
# title: xargs, find and dc words that hide a program
# custom:
#   rule: dc.program
#   match: ["echo '!id' | dc", "yes '!id' | dc"]
deny contains lib.denial("dc.program", "dc runs what follows an exclamation mark", "use bc or awk") if input.command.program == "dc"
