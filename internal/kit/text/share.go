// SPDX-License-Identifier: Apache-2.0

package text

import "slices"

// DivideRoom divides room fairly (max-min): small sizes are met in full, and the others
// get equal shares. The sum of the result is at most room.
func DivideRoom(sizes []int, room int) []int {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	got := make([]int, len(sizes))
	for n, i := range order {
		got[i] = max(0, min(sizes[i], room/(len(order)-n)))
		room -= got[i]
	}
	return got
}
