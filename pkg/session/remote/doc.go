// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package remote uses a gate.Session of another machine, over HTTP/1.1 and mutual TLS 1.3.
//
// Serve, where the commands run, has one gate and one session, ever. A Client has the methods of
// a gate, and its Session those of a gate.Session.
//
// The server decides. What it promises of its clients:
//
//   - Every connection has passed the tls.Config, which must verify a client certificate.
//   - Only the client that opened the session can use it: its requests have a secret that Open
//     returned.
//   - Proposals and approvals pass the gate's own checks, like those of a local caller.
//   - Requests are bounded: 1 MiB of a document, 32 MiB of a file, 64 KiB of headers, time
//     limits for reading and writing, 64 requests and 128 connections at a time.
//   - If the connection of a request ends, its command is killed. If the client is away for
//     Options.Absent, the session ends. However it ends, its log is sealed.
//
// What the client promises of a server, which it trusts with decisions and results, and with
// nothing else:
//
//   - No answer takes unbounded memory, time or disk: lines, numbers of values, the output of a
//     command, files and the log have limits.
//   - No path of the server is used on this machine.
//   - The log that Close returns is complete, is of this session, and verifies with the key of
//     the report. That key comes from the server as well: an archive that must not depend on the
//     server compares it with a key from elsewhere.
//
// The package does not protect a session from others who have the client's certificate before
// it opens the session, and a server's network from floods of connections.
package remote
