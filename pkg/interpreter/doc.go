// SPDX-License-Identifier: Apache-2.0

// Package interpreter runs cells of code in a process that keeps its state: Python
// or Node. It has one program for each language (Program), which the caller starts, in a
// sandbox, and this end of the protocol, which needs the program's stdin and stdout only
// (Start). The package starts no process and decides nothing.
//
// # Protocol
//
// JSON, one object a line, UTF-8. Version 1. The interpreter's first message is hello:
//
//	{"kind":"hello","protocol":1,"language":"python","version":"3.11.2"}
//
// Then it answers requests, one at a time. A request is compact JSON (no white space
// between tokens) whose values are strings without the character NUL:
//
//	{"op":"execute","nonce":"5f…","context":"","code":"x = 1\nx"}
//	{"op":"remove","nonce":"81…","context":"a","code":""}
//
// A context is a name space; "" is the first. An interpreter makes a context when it is
// first named. Every message about a request repeats its nonce, 128 random bits:
//
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
// # Promises
//
//   - A message without the nonce of the running request is ignored and counted. So is a
//     line that is longer than MaxMessage or not of the format.
//   - Memory and the number of events of a cell are bounded by Limits, whatever the
//     interpreter sends. Of long output the head is passed on as it comes, the tail at
//     the end, with the number of bytes between.
//   - Execute returns: with the cell's outcome, a *DiedError when the interpreter's
//     output ended, or after ctx and Options.Grace. An interpreter that did not stop is
//     not used again.
//   - An exception, an exit and an interrupt of a cell are values (Outcome.Error).
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
// cell leaves behind run in Node between the cells, in Python only while a cell awaits.
// An interrupt that comes when a cell ends may be lost. In Node, code that loops after an
// await cannot be interrupted; import in REPL input is translated by its text, which
// leaves out imports inside of templates; fds 1 and 2 of children are sockets.
package interpreter
