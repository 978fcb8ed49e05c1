// SPDX-License-Identifier: Apache-2.0

// Package relay is what the gateway does with a connection that policy let a program
// open: it finds out what is meant by it, asks policy about that, and passes on what may
// pass.
//
//	raw         bytes as they are, where policy says so
//	TLS         its first message is read (package hello); server name and the name that
//	            was looked up must be one; then bytes as they are
//	intercepted TLS ends here, with a certificate of the run's own CA; each request is asked
//	            about, and goes on over TLS whose certificate is verified
//	HTTP        each request is asked about
//
// Anything else is refused. Every request must be for the name of its connection, in
// origin form, of one plain reading: two lengths, a line end that is none, a path that
// climbs, an upgrade or a CONNECT are refused with a 403 that says why.
//
// Credentials stay here: a program holds at most a placeholder, which is replaced for
// one host, over TLS, below one path, and in one header.
//
// It does not see into TLS that is not intercepted: a server that serves many names may
// be asked there for another than the hello says (domain fronting); intercept hosts that
// do. Nor does it look at what passes raw, where a hello of TLS may name any server that
// answers at the address. It does not search bodies of responses for credentials: a server that echoes
// them in a body gives them to the program. The search for secrets sees the
// first part of a body only; trailers of a request that is searched do not leave.
package relay
