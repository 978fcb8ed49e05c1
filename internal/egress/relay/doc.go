// SPDX-License-Identifier: Apache-2.0

// Package relay handles a connection that policy allowed a program to open: it finds out what the
// connection is for, asks policy about that, and forwards what is allowed.
//
//	raw         bytes are forwarded unchanged, where policy says so
//	TLS         its first message is read (package hello); the server name must be the
//	            name that was looked up; then bytes are forwarded unchanged
//	intercepted TLS ends here, with a certificate of the run's CA; policy decides each
//	            request, which is forwarded over TLS with a verified certificate
//	HTTP        policy decides each request
//
// Anything else is refused. Every request must be for the name of its connection, in origin form,
// and unambiguous: two lengths, an invalid line end, a path with "..", or a CONNECT are refused with
// a 403 that gives the reason. So is an upgrade, except for one to a WebSocket where policy's answer
// to the request is also raw: what follows is forwarded unread, within the same limits.
//
// Credentials stay in the gateway: a program has at most a placeholder, which is replaced for one
// host, over TLS, below one path, and in one header.
//
// It does not see into TLS that is not intercepted: there a program can ask a server with many
// names for a name other than the hello's (domain fronting); intercept such hosts. Nor does it
// inspect raw connections, where a TLS hello may name any server at the address. In the answer to a
// request with a credential it masks that, in headers and in bodies without an encoding: a server
// that compresses it, or spells it in a way that mask.go does not know, gives it to the program.
// The search for secrets covers only the first part of a body; trailers of a searched request are
// not sent.
package relay
