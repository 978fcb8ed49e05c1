// SPDX-License-Identifier: Apache-2.0

package points

// The kinds of Egress.
const (
	EgressLookup   = "lookup"   // a name, before its addresses are known
	EgressConnect  = "connect"  // a connection, before its first byte
	EgressHello    = "hello"    // TLS that will not be intercepted, by its first message
	EgressRequest  = "request"  // one HTTP request
	EgressDatagram = "datagram" // anything that is neither TCP nor a lookup; never allowed
)
