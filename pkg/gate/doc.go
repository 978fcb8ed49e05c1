// SPDX-License-Identifier: Apache-2.0

// Package gate is fumehood for Go programs: it decides the proposals of a plan, runs
// in gVisor what policy allows, and reports what happened.
//
// A Gate is complete and closed. The zero Options are the strictest useful ones:
//
//   - the shipped policy decides every command, the code inside it and every program
//     that it starts;
//   - commands see the host's tools, read-only, and the workspace under an overlay; no
//     credential, no variable of the caller's environment and no network;
//   - git ignores configuration with which a repository could run a program;
//   - commands are observed, and everything that leaves passes the redactor;
//   - a signed audit log, in a new directory, has each decision before it takes effect.
//
// An empty or nil field never grants anything. A field that weakens protection has a
// name that ends in Unsafe, and the report's Run.Unenforced lists what it weakens.
//
// Embedders write one line at the start of main, because the network gateway is this
// program in a separate process:
//
//	if code, is := gate.Helper(); is {
//		os.Exit(code)
//	}
//
// Without that line, commands to which policy granted a host do not run.
//
// Running needs Linux and root. The package does not protect the commands of a run from
// each other, and does not protect against a vulnerability in gVisor.
package gate
