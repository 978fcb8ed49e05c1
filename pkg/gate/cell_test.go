// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"testing"
	"testing/synctest"
)

// A command that shares the sandbox with no code waits for the code that runs, and not for code that comes later.
func TestEnterContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c contexts
		order := make(chan string, 4)
		enter := func(ctx context.Context, key, name string) (leave func()) {
			left := make(chan func(), 1)
			go func() {
				if leave, err := c.enter(ctx, key); err == nil {
					order <- name
					left <- leave
				}
			}()
			synctest.Wait()
			return func() { (<-left)(); synctest.Wait() }
		}
		check := func(want string) {
			t.Helper()
			got := ""
			for len(order) > 0 {
				got += <-order
			}
			if got != want {
				t.Errorf("entered: %q, want %q", got, want)
			}
		}
		leaveA := enter(t.Context(), "bash a", "a")
		cancelled, cancel := context.WithCancel(t.Context())
		enter(cancelled, "", "x")
		leaveB := enter(t.Context(), "bash b", "b")
		check("a")
		cancel()
		synctest.Wait()
		check("b") // no longer behind x
		leaveAlone := enter(t.Context(), "", "!")
		leaveC := enter(t.Context(), "bash c", "c")
		leaveA()
		check("")
		leaveB()
		check("!")
		leaveAlone()
		check("c")
		leaveC()
		leaveAlone = enter(t.Context(), "", "!")
		check("!")
		leaveAlone()
		if len(c.busy) > 0 || c.waiting > 0 {
			t.Errorf("left: %v, %d", c.busy, c.waiting)
		}
	})
}
