// SPDX-License-Identifier: Apache-2.0

//go:build !race

package link

// raceFactor is how many times as much memory the race detector needs.
const raceFactor = 1
