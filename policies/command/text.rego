# Tools that read, compute and print may read wherever a command may read. The few options
# that do more are marked in policies/options.txt.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Printing tools must not run a pager or another program
# custom:
#   rule: text.program
#   severity: medium
#   category: code
#   match: [
#     "date -s 1", "date -us 1", "file -C -m x", "sdiff -so /tmp/x a b", "zip -rTT sh a b", "unzip -: x.zip", "patch -e a < s",
#     "patch -p1 --ed < x", "jq -f x.jq",
#     "fd -x rm", "fd --exec id", "fd -e go -X cat", "bat --pager=x y", "bat --pager ./x y", "gawk -l filefuncs '{print}'", "gawk -i inplace '{print}' x",
#     "gawk -E x.awk", "gawk -p '{print}' x", "tar cf x --checkpoint=1 --checkpoint-action=exec=sh x", "tar xf x --to-command=sh", "tar -I sh -cf x y",
#     "tar cf x --use-comp=sh y", "tar -F sh -cf x y", "helm template x --post-renderer ./x", "openssl dgst -provider ./x f",
#     "openssl req -engine ./x", "terraform -chdir=/opt validate", "terraform -chdir=.. validate", "terraform -chdir=infra -chdir=/opt validate",
#     "terraform -chdir=$x validate", "jupyter nbconvert --execute x.ipynb",
#     "strace -p 1", "strace -D ./x", "strace -E LD_PRELOAD=./x.so ls"
#   ]
#   not_match: [
#     "diff -u a b", "split -l 5 x", "date +%F", "unzip -l x.zip", "patch -p1 < x", "gzip -k x", "sort --compress-program=sh x", "rg --pre ./x foo",
#     "nm --plugin=./x.so a.o", "split --filter=sh x", "diff -l a b", "install -vs a b", "fd -e go parse", "bat --plain src/a.rs",
#     "awk -v n=1 '{print n}' x", "terraform -chdir=infra/prod validate"
#   ]
deny contains lib.denial(
	"text.program",
	sprintf("%s's %s runs a program, loads code, changes what is elsewhere or reads what the text does not show", [input.command.program, e.name]),
	"remove the option",
) if {
	some e in input.command.effects
	e.kind == "run"
	not running
	not input.command.program in confined
	not inner_chdir(e.name)
}

# inner_chdir is true for terraform -chdir=infra, which is cd infra.
inner_chdir(name) if {
	name == "-chdir"
	chdirs := [o | some o in input.command.options; o.name == "-chdir"]
	count(chdirs) > 0
	every o in chdirs {
		o.static
		o.place == "workspace"
	}
}

# confined are tools whose marked options only start a program or load code, which the kernel
# refuses (exec.child, exec.load), and git, whose other options are in git_options.rego.
confined := {"dc", "diff", "diff3", "git", "install", "nm", "objdump", "rg", "sort", "split"}

# METADATA
# title: Text and file tools must not write elsewhere or run what they read
# custom:
#   rule: text.option
#   severity: medium
#   category: files
#   match: ["sed --in-place=/etc/%s s/a/b/ x", "sed -i/etc/%s s/a/b/ x", "sed --file=x.sed f", "sed -nf x.sed f", "jobs -x ls", "perl -i.git/* -pe 1 x"]
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
deny contains lib.denial("text.option", sprintf("sed's %s runs what it reads", [o.name]), "remove the option") if {
	input.command.program in {"sed", "gsed"}
	some o in input.command.options
	o.name == "--file"
}

deny contains lib.denial("text.option", sprintf("%s's %s writes elsewhere", [input.command.program, o.name]), "use a suffix: `sed -i.bak s/a/b/ x`") if {
	input.command.program in {"sed", "gsed", "perl", "ruby"}
	some o in input.command.options
	o.name in {"--in-place", "-i"}
	regex.match(`[/*]`, o.value)
}
