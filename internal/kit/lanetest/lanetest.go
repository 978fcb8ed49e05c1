// SPDX-License-Identifier: Apache-2.0

// Package lanetest keeps long tests out of the short lane, and lets tests that wait run at once.
package lanetest

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
)

// SkipShort skips a test in the short lane: one that takes more than an eighth of a second.
func SkipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("too long for the short lane; run without -short")
	}
}

// WaitMuch runs twice as many tests at once, unless -parallel says how many: for a package whose tests
// wait for processes and pauses about half of the time. It parses the flags.
func WaitMuch() {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set(fmt.Sprint(2 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
}
