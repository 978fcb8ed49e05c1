package fumehood.command

import data.fumehood.lib

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

text_patterns := {
	"unzip": `^-[a-zA-Z]*:|^-[a-zA-Z]*:[a-zA-Z]*$`, "iconv": `^(-o|--output)=?(/|~|\.\./|$)|^-o`, "csplit": `^(-f|--prefix=?)(/|~|\.\./)`, "patch": `^-[a-zA-Z]*[eD]$|^--ed|^-i/|^-B|^-Y|^-z/|^--(prefix|basename-prefix|suffix)`,
	"sed": `^(-i|--in-place=?|--in-pl\w*=?).*[/*]|^--fi|^-[nErsuz]*f`, "gsed": `^(-i|--in-place=?).*[/*]|^--fi|^-[nErsuz]*f`, "gzip": `^-S/|^--suffix=.*/`, "time": `^(-o|--output|-a$|--append)`, "xargs": `^--process-slot`, "jobs": `^-\w*x`, "ln": `^--backup=|^-S/`, "sort": `^--files0-from=-?/`, "wc": `^--files0-from=/`,
	"nm": `^(--plugin|@)`, "objdump": `^(--plugin|@)`, "c++filt": `^@`, "readelf": `^@`, "size": `^@`, "strings": `^@`, "ar": `^(--plugin|@)`, "tree": `^-[a-zA-Z]*o|^--output`, "file": `^-[a-zA-Z]*[Cm]`, "tee": `^--output-error=/`, "yq": `^(-s|--split-exp)`,
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
# METADATA
# title: yq edits and reads files of the workspace
# custom:
#   rule: yq.place
#   match: ["yq -i '.on = 1' .github/workflows/ci.yml", "yq --inplace .a=1 /etc/x.yml", "yq -i .a=1 .git/config"]
#   not_match: ["yq -i .a=1 config.yml", "yq .on .github/workflows/ci.yml"]
deny contains lib.denial("yq.place", sprintf("yq would change %q", [w.value]), "change files of the workspace or /tmp") if {
	input.command.program == "yq"
	some word in input.command.argv
	regex.match(`^-[a-zA-Z]*i|^--in`, word)
	some w in input.command.operands
	w.place in {"control", "git", "outside", "secret", "home"}
}

# METADATA
# title: awk names its files on the command line
# custom:
#   rule: awk.argv
#   match: ["awk 'BEGIN{ARGV[1]=\"/etc/shadow\";ARGC=2}{print}'", "awk '{ARGC=3}' x"]
#   not_match: ["awk '{print $1}' x", "awk 'BEGIN{print ARGC}' x"]
deny contains lib.denial("awk.argv", "an awk script may not choose the files it reads", "name the files on the command line") if {
	input.command.program in {"awk", "gawk", "mawk", "nawk", "original-awk"}
	some word in input.command.argv
	regex.match(`ARGV\s*\[[^\]]*\]\s*=[^=]|ARGC\s*[-+]?=[^=]|ARGC\s*(\+\+|--)|PROCINFO|SYMTAB|@(load|include|namespace)|FUNCTAB`, word)
}

# METADATA
# title: What is removed is named
# custom:
#   rule: files.removed
#   match: ["rm -rf $X/*", "rm -rf \"$X\"/*", "cd \"$X\" && rm -rf *", "rm -rf $(cat x)", "rm -rf *", "rm -rf ."]
#   not_match: ["rm -f *.log", "rm -rf dist", "tmp=$(mktemp -d); rm -rf \"$tmp\"", "rm -f \"$f\"", "rm -rf build/*", "rm -rf \"$tmp\"", "trap 'rm -rf \"$tmp\"' EXIT"]
deny contains lib.denial("files.removed", sprintf("only run time knows what %s removes", [input.command.program]), "name what is to be removed, or a folder that mktemp made") if {
	input.command.program == "rm"
	some word in input.command.argv
	regex.match(`^-[a-zA-Z]*[rR]|^--rec`, word)
	some w in input.command.operands
	open_ended(w)
}

open_ended(w) if {
	not w.static
	w.glob
	w.value in {"", "./"}
}

open_ended(w) if {
	not w.static
	w.value == ""
	w.bare == false
}

open_ended(w) if w.value in {".", "./", ".."}

# METADATA
# title: Words that only run time knows bring no options to tools that run programs
# custom:
#   rule: option.fed
#   match: ["echo -toolexec=./x | xargs go build", "ls | xargs cargo build", "sed -n p *", "go vet *", "find . | xargs pytest"]
#   not_match: ["git ls-files | xargs wc -l", "sed -n p ./*", "sed -n 1p *.md", "go list ./... | xargs -n1 echo", "go list ./... | xargs go vet", "git diff --name-only | xargs ruff check", "find . -name '*.go' | xargs gofmt -l", "find . -name '*.txt' | xargs sed -n 1p"]
deny contains lib.denial("option.fed", sprintf("what xargs reads could be an option of %s", [input.command.program]), "put -- before it, or name the files") if {
	"xargs" in input.command.via
	input.command.program in {"go", "cargo", "pytest", "mvn", "gradle", "java", "node", "python3", "jest", "cmake", "bazel", "rustc", "clang", "clang++", "dotnet", "poetry", "uv", "tox", "nox", "deno", "bun"}
	not input.command.sub in {"vet", "list", "doc", "fmt"}
	not fixed_words
}

fixed_words if {
	count(input.command.argv) > 0
	some i, word in input.command.argv
	i > 0
	word == "--"
}

deny contains lib.denial("option.fed", sprintf("a file name could be an option of %s", [input.command.program]), "begin the pattern with ./") if {
	input.command.program in {"sed", "gsed", "go", "cargo", "awk", "gawk", "tar", "rg", "find", "git", "sort", "pytest", "python3", "node", "perl", "ruby", "php", "rustc", "gcc", "clang", "zip", "cp", "mv", "rm", "chmod", "ln", "patch", "install", "make"}
	some i, w in input.command.operands
	w.glob
	w.value == ""
	w.star
	not separated
}

separated if "--" in input.command.argv

# METADATA
# title: A login shell reads other files first
# custom:
#   rule: shell.login
#   match: ["bash -lc ls", "bash -l -c 'go test'", "bash --login -c ls"]
#   not_match: ["bash -c ls", "bash -euo pipefail -c ls"]
deny contains lib.denial("shell.login", "a login shell reads profiles first", "use bash -c") if {
	input.command.program in {"bash", "sh", "dash"}
	some i, word in input.command.argv
	regex.match(`^-[a-zA-Z]*l[a-zA-Z]*$|^--login$`, word)
	not after_script(i)
}

after_script(i) if {
	some j, word in input.command.argv
	j < i
	regex.match(`^[^-].*`, word)
}

# METADATA
# title: valgrind traces a program of the workspace or a known tool
# custom:
#   rule: valgrind.program
#   match: ["valgrind --trace-children=yes sh -c nc", "valgrind bash -c id", "valgrind --db-attach=yes ./x", "valgrind --log-file='|sh' ./x"]
#   not_match: ["valgrind --leak-check=full ./build/test", "valgrind ./x"]
deny contains lib.denial("valgrind.program", "valgrind starts another program", "name a program of the workspace") if {
	input.command.program == "valgrind"
	some word in input.command.argv
	regex.match(`^(sh|bash|dash|zsh|env|/|curl|wget|nc|ssh|python3?|perl|sudo|xargs)$|^/|^--(db-|log-socket|log-file=[|/])`, word)
	not startswith(word, "/tmp/")
	not startswith(word, "/workspace/")
}
