// SPDX-License-Identifier: Apache-2.0

// Package names is the gateway's DNS: it answers the sandbox's lookups, remembers the
// name behind each answered address, and resolves the real addresses of a name itself.
//
// A Server answers the sandbox. An allowed name gets its own address from a Pool for
// the whole run, so that a connection to it is identified by its name and no program
// can invent a pair of name and address. Nothing of a message from the sandbox is
// forwarded: not the message, its options or its type.
//
// A Resolver queries the servers that it was given, and is strict: only an answer to
// the exact question counts, aliases are followed one by one, and all addresses of a
// name are checked, so that a single forbidden address refuses the whole name.
//
// A program can send information to the owner of an allowed name by looking up labels
// below it. Two things limit this: what policy says about wildcard names, and MaxNames
// for one command, whether or not the names exist. Answers are trusted as the host's
// own programs trust them: there is no DNSSEC.
package names
