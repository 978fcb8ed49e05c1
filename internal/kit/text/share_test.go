// SPDX-License-Identifier: Apache-2.0

package text

import (
	"slices"
	"testing"
)

func TestPour(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sizes []int
		room  int
		want  []int
	}{
		{"all fit", []int{5, 6, 7}, 100, []int{5, 6, 7}},
		{"small whole, rest equal", []int{10, 100, 200}, 110, []int{10, 50, 50}},
		{"none", nil, 10, []int{}},
		{"no room", []int{3, 4}, -5, []int{0, 0}},
		{"remainder", []int{9, 9, 9}, 10, []int{3, 3, 4}},
	} {
		if got := DivideRoom(tt.sizes, tt.room); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
