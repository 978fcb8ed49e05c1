// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Meter counts the processor time that goroutines use for policies other than the
// shipped one. A wall clock would also count the time of other processes, so a busy
// machine would end a run although no policy loops.
//
// A nil meter counts nothing: it is for the shipped policy.
type Meter struct {
	mu    sync.Mutex
	spent time.Duration
	began map[int]time.Duration // the clock of each thread that works now, by its id
}

type meterKey struct{}

// MeterOf returns the meter that WithMeter put into ctx, or nil.
func MeterOf(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}

// WithMeter returns a context with a new meter.
func WithMeter(ctx context.Context) (context.Context, *Meter) {
	m := &Meter{began: map[int]time.Duration{}}
	return context.WithValue(ctx, meterKey{}, m), m
}

// Run runs work and counts its time. The goroutine is locked to its thread meanwhile, so
// that the thread's clock counts only the work. work must not call Run again.
func (m *Meter) Run(work func()) {
	if m == nil {
		work()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	m.beginThread(thread)
	defer m.endThread(thread)
	work()
}

func (m *Meter) beginThread(thread int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began[thread] = threadTime(thread)
}

func (m *Meter) endThread(thread int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent += threadTime(thread) - m.began[thread]
	delete(m.began, thread)
}

// Used is the time that has been counted, including work that has not ended.
func (m *Meter) Used() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.spent
	for thread, began := range m.began {
		used += threadTime(thread) - began
	}
	return used
}

// threadTime is the processor time that a thread of this process has used. It reads the
// clock of pthread_getcpuclockid(3).
func threadTime(thread int) time.Duration {
	const perThread, scheduled = 4, 2
	return readClock(int32(^thread<<3 | perThread | scheduled))
}

func readClock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic("bounds: internal error: cannot read a processor clock: " + err.Error())
	}
	return time.Duration(t.Nano())
}

// ProcessorTime is the processor time that this process has used.
func ProcessorTime() time.Duration { return readClock(unix.CLOCK_PROCESS_CPUTIME_ID) }
