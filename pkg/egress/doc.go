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
package egress
