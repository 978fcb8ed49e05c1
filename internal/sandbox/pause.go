// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"sync"
	"time"
)

// Pause stops every process, and the time of commands in the background. The sandbox keeps its memory.
// What Run and Start begin goes on beside what is stopped; files can be moved. An error is one of Run.
func (r *Runner) Pause() error {
	return r.whilePaused(true, func(s *instance) error {
		if _, err := s.sweepProcesses(); err != nil {
			return err
		}
		s.backgrounds.each((*wallClock).stop)
		return nil
	})
}

// Resume lets the commands in the background go on. An error is one of Run.
func (r *Runner) Resume() error {
	return r.whilePaused(false, func(s *instance) error {
		s.backgrounds.each((*wallClock).goOn)
		s.goOn()
		return nil
	})
}

// whilePaused calls do with the sandbox, if one runs, after noting whether it is paused. If do fails,
// the sandbox ends.
func (r *Runner) whilePaused(paused bool, do func(*instance) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil || r.current == nil || r.current.isDead() {
		return r.ended
	}
	s := r.current
	s.paused = paused
	if err := do(s); err != nil {
		_ = s.killSandbox()
		r.ended = newStopError("sandbox.pause", "cannot stop the processes of the sandbox", "run fumehood doctor", err)
	}
	return r.ended
}

// each calls do with the clock of every command in the background.
func (b *backgrounds) each(do func(*wallClock)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for p := range b.list {
		do(p.c.clock)
	}
}

// A wallClock ends a command after its time, which does not pass while the clock is stopped.
type wallClock struct {
	mu    sync.Mutex
	timer *time.Timer
	end   time.Time
	left  time.Duration // while it is stopped
}

// startClock starts the clock of a command: call it once.
func startClock(most time.Duration, end func()) *wallClock {
	return &wallClock{timer: time.AfterFunc(most, end), end: time.Now().Add(most)}
}

// stop stops the clock, unless the time is over.
func (c *wallClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer.Stop() {
		c.left = max(1, time.Until(c.end))
	}
}

// goOn starts the clock again, if it is stopped.
func (c *wallClock) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left > 0 {
		c.end = time.Now().Add(c.left)
		c.timer.Reset(c.left)
		c.left = 0
	}
}
