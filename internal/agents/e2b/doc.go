// SPDX-License-Identifier: Apache-2.0

// Package e2b serves the wire of E2B's SDKs: programs that use the packages e2b and
// @e2b/code-interpreter unchanged run their commands and code in fumehood's sandboxes.
// docs/E2B.md lists every method, and what is different.
//
// One HTTP server has what E2B has at three addresses: the API, which knows a client by its
// key (X-API-KEY), and in each sandbox the daemon (port 49983: files and processes, Connect
// RPC as JSON) and the code interpreter (port 49999), which the SDK names in the headers
// E2b-Sandbox-Id and E2b-Sandbox-Port.
//
// # Promises
//
//   - Every command, code and change of a file that the SDK does not upload is a proposal:
//     policy decides it, and the decision is in the log before it runs. What is denied ends
//     like a command with exit code 126, or is an error PolicyDenied of code.
//   - Each sandbox is one gate.Session with its own gate, log and kernel. A sandbox is never
//     given to another client.
//   - A key sees its own sandboxes only. Everything inside of a sandbox needs the tokens of
//     that sandbox, which only its key's requests are given. Ids and tokens have 128 random
//     bits; keys and tokens are compared in constant time.
//   - A key has a maximum of sandboxes, memory and time (Quota). A sandbox ends at its
//     timeout, whatever happens in it. Requests, their bodies and their number are bounded.
//   - Of a sandbox's network, clients reach only ports of its own loopback interface that the operator has opened
//     (Options.Ports), through a command that policy decides.
//   - When the server ends, commands are killed and all logs are sealed.
//   - Web pages are refused: see package localhttp.
//
// # Not promised
//
// Clients on the same host that have a key can use the machine as far as its quota allows.
// What they type into a terminal or send to standard input is not decided: what it starts is.
// Traffic is not encrypted: the server listens on the loopback interface only.
package e2b
