// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package egress

const (
	unreadConnections = 1000
	unreadEach        = 240e3
)
