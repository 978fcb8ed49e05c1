// SPDX-License-Identifier: Apache-2.0

// Package mcpserver is fumehood for AI agents: a server of the Model Context Protocol whose
// tools decide commands by policy, and run the allowed ones in one sandbox for each client.
//
// Policy decides, never the client. A tool's arguments become a proposal as strict as in a
// plan; the decision is in the log before anything runs. A denial is a result with the
// rule, the reason and alternatives, not an error: only fumehood's own failures and invalid
// arguments are errors.
//
// Each client has one gate.Session: files of a command are there for the next. The session
// begins with the first call that needs it, and ends with end_session, with the connection,
// after gate.DefaultIdle, or with the server's context; then the log is sealed.
//
// What commands print is untrusted text in a model's context. Everything that a tool returns
// is without control and hidden characters, limited in length, and in a fence that it cannot
// close. The package does not protect a model against believing what it reads.
//
// What policy asks about may be approved through the client (MCP's elicitation) if
// Options.Approver is Elicit. See approval.go for what such an approval is bound to, and
// what it proves.
package mcpserver
