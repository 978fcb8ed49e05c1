// SPDX-License-Identifier: Apache-2.0

//go:build linux && race

package egress

// There are fewer where each byte costs ten.
const (
	unreadConnections = 100
	unreadEach        = 4800e3
)
