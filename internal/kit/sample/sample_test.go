// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"slices"
	"testing"
)

// TestOf checks that the selection is the same in every run, and complete with the tag.
func TestOf(t *testing.T) {
	want := []int{0, 2, 4}
	if whole {
		want = []int{0, 1, 2, 3, 4}
	}
	if got := EveryNth(t, []int{0, 1, 2, 3, 4}, 2, 2); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := EveryNthKey(t, map[int]bool{4: true, 0: true, 3: true, 2: true, 1: true}, 2, 2); !slices.Equal(got, want) {
		t.Errorf("got the keys %v, want %v", got, want)
	}
	if got := Rounds(t, 5, 3, 3); got != len(want) {
		t.Errorf("%d rounds, want %d", got, len(want))
	}
}

// TestRandom checks that a seed gives the same numbers again.
func TestRandom(t *testing.T) {
	t.Setenv("FUMEHOOD_TEST_SEED", "7")
	if a, b := Random(t).Uint64(), Random(t).Uint64(); a != b {
		t.Errorf("%d, then %d", a, b)
	}
}
