# git may change the sandbox's copy, but not the files that control git and the code host. Its
# configuration may contain credentials.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: git changes no control files and prints no credentials
# custom:
#   rule: git.place
#   severity: medium
#   category: files
#   floor: true
#   match: [
#     "git config --get-all http.https://github.com/.extraheader", "git mv a .github/workflows/a.yml", "git rm .github/workflows/a.yml",
#     "git config --list --show-origin", "git merge-file .git/hooks/pre-commit a b",
#     "git -C .git/hooks merge-file pre-commit a b", "git -C .git/hooks apply x.patch", "git -C .git archive -o hooks/pre-commit HEAD",
#     "git mv a conftest.py", "git init .git/x"
#   ]
#   not_match: [
#     "git -C pkg log", "git mv a b", "git config --get user.name", "git diff --no-index a /tmp/b", "git -C \"$PWD\" log", "git help log",
#     "git -C ../other log", "git restore conftest.py", "git init /tmp/r"
#   ]
deny contains lib.denial(
	"git.place",
	sprintf("git must not work in %q, where it could write hooks and configuration", [o.value]),
	"work in the repository",
) if {
	input.command.program == "git"
	some o in input.command.options
	o.name == "-C"
	o.place == "git"
}

deny contains lib.denial("git.place", sprintf("git must not change the control file %q", [w.value]), "leave the file unchanged") if {
	input.command.program == "git"
	input.command.sub in {"mv", "rm", "restore", "checkout", "clean", "merge-file", "init"}
	some w in input.command.operands
	w.place in {"control", "git"}
	not restored(w)
}

# git puts back what it has.
restored(w) if {
	input.command.sub in {"rm", "restore", "checkout", "clean"}
	w.value == "conftest.py"
}

deny contains lib.denial("git.place", "git's configuration may contain credentials", "read a single key: `git config --get user.name`") if {
	input.command.program == "git"
	input.command.sub == "config"
	some word in input.command.argv
	regex.match(git_config_secret, word)
}

git_config_secret := concat("", [
	`(?i)extraheader|credential|token|password|^--show-origin$|insteadof|sslkey|proxy|^http\.`,
	`|^includeif|^include\.`,
])
