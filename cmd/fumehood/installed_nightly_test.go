// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The suites of well-known projects have the same outcomes in the sandbox, after set-up
// installed their dependencies without any configuration, as natively. Without
// FUMEHOOD_SUITES=all only two of them are run.
func TestNightlyInstalledSuites(t *testing.T) {
	for _, s := range readySuites() {
		if !s.always && os.Getenv("FUMEHOOD_SUITES") != "all" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			d := newDesk(t)
			s.fetch(t, d)
			inside, setup := s.installed(t, d)
			runCommand(t, s.installer(t, d))
			outside := s.native(t, d)
			if inside.code != outside.code || len(inside.outcomes) < s.Least {
				t.Errorf("exit code %d inside, %d natively; %d outcomes, want %d at least\n%s", inside.code, outside.code, len(inside.outcomes), s.Least, inside.failures())
			}
			if diff := cmp.Diff(outside.outcomes, inside.outcomes); diff != "" {
				t.Errorf("outcomes differ (-native +inside):\n%s", diff)
			}
			t.Logf("%d outcomes; set-up %s; inside %s, natively %s: %.2f times", len(inside.outcomes), setup.Round(time.Millisecond),
				inside.took.Round(time.Millisecond), outside.took.Round(time.Millisecond), inside.took.Seconds()/outside.took.Seconds())
		})
	}
}
