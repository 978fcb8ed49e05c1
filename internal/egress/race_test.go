// SPDX-License-Identifier: Apache-2.0

//go:build race

package egress

// Fewer, because each byte costs ten times its size.
const (
	unreadConnections = 100
	unreadEach        = 4800e3
)
