// SPDX-License-Identifier: Apache-2.0

// Package names is the gateway's knowledge of names: it answers the sandbox's
// look-ups, remembers which name each answer stands for, and finds out itself where a
// name really is.
//
// A Server answers the sandbox. An allowed name gets an address of a Pool that stands
// for it alone, for the whole run, so that a connection to it is known by its name and
// no program can make up a pair of name and address. Nothing of a message from the
// sandbox is passed on: not the message, its options or its type.
//
// A Resolver asks the servers that it was given, strictly: only an answer to the very
// question counts, aliases are followed link by link, and all addresses of a name are
// judged, so that one that must not be connected to refuses the whole name.
//
// A name that policy allows is a way to tell its owner something, by asking for labels
// below it. What policy says about names with a wildcard is the bound for that, and
// MaxNames of one command, whether they are there or not. Answers are believed as the
// host's own programs believe them: there is no DNSSEC here.
package names
