// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// shellOwn are the variables that bash 5.2 sets or reads itself. A text may set only
// those that hold just a path, a locale or an answer, and the counters. The others
// can change how the shell reads or runs later text, or evaluate their value.
var shellOwn = nameSet(`
	_ auto_resume BASH BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND BASH_COMPAT BASH_ENV
	BASH_EXECUTION_STRING BASH_LINENO BASH_LOADABLES_PATH BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO BASH_VERSION BASH_XTRACEFD CDPATH
	CHILD_MAX COLUMNS COMP_CWORD COMP_KEY COMP_LINE COMP_POINT COMP_TYPE COMP_WORDBREAKS COMP_WORDS COMPREPLY COPROC DIRSTACK EMACS ENV
	EPOCHREALTIME EPOCHSECONDS EUID EXECIGNORE FCEDIT FIGNORE FUNCNAME FUNCNEST GLOBIGNORE GLOBSORT GROUPS HISTCMD HISTCONTROL HISTFILE
	HISTFILESIZE HISTIGNORE HISTSIZE HISTTIMEFORMAT HOME HOSTFILE HOSTNAME HOSTTYPE IFS IGNOREEOF INPUTRC INSIDE_EMACS LANG LANGUAGE LC_ALL
	LC_COLLATE LC_CTYPE LC_MESSAGES LC_NUMERIC LC_TIME LINENO LINES MACHTYPE MAIL MAILCHECK MAILPATH MAPFILE OLDPWD OPTARG OPTERR OPTIND OSTYPE
	PATH PIPESTATUS POSIXLY_CORRECT POSIX_PEDANTIC PPID PROMPT_COMMAND PROMPT_DIRTRIM PS0 PS1 PS2 PS3 PS4 PWD RANDOM READLINE_ARGUMENT
	READLINE_LINE READLINE_MARK READLINE_POINT REPLY SECONDS SHELL SHELLOPTS SHLVL SRANDOM TERM TERMCAP TERMINFO TEXTDOMAIN TEXTDOMAINDIR
	TIMEFORMAT TMOUT TMPDIR TZ UID histchars ignoreeof
`)

// settable are the shell's own variables that a text may set to anything. Policy
// judges the values of those that control where programs and files are found.
var settable = nameSet(`
	CDPATH COLUMNS FIGNORE GLOBIGNORE HISTFILE HOME HOSTNAME INPUTRC LANG LANGUAGE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_NUMERIC LC_TIME
	LINES MAILCHECK MAPFILE OPTARG PATH REPLY SHELL TERM TIMEFORMAT TMPDIR TZ _
`)

// countable may be set to a literal number.
var countable = nameSet("SECONDS RANDOM OPTIND OPTERR TMOUT")

// numeric are the shell's own variables and parameters that hold only numbers.
var numeric = nameSet(`
	BASHPID BASH_SUBSHELL COLUMNS EPOCHREALTIME EPOCHSECONDS EUID GROUPS HISTCMD LINENO LINES OPTIND PIPESTATUS PPID RANDOM SECONDS SHLVL SRANDOM
	UID ? # $ !
`)

// surroundings are the shell's own variables that come from the environment. fumehood
// sets it, so they hold what the text assigns or something harmless.
var surroundings = nameSet(`
	CDPATH HOME LANG LANGUAGE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_NUMERIC LC_TIME PATH SHELL TERM TMPDIR TZ
`)

// anyText reports whether the shell itself fills a variable with text from elsewhere.
func anyText(name string) bool {
	return name == "-" || shellOwn[name] && !numeric[name] && !surroundings[name]
}

// checkAssignedName checks the name of a variable that the text sets, whatever the value.
func (w *walker) checkAssignedName(name string, span proposal.Span) {
	w.countAssign(name)
	if shellOwn[name] && !settable[name] || strings.HasPrefix(name, "BASH_") {
		w.addUnknown(unknownVariable, span)
	}
}

// assignedValue checks a variable that the text sets to value.
func (w *walker) assignedValue(name string, value proposal.Word, span proposal.Span) {
	if countable[name] && value.Static && strings.Trim(value.Value, "0123456789") == "" {
		w.countAssign(name)
		return
	}
	w.checkAssignedName(name, span)
	w.recordMade(name, value)
	if name == "PATH" { // dash reads functions from PATH=directory%func
		w.addDoubt(unknownVariable, span, func() bool { return !w.values["PATH"].percent })
	}
}

func (w *walker) countAssign(name string) { putInMap(&w.sets, name, w.sets[name]+1) }
