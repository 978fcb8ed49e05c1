// SPDX-License-Identifier: Apache-2.0

// Package egress is the gateway: the only way out of a sandbox.
//
// A sandbox that was granted a host has one network device, whose other end is a file
// that the gateway's process holds; behind it stands gVisor's network stack, in that
// process. There is no route, no packet filter and no proxy variable to get around:
// every frame that leaves the sandbox is read here or by nobody. When the process is
// gone, the wire is dead.
//
// Names are answered by us, each with an address that stands for it alone, so a
// connection is known by the name that was looked up. We resolve the name ourselves,
// check each address that is found, and connect to exactly the one that was checked.
// Policy is asked about every name, connection, TLS hello and plain or intercepted
// request, and every answer is told.
//
// # Two processes
//
//	supervisor (Start, Gateway)  <- control socket ->  gateway (Main)  <- TAP ->  sandbox
//	  policy, log                    package wire        sockets only
//
// The supervisor has policy and the log, and never a byte of a stranger's but what
// package wire lets through: which command a question belongs to, and what that was
// granted, it says itself. The gateway has the credentials that it was given, the key of
// the run's certificates, and the host's network, and nothing else (package confine).
//
// Commands run one at a time, between Begin and End. What the one before had open is
// cut, and the names that it looked up stand for nothing.
//
// # Codes
//
// It fails closed. On any doubt the process is killed, Options.Fail is called once, and
// every later call returns the same *proposal.StopError:
//
//	gateway.start     the process did not come into force
//	gateway.gone      it ended
//	gateway.slow      it, or policy, did not answer in time
//	gateway.protocol  it said what it may not
//	gateway.flood     a command caused more than may be recorded of it
//	gateway.policy    policy did not decide; a StopError of policy's keeps its own code
//
// # What it does not protect against
//
// A gateway's process that was taken over can connect to whatever the host can, and say
// nothing of it: it has no file, credential of the host's or other process, but it has
// the network. A host that is allowed is trusted with what it is sent; see package relay
// for what is seen of it.
package egress
