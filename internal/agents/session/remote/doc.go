// SPDX-License-Identifier: Apache-2.0

// Package remote uses a gate.Session of another process, over HTTP/1.1: of another machine with mutual
// TLS 1.3, or of this user on this machine over a unix socket. There is one server and one client;
// what the listeners differ in is below.
//
// Serve has one gate and one session, ever. A Client is its gate.Opener: the client that opens the
// session is the only one that can use it. ServeLocal has a session that is open already; Attach
// returns it to any number of clients.
//
// The server decides. What it promises of its clients:
//
//   - Proposals and approvals pass the gate's own checks, like those of a caller in its process.
//   - Requests are bounded: 1 MiB of a document, 32 MiB of a file, 64 KiB of headers, time limits
//     for reading, 64 requests and 128 connections at a time.
//   - If the connection of a request ends, its command is killed.
//   - However the session ends, its log is sealed.
//
// With Serve:
//
//   - Every connection has passed the tls.Config, which must verify a client certificate.
//   - Requests have a secret that Client.Open returned.
//   - Writing has a time limit. If the client is away for Options.Absent, the session ends.
//
// With ServeLocal:
//
//   - Every connection is of a process of this user: both ends check that with SO_PEERCRED.
//   - A client may be away, and slow. It reads the server's files by their paths.
//
// What a client promises of a server on another machine, which it trusts with decisions and results, and with
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
