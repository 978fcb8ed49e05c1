// SPDX-License-Identifier: Apache-2.0

// Package session keeps a gate.Session in a process of its own, so that several commands of
// the command line use it one after the other.
//
// The process has a directory, named like the session, below the user's state directory. Its
// lock says that the session lives; the kernel releases it however the process ends. The
// directory has the process's unix socket, where it answers as package remote has it.
//
// The package promises:
//
//   - No other user can use a session: the directories belong to this user and others cannot
//     enter them, and both ends check the other's user with SO_PEERCRED.
//   - There is one session of a name. One whose process was killed does not count; its
//     directory is removed when someone asks for it.
//   - A proposal passes gate.Session.Do, like one of a plan. If its client goes away, its
//     command is killed; the session goes on. No client can choose a proposal's id, approve one, or
//     start a command in the background.
//   - However the session ends except by SIGKILL, its log is sealed: at a client's request, by
//     SIGTERM, or because it was idle or open for too long.
//   - Requests are bounded: 1 MiB of a proposal, 32 MiB of a file.
//
// It does not protect a user's sessions from that user's other processes.
package session
