// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The tests of real projects have the same outcomes in the sandbox as on the host.
func TestNightlySuites(t *testing.T) {
	for _, s := range suites() {
		t.Run(s.name, func(t *testing.T) {
			if s.path != "" {
				t.Setenv("PATH", s.path+":"+os.Getenv("PATH"))
			}
			d := newDesk(t)
			s.fetch(t, d)
			outside := s.native(t, d)
			inside := s.inside(t, d)
			if inside.code != 0 || outside.code != 0 {
				t.Errorf("exit code %d inside, %d natively\n%s", inside.code, outside.code, inside.failures())
			}
			if len(inside.outcomes) < s.least {
				t.Errorf("%d outcomes, want %d at least", len(inside.outcomes), s.least)
			}
			if diff := cmp.Diff(outside.outcomes, inside.outcomes); diff != "" {
				t.Errorf("outcomes differ (-native +inside):\n%s", diff)
			}
			t.Logf("%d outcomes; inside %s, natively %s: %.2f times", len(inside.outcomes), inside.took.Round(time.Millisecond),
				outside.took.Round(time.Millisecond), inside.took.Seconds()/outside.took.Seconds())
		})
	}
}
