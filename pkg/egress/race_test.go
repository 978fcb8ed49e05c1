// SPDX-License-Identifier: Apache-2.0

//go:build linux && race

package egress

// unreadConnections are fewer where each byte costs ten.
const unreadConnections = 100
