// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package parse

// slotShare is the part of all slots that one run of the tests tries.
const slotShare = 100
