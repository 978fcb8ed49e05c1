// SPDX-License-Identifier: Apache-2.0

// Package interpreter runs cells of code in a process that keeps its state: Python,
// Node or bash. It has one program for Python and Node each (Program), which the caller
// starts, in a sandbox, and this end of the protocol, which needs the program's stdin and
// stdout only (Start). Bash needs no program (StartShell). The package starts no process and
// decides nothing.
//
// # Protocol
//
// JSON, one object a line, UTF-8. Version 1. The interpreter's first message is hello:
//
//	{"kind":"hello","protocol":1,"language":"python","version":"3.11.2"}
//
// Then it answers requests, one at a time. A request is compact JSON (no white space
// between tokens) whose values are strings without the character NUL, and env, an object of them:
//
//	{"op":"execute","nonce":"5f…","code":"x = 1\nx"}
//	{"op":"check","nonce":"77…","code":"x = ("}
//
// An interpreter has one name space: a context of a session is a process. check runs nothing: its answer is an error,
// of the code's syntax or, if that is right, PolicyDenied. env, which may be missing, are environment variables that
// the process has while the code runs, and no longer. Every message about a request repeats its nonce, 128 random bits:
//
//	began            the code is about to run; it can come again
//	stdout, stderr   text; late and omitted (characters), if it was written between two requests
//	display          data, an object of MIME types and texts; forms_omitted, types and sizes that were too large
//	result           as display: the value of the cell's last expression
//	error            name, value, traceback
//	done             ms, the interpreter's own time; the last message
//
// A value of data is text as it is, base64 for bytes, JSON text where the type ends in
// "json". Tables of pandas are application/vnd.dataresource+json, of at most 200 rows.
//
// What a cell and its children wrote before the cell's end comes before done. What
// processes write later comes with the next request, as late, at most 64 KiB of each stream.
//
// SIGINT to the interpreter's process interrupts the cell and keeps the state. The end
// of stdin ends the interpreter.
//
// # Shells
//
// A bash is started by ShellArgv with a pipe as its script, descriptor
// ScriptFD, and runs what it reads as any script: there is no loop in the shell that a cell
// could leave or change. The first line closes ScriptFD, of which bash has its own copy, and
// says "hello VERSION" on DoneFD. Each cell is one line:
//
//	builtin eval $'CODE' 61>&-; { builtin printf 'NONCE %d\n' "$?" >&61 || builtin exit; } 2>/dev/null
//
// Bash's own reader reads the whole line before anything of it runs, and reads the next one only
// when all of it has run. So while a cell's code runs, the pipe is empty: no trap, redirection
// or child can take a part of a later cell's text. Only a cell that forges its end, for which it
// needs the nonce and DoneFD, can run while the next line is in the pipe. In CODE every
// byte that could end a word, begin an expansion or quote is an escape (\xHH). So what
// is left of a line of which a part was taken is one word, never a command of the text.
// DoneFD is closed for the cell and what it starts.
//
// What else the line relies on (builtin, eval, printf, exit) cannot be redefined by texts that
// package parse accepts. If a cell breaks it anyway, its end is not reported; then it times
// out and its shell ends, or the shell exits. If the cell before failed, the line begins with
// "! builtin true", so that $? is 1.
//
// stdout and stderr are pipes that this end reads itself, up to the end of the cell: what was written
// before the end of the cell is in the pipes when the end is read. Output that comes between two cells belongs
// to the next.
//
// # Promises
//
//   - A message without the nonce of the running request is ignored and counted. So is a
//     line that is longer than MaxMessage or not of the format.
//   - Memory and the number of events of a cell are bounded by Limits, whatever the
//     interpreter sends. Of long output the head is passed on as it comes, the tail at
//     the end, with the number of bytes between.
//   - Execute returns: with the cell's outcome, a *DiedError when the interpreter's
//     output ended, or after ctx and twice Options.Grace. An interpreter that did not stop is
//     not used again.
//   - An exception, an exit and an interrupt of a cell are values (Outcome.Error), and so is
//     the exit status of a shell's cell (Outcome.Status). A shell that exits is a *DiedError.
//
// # Not promised
//
// A cell can lie about its own results, and about those of later cells of the same
// interpreter: it can read the nonce from the process's memory or the protocol's
// descriptors. It has no way to another interpreter. The boundary is the sandbox, and
// the evidence of what happened is the kernel's.
//
// Output of a program that a cell started, and the cell's own, are in the order in which
// they were read; stdout and stderr of one child are two pipes. Tasks and timers that a
// cell leaves behind run in Node between the cells, in Python while a later cell awaits, and for
// what they can do at once when one begins and ends. In Python a display may wait until it is replaced,
// for at most half a second or until the cell ends.
// An interrupt that comes when a cell ends may be lost. In Node, code that loops after an
// await cannot be interrupted; import in REPL input is translated by its text, which
// leaves out imports inside of templates; fds 1 and 2 of children are sockets.
package interpreter
