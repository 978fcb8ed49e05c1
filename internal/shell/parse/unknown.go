// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An unknownKind is one reason why a text cannot be judged. Codes are stable:
// policies, tests and people refer to them.
type unknownKind struct{ code, message, hint string }

func (k unknownKind) unknownAt(span proposal.Span) proposal.Unknown {
	return proposal.Unknown{Code: "parse." + k.code, Message: k.message, Hint: k.hint, Span: span}
}

// About the text as a whole.
var (
	unknownPanic = unknownKind{"internal", "the parser failed on this text",
		"write the command more plainly, or as argv"}
	unknownLanguage = unknownKind{"language", "this language is not supported", "use python, javascript, bash or sh"}
	unknownEmpty    = unknownKind{"empty", "the text contains no command", "propose one command"}
	unknownInvalid  = unknownKind{"invalid", "the proposal is invalid", "correct what its problems say"}
	unknownLong     = unknownKind{"too-long", "the text is longer than 16 KiB",
		"split it into several proposals, or put the code in a file of the workspace"}
	unknownDeep = unknownKind{"too-deep", "the text is nested too deeply",
		"write it flat, one command after another"}
	unknownMany = unknownKind{"too-many", "the text contains more than 256 commands",
		"split it into several proposals"}
	unknownUTF8 = unknownKind{"invalid-utf8", "the text is not valid UTF-8",
		"write it in UTF-8; write other bytes as $'\\x..'"}
	unknownControl = unknownKind{"control-character",
		"the text contains a control character other than newline and tab", "remove it; carriage returns come from Windows line ends"}
	unknownBlank = unknownKind{"invisible-character", "the text contains an invisible or unusual blank character",
		"use plain spaces; where the character is intended, write it as $'\\u....'"}
	unknownSyntax  = unknownKind{"syntax", "this is not valid bash", "fix the syntax error"}
	unknownDialect = unknownKind{"dialect", "this is not bash, or needs a newer bash",
		"write it so that bash 5.0 accepts it"}
	unknownPOSIX = unknownKind{"posix", "sh parses this text differently from bash",
		"write it as POSIX shell, or use bash -c"}
	unknownUnstable = unknownKind{"unstable", "the text changes its meaning when it is printed and parsed again",
		"write it more plainly: one command a line, simple quotes"}
	unknownAmbiguous = unknownKind{"ambiguous", "parsers disagree about where the comment begins or ends",
		"leave the comment out, or put it on a line of its own without a backslash at its end"}
	unknownClosing = unknownKind{"ambiguous", "parsers disagree about where the redirection ends",
		"put a space after >&-"}
	unknownCoproc = unknownKind{"ambiguous", "parsers disagree about whether the word after coproc is a name",
		"put the coprocess in braces: coproc NAME { COMMAND; }"}
	unknownComment = unknownKind{"nested-comment", "a comment in this quoted script can be parsed in two ways",
		"leave comments out of quoted scripts"}
)

// About cells of a context, whose texts are read together.
var (
	unknownLongContext = unknownKind{"too-long",
		"the text and the earlier cells of its context together are longer than 16 KiB", "use a new context, which begins without variables"}
	unknownManyContext = unknownKind{"too-many",
		"the text and the earlier cells of its context together contain more than 256 commands", "use a new context, which begins without variables"}
)

