// SPDX-License-Identifier: Apache-2.0

// Package cputime measures work by the processor time that it uses.
//
// A limit in wall-clock time also counts the time of other processes, so a busy
// machine would stop work whose input did not make it slow. Memory that the work takes
// and the garbage collector's help on the same thread are counted; waiting is not.
package cputime

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Clock measures the calling goroutine from Start to Stop. The goroutine stays on its
// thread during that time, and must call Used and Stop itself.
type Clock struct{ began time.Duration }

// Start begins a measurement.
func Start() Clock {
	runtime.LockOSThread()
	return Clock{readClock(unix.CLOCK_THREAD_CPUTIME_ID)}
}

// Used returns the processor time since Start.
func (c Clock) Used() time.Duration { return readClock(unix.CLOCK_THREAD_CPUTIME_ID) - c.began }

// Stop ends the measurement and returns the processor time used.
func (c Clock) Stop() time.Duration {
	defer runtime.UnlockOSThread()
	return c.Used()
}

// RunWithin calls work, and cancels its context when work has used limit. The work of
// other goroutines is not counted.
func RunWithin(ctx context.Context, limit time.Duration, work func(context.Context)) {
	clock := Start()
	defer clock.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &watcher{thread: ofThread(unix.Gettid()), end: clock.began + limit, cancel: cancel}
	w.startTimer(limit)
	defer w.stopTimer()
	work(ctx)
}

// A watcher looks at the clock of a thread when it may have reached end. No other goroutine
// runs before that: most work is shorter than the start of one.
type watcher struct {
	thread int32
	end    time.Duration
	cancel func()

	mu    sync.Mutex
	over  bool // the thread may be gone
	timer *time.Timer
}

func (w *watcher) startTimer(after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(after, w.checkTime)
}

func (w *watcher) checkTime() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if left := w.end - readClock(w.thread); left > 0 {
		w.timer.Reset(max(left, time.Millisecond)) // never faster than the wall clock
		return
	}
	w.cancel()
}

func (w *watcher) stopTimer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

// ofThread returns the ID of another thread's clock, as pthread_getcpuclockid(3) does.
func ofThread(thread int) int32 {
	const perThread, scheduled = 4, 2
	return int32(^thread<<3 | perThread | scheduled)
}

func readClock(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic("cputime: internal error: cannot read a processor clock: " + err.Error())
	}
	return time.Duration(t.Nano())
}
