// SPDX-License-Identifier: Apache-2.0

// Package egress is the gateway: the only way out of a sandbox.
//
// A sandbox that was granted a host has one network device. The device's other end is a
// file that only the gateway's process holds, and that process runs gVisor's network
// stack on it. There is no route, packet filter or proxy variable to bypass: every frame
// that leaves the sandbox is read here or not at all. When the process ends, the link is
// dead.
//
// The gateway answers DNS queries itself and gives each name its own synthetic address,
// so that a connection is identified by the name that was looked up. It resolves the
// name, checks every address found, and connects to exactly the address that was
// checked. An upstream proxy, where the host's network requires one, connects to what it
// finds itself: see package upstream. Policy decides every name, connection, TLS hello and
// plain or intercepted request, and every decision is logged.
//
// # Two processes
//
//	supervisor (Start, Gateway)  <- control socket ->  gateway (Main)  <- TAP ->  sandbox
//	  policy, log                    package wire        sockets only
//
// The supervisor has policy and the log. It sees untrusted bytes only as messages that
// package wire accepted, and itself supplies the command that a question belongs to and
// that command's grant. The gateway has its credentials, the key of the run's
// certificate authority and the host's network, and nothing else (package confine).
//
// Commands run one at a time, between Begin and End. At the end of a command its open
// connections are cut, and the addresses of names it looked up become invalid.
//
// # Codes
//
// The gateway fails closed. On any doubt its process is killed, Options.Fail is called
// once, and every later call returns the same *proposal.StopError:
//
//	gateway.start     the process did not become ready
//	gateway.gone      it ended
//	gateway.slow      it, or policy, did not answer in time
//	gateway.protocol  it sent an invalid message
//	gateway.flood     a command caused more events than may be recorded
//	gateway.policy    policy did not decide; a StopError from policy keeps its code
//
// # What it does not protect against
//
// A compromised gateway process can connect to anything that the host can, without
// reporting it: it has no files, no host credentials and no other processes, but it has
// the network. An allowed host is trusted with what it is sent; see package relay for
// what is inspected.
package egress
