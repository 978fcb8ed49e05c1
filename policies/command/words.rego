# A word that only run time knows may turn out to be an option, and options run programs.
# Tools that have such options get words that can be none, and options that are known.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Options that only run time knows
# description: A word that begins with a value from elsewhere may turn out an option, and these tools have options that run programs.
# custom:
#   rule: option.smuggled
#   match: ["git log $x", "tar xf *", "git ls-files | xargs sort", "rg $pattern"]
#   not_match: ["wc -l $f", "git log -- $f", "sort -- $f"]
deny contains lib.denial("option.smuggled", sprintf("a word that only run time knows could be an option of %s", [input.command.program]), "put -- before it, begin it with ./ or write it out") if {
	input.command.loose
	input.command.program in guarded
	not harmless_tail
}

guarded := {"git", "tar", "sort", "find", "rg", "awk", "gawk", "mawk", "nawk", "original-awk", "make", "gmake", "npm", "pnpm", "yarn", "npx", "zip", "unzip", "split", "env", "gcc", "g++", "cc", "clang", "perl", "ruby", "php"}

# A sort or awk that merely reads what a loop or xargs names cannot be told apart
# from one that is given an option; git has read-only verbs without such options.
harmless_tail if {
	input.command.program == "git"
	input.command.sub in {"rev-parse", "cat-file", "ls-files", "check-ignore", "merge-base", "show-ref", "rev-list", "ls-tree"}
}

# METADATA
# title: Unknown options of tools that can run programs
# custom:
#   rule: option.unknown
#   match: ["sort --frobnicate x", "sed --evil x", "go test -evil ./..."]
#   not_match: ["sort -rn x", "cat --whatever x"]
deny contains lib.denial("option.unknown", sprintf("the policy does not know %s's option %s", [input.command.program, name]), "use only options that the policy lists in options.txt") if {
	some name in input.command.unknown
}

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

deny contains lib.denial("option.fed", sprintf("a file name could be an option of %s", [input.command.program]), "begin the pattern with ./") if {
	input.command.program in {"sed", "gsed", "go", "cargo", "awk", "gawk", "tar", "rg", "find", "git", "sort", "pytest", "python3", "node", "perl", "ruby", "php", "rustc", "gcc", "clang", "zip", "cp", "mv", "rm", "chmod", "ln", "patch", "install", "make"}
	some i, w in input.command.operands
	w.glob
	w.value == ""
	w.star
	not separated
}

fixed_words if {
	count(input.command.argv) > 0
	some i, word in input.command.argv
	i > 0
	word == "--"
}

separated if "--" in input.command.argv

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
