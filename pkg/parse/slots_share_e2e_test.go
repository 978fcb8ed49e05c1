// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package parse

const slotShare = 1
