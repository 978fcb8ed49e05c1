// SPDX-License-Identifier: Apache-2.0

package sandbox

var archCalls []int
