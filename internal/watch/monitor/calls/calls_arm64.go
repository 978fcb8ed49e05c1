// SPDX-License-Identifier: Apache-2.0

package calls

var archTable = map[uint64]Call{
	38: twoPathCall(Rename, "renameat", 0, 1, 2, 3),
}
