// SPDX-License-Identifier: Apache-2.0

//go:build race

package link

// raceFactor is how much more memory the race detector takes.
const raceFactor = 5
