// SPDX-License-Identifier: Apache-2.0

//go:build !race

package egress

const (
	unreadConnections = 1000
	unreadEach        = 240e3
)
