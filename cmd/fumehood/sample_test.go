// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// oneIn selects the cases that an expensive test runs, as internal/kit/sample does
// for the packages: every normal-th, with -short every short-th, and all of them
// with the tag nightly, with which the tests in whole_nightly_test.go run.
func oneIn[T any](t testing.TB, normal, short int, cases []T) []T {
	t.Helper()
	step := either(normal, short, 1)
	var chosen []T
	for i := 0; i < len(cases); i += step {
		chosen = append(chosen, cases[i])
	}
	t.Logf("%d of %d cases: one in %d, from the first on", len(chosen), len(cases), step)
	return chosen
}

// keysOneIn is oneIn for the sorted keys of cases.
func keysOneIn[K cmp.Ordered, V any](t testing.TB, normal, short int, cases map[K]V) []K {
	t.Helper()
	return oneIn(t, normal, short, slices.Sorted(maps.Keys(cases)))
}

// long skips a test with -short.
func long(t testing.TB) {
	t.Helper()
	lanetest.SkipShort(t)
}

// either returns the value for go test, for -short, or for the tag nightly.
func either[T any](normal, short, all T) T {
	switch {
	case whole:
		return all
	case testing.Short():
		return short
	}
	return normal
}
