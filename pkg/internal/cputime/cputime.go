// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package cputime measures work by the processor time that it uses.
//
// A limit in wall-clock time also counts what other processes use, so that a busy
// machine would end work that no text made slow. Memory that the work takes and the
// garbage collector's help on the same thread are counted, waiting is not.
package cputime

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A Clock measures the calling goroutine from Start to Stop. The goroutine keeps its
// thread meanwhile; both and Used must be called by it.
type Clock struct{ began time.Duration }

// Start begins a measurement.
func Start() Clock {
	runtime.LockOSThread()
	return Clock{read(unix.CLOCK_THREAD_CPUTIME_ID)}
}

// Used is the processor time since Start.
func (c Clock) Used() time.Duration { return read(unix.CLOCK_THREAD_CPUTIME_ID) - c.began }

// Stop ends the measurement and returns what was used.
func (c Clock) Stop() time.Duration {
	defer runtime.UnlockOSThread()
	return c.Used()
}

// Within calls work, and ends its context when work has used limit. What work leaves to
// other goroutines is not counted.
func Within(ctx context.Context, limit time.Duration, work func(context.Context)) {
	clock := Start()
	defer clock.Stop()
	thread := ofThread(unix.Gettid())
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watch(ctx, thread, clock.began+limit)
		cancel()
	}()
	work(ctx)
	cancel()
	<-watched // the thread's clock is not read when the thread may be gone
}

// watch returns when clock has reached end, or ctx has ended.
func watch(ctx context.Context, clock int32, end time.Duration) {
	for {
		left := end - read(clock)
		if left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(left, time.Millisecond)): // no thread is faster than the wall clock
		}
	}
}

// ofThread is the number of another thread's clock, as pthread_getcpuclockid(3) has it.
func ofThread(thread int) int32 {
	const perThread, scheduled = 4, 2
	return int32(^thread<<3 | perThread | scheduled)
}

func read(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic("cputime: internal error: cannot read a processor clock: " + err.Error())
	}
	return time.Duration(t.Nano())
}
