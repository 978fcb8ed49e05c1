// SPDX-License-Identifier: Apache-2.0

package lineage

// Lineages that do not come from an ExecDecision.
const (
	Program uint32 = 0 // of a program that was decided, and everything that it starts
	First   uint32 = 1 // of a process that the sandbox itself starts for a command
	// Tool and all above it are of tools that may start only what policy's table lists,
	// and of what those start. Tool itself is the command's first program.
	Tool uint32 = 1 << 31
)

// How a program that a text's process starts was judged.
const (
	StartPredicted = "predicted" // the text contains it, with all its words
	StartDecided   = "decided"   // by fumehood.command, from its real argv
	StartRefused   = "refused"   // by fumehood.command, or because nothing could be decided
)
