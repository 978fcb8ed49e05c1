# make may run the targets of the repository's makefiles, which a reviewer can read. It must
# not take recipes from elsewhere or variables that name programs, and must not install.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: make reads only the makefiles of a project
# custom:
#   rule: make.option
#   severity: medium
#   category: code
#   match: [
#     "make SHELL=./x", "make -f /tmp/Makefile", "make --eval='x:;id'", "make -C / x", "make CC=./evil", "make .SHELLFLAGS=x", "make --ev=x",
#     "make -f - x",
#     "make MAKEFLAGS=x", "make RM=factor clean", "make AWK=factor", "make OBJC:=factor x.o"
#   ]
#   not_match: [
#     "make -C /tmp/base test", "make CC='gcc -O2'", "make CXX=clang++-15", "make -j4 test", "make VERBOSE=1 build", "make AWK=gawk", "make -C sub test",
#     "make -f build/Makefile"
#   ]
deny contains lib.denial("make.option", sprintf("make's %s adds recipes that no reader of the pull request sees", [o.name]), make_instead(o)) if {
	input.command.program in {"make", "gmake"}
	some o in input.command.options
	make_option(o)
}

deny contains lib.denial(
	"make.option",
	sprintf("the variable %q may name a program", [w.value]),
	"use the programs that the makefile names; plain values are allowed",
) if {
	input.command.program in {"make", "gmake"}
	some w in input.command.operands
	contains(w.value, "=")
	not plain_variable(w)
}

deny contains lib.denial(
	"make.option",
	sprintf("the variable %q names a program or flags", [w.value]),
	"use the programs that the makefile names, or a compiler with plain flags: `make CC='gcc -O2'`",
) if {
	input.command.program in {"make", "gmake"}
	some w in input.command.operands
	names_programs(w.value)
	not usual_variable(w)
}

make_instead(o) := "use the makefile of a project in the workspace or under /tmp: `make -C /tmp/base test`" if {
	o.name != "--eval"
} else := "use a target of the repository's makefile"

names_programs(word) if regex.match(make_running_variable, word)

# As in assignments before the command.
names_programs(word) if regex.match(lib.build_program, split(word, "=")[0])

usual_variable(w) if regex.match(make_usual_value, w.value)

# The value of an assignment before the command, too, may be this.
usual_variable(w) if {
	name := split(w.value, "=")[0]
	regex.match(lib.build_program, name)
	lib.env_ok(name, substring(w.value, count(name) + 1, -1))
}

make_running_variable := concat("", [
	`^(SHELL|\.?SHELLFLAGS|MAKE|MAKEFLAGS|MFLAGS|GNUMAKEFLAGS|MAKEFILES|GO`,
	`|GOFLAGS|PYTHON|PIP|NODE|NPM|PAGER|EDITOR|LD_\w+|PATH|CARGO|RUSTC\w*|.*_CMD|.*COMMAND`,
	`|DOCKER)[:+?]?=`,
])

make_usual_value := concat("", [
	`^GOFLAGS=-(race|v|mod=\w+)$|^(GO=go`,
	`|PYTHON=python(3(\.\d+)?)?|NODE=node|NPM=npm|PIP=pip3?|CARGO=cargo)$`,
])

make_option(o) if o.name == "--eval"

make_option(o) if {
	o.name in {"--makefile", "--include-dir"}
	not makefile_place(o)
}

# A project under /tmp was made by the run, such as a worktree, and cd there is allowed.
make_option(o) if {
	o.name == "--directory"
	not makefile_place(o)
	o.place != "tmp"
}

makefile_place(o) if {
	o.place in {"workspace", "dynamic"}
	o.value != "-"
}

plain_variable(w) if {
	regex.match(`^[A-Za-z_][A-Za-z0-9_-]*[:+?]?=[A-Za-z0-9_.,/:=+ -]*$`, w.value)
}

deny contains lib.denial(
	"code.target",
	"make install would write outside the workspace",
	"install below /tmp: `make DESTDIR=/tmp/x install`",
) if {
	input.command.program in {"make", "gmake", "ninja", "meson"}
	some word in input.command.argv
	regex.match(`^(install|install-\w+|uninstall|DESTDIR=/?)$`, word)
	not installs_below
}

# installs_below is true for an installation below /tmp or in the workspace, and for one that is only printed.
installs_below if {
	input.command.program in {"make", "gmake"}
	directories := [word | some word in input.command.argv; regex.match(`^DESTDIR.*$`, word)]
	count(directories) == 1
	regex.match(`^DESTDIR=(/tmp/)?\w[\w.-]*(/\w[\w.-]*)*/?$`, directories[0])
}

installs_below if {
	input.command.program in {"make", "gmake"}
	some word in input.command.argv
	word in {"-n", "--dry-run", "--just-print"}
}

deny contains lib.denial("code.target", sprintf("%s must not set make's variable %s", [input.command.program, word]), "use the repository's settings") if {
	input.command.program in {"cmake", "ninja", "make", "gmake"}
	some word in input.command.argv
	regex.match(make_target_variable, word)
}

make_target_variable := concat("", [
	`^(SHELL|MAKE|MAKEFLAGS|CC|CXX|LD|AR|\.SHELLFLAGS)=[./~$]`,
	`|^\w*(FLAGS|_ARCH|LIBS|_OPTION)[:+?]*=.*(-fplugin|-B|-specs|-wrapper|@)`,
])
