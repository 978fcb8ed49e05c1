// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"testing/synctest"
	"time"
)

// The time of a command does not pass while its clock is stopped, however often.
func TestWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		c := startClock(time.Minute, func() { ended = true })
		at := func(passed time.Duration, want bool) {
			t.Helper()
			time.Sleep(passed)
			if synctest.Wait(); ended != want {
				t.Errorf("ended: %t", ended)
			}
		}
		c.goOn() // it runs already
		at(30*time.Second, false)
		c.stop()
		c.stop()
		at(time.Hour, false)
		c.goOn()
		c.goOn()
		at(29*time.Second, false)
		c.stop()
		at(time.Hour, false)
		c.goOn()
		at(2*time.Second, true)
		ended = false
		c.stop() // its time is over
		c.goOn()
		at(time.Hour, false)
	})
}
