// SPDX-License-Identifier: Apache-2.0

// Package sample selects the cases that an expensive test tries: a fixed part of them in
// go test ./..., fewer with -short, and all of them with the build tag nightly.
//
// The nightly lane runs the tests named TestNightly alone. So a test that calls this package
// is called again by one in the package's whole_nightly_test.go; pkg/lanes_test.go checks that.
package sample

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// EveryNth returns every normal-th of cases, and with -short every short-th.
func EveryNth[T any](t testing.TB, cases []T, normal, short int) []T {
	t.Helper()
	step := pickByMode(t, 1, normal, short)
	var chosen []T
	for i := 0; i < len(cases); i += step {
		chosen = append(chosen, cases[i])
	}
	t.Logf("%d of %d cases: one in %d, from the first on", len(chosen), len(cases), step)
	return chosen
}

// EveryNthKey is EveryNth for the sorted keys of cases.
func EveryNthKey[K cmp.Ordered, V any](t testing.TB, cases map[K]V, normal, short int) []K {
	t.Helper()
	return EveryNth(t, slices.Sorted(maps.Keys(cases)), normal, short)
}

// IsWhole reports whether all cases are tried.
func IsWhole() bool { return whole }

// Rounds returns how often a test repeats its work: whole times with the tag nightly.
func Rounds(t testing.TB, whole, normal, short int) int {
	t.Helper()
	n := pickByMode(t, whole, normal, short)
	t.Logf("%d rounds of %d", n, whole)
	return n
}

func pickByMode(t testing.TB, all, normal, short int) int {
	t.Helper()
	switch {
	case whole:
		return all
	case testing.Short():
		return short
	}
	return normal
}

// Random returns random numbers, for moments and places that no list can hold. It logs their seed,
// and takes it from FUMEHOOD_TEST_SEED if that is set: a failure can be repeated.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("FUMEHOOD_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FUMEHOOD_TEST_SEED: %v", err)
		}
	}
	t.Logf("FUMEHOOD_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