// About programs and scripts.
var (
	unknownProgram = unknownKind{"dynamic-program", "the name of the program is known only when it runs",
		"name the program literally"}
	unknownNoProgram = unknownKind{"empty-program", "the name of the program is empty",
		"name the program literally"}
	unknownEval   = unknownKind{"eval", "eval runs text as a command", "write the command itself"}
	unknownSource = unknownKind{"source", "source runs the text of a file in this shell",
		"write its commands, or its variables, as in `NAME=value npm test`; a file of the commit that has only lines NAME=value can be read before any cd; " +
			"name the tools of a virtual environment by their path: `.venv/bin/pytest`"}
	unknownScript = unknownKind{"dynamic-script", "the script given to a shell is known only when it runs",
		"write the script literally, in single quotes, and give it values as parameters: `xargs -n1 sh -c 'wc -l \"$1\"' _`"}
	unknownScriptFile = unknownKind{"dynamic-script", "which script the shell runs is known only when it runs",
		"name the script: `bash scripts/test.sh`"}
	unknownShellStdin = unknownKind{"shell-stdin", "a shell reads its commands from standard input",
		"write the commands themselves"}
	unknownShellFile = unknownKind{"shell-option",
		"this shell option makes the shell read another file or stay interactive", "leave the option out"}
	unknownWritten = unknownKind{"written-script", "the text writes a file and then runs it",
		"propose the file's commands themselves"}
	unknownOption = unknownKind{"wrapper-option",
		"an option of this wrapper is not known, or known only when it runs", "run the inner program directly, or use only common options, literally"}
	unknownEnv = unknownKind{"wrapper-option", "the variables that env sets are known only when it runs",
		"write them: `env NAME=value npm test`"}
	unknownWrapped = unknownKind{"wrapped-program", "cannot read from its arguments what this wrapper runs",
		"run the inner program directly"}
	unknownFileDriven = unknownKind{"file-driven", "the command comes from a file or from one string that is split",
		"write the command itself"}
	unknownArgFile = unknownKind{"file-driven", "xargs reads its words from a file that is not its input",
		"let the shell open the file, as in `xargs -n 1 echo < files.txt`"}
	unknownTrap = unknownKind{"dynamic-trap", "the trap's action is known only when it runs",
		"write the action literally, in single quotes"}
	unknownCallback = unknownKind{"callback", "this builtin runs text as a command", "write the command itself"}
	unknownAlias    = unknownKind{"alias", "aliases change how later words are read",
		"write the command itself, or a function"}
	unknownShadow = unknownKind{"function-shadow", "a function has the name of a program or builtin",
		"give the function another name"}
	unknownFunctionOrder = unknownKind{"function-order", "a function may not be declared yet where its name is called",
		"declare functions first, outside if, loops and subshells"}
	unknownFunctionName = unknownKind{"function-name",
		"this function name has other characters than letters, digits and _", "use letters, digits and _"}
	unknownExportedFunc = unknownKind{"exported-function", "an exported function changes what later programs run",
		"do not export or unset functions"}
	unknownGitAlias = unknownKind{"git-alias", "a git alias makes git run something else",
		"write the git command itself"}
)

// About implicit evaluation by bash, and about settings.
var (
	unknownArithmetic = unknownKind{"hidden-evaluation",
		"bash evaluates this operand as an expression, which may run commands", "use plain numbers and variables that are only set to numbers"}
	unknownName = unknownKind{"dynamic-name",
		"the name of the variable is known only when it runs, or has a subscript", "name the variable literally"}
	unknownDeclared = unknownKind{"dynamic-name", "the names of the variables are known only when it runs",
		"write them: `export NAME=value`"}
	unknownIndirect = unknownKind{"indirect", "another variable holds the variable's name",
		"name the variable literally"}
	unknownPrompt = unknownKind{"prompt-expansion", "this expansion runs commands in the variable's value",
		"leave @P out"}
	unknownTest = unknownKind{"dynamic-test", "a word of this test may become an operator",
		"put the expansion in double quotes beside a literal operator"}
	unknownSetting = unknownKind{"shell-setting", "this setting changes how later words are read",
		"leave the setting out"}
	unknownExportAll = unknownKind{"shell-setting", "set -a exports variables without a sign of it where they are set",
		"export each one: `export NAME=value`"}
	unknownVariable = unknownKind{"shell-variable", "this variable changes how the shell reads or runs commands",
		"do not set it"}
	unknownExtglob = unknownKind{"extglob", "extended patterns are read only with a setting", "use plain patterns"}
	unknownTwice   = unknownKind{"expanded-twice", "bash expands the file after >& twice", "write >file 2>&1"}
	unknownNetwork = unknownKind{"network-redirect",
		"bash connects to a host when a redirection names /dev/tcp or /dev/udp, and what this one names is known only when it runs", "write ./ before the expansion, or name the file literally"}
	unknownQuoting = unknownKind{"quoting", "the quotes in this expansion can be parsed in two ways",
		"assign the text to a variable first"}
)
