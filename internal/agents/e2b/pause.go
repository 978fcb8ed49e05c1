// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"errors"
	"time"
)

// pauseGrace is how long a pause waits for the set-up and for code and files in the foreground.
const pauseGrace = 20 * time.Second

// pause stops every process of b, whose time and requests end. Its memory stays in use: b ends with
// the server, and when it was paused for Options.Paused in all.
func (b *sandbox) pause(ctx context.Context) error {
	b.pausing.Lock()
	defer b.pausing.Unlock()
	if !b.setPaused(true) {
		return refuseRequest(alreadyExists, "the sandbox is paused already")
	}
	ctx, cancel := context.WithTimeout(ctx, pauseGrace)
	defer cancel()
	err := b.waitForSetUp(ctx)
	if err == nil {
		err = b.session.Pause(ctx)
	}
	if err != nil {
		b.setPaused(false)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return refuseRequest(busy, "code runs in the sandbox: interrupt it, or pause later")
	}
	return b.endOnError(err)
}

// resume lets the processes of b go on, if it is paused, and then it ends after timeout.
func (b *sandbox) resume(ctx context.Context, timeout time.Duration) (resumed bool, err error) {
	b.pausing.Lock()
	defer b.pausing.Unlock()
	if !b.isPaused() {
		return false, nil
	}
	if err := b.endOnError(b.session.Resume(ctx)); err != nil {
		return false, err
	}
	b.setPaused(false)
	return true, b.extendTimeout(timeout, false)
}

// setPaused notes that b is paused or not, and reports whether that is new. A pause is not of the time that
// b may use.
func (b *sandbox) setPaused(paused bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paused == paused {
		return false
	}
	now := time.Now()
	if b.paused = paused; paused {
		b.pausedAt = now
		b.timer.Reset(b.pauseLeft)
		return true
	}
	slept := now.Sub(b.pausedAt)
	b.pauseLeft -= slept
	b.last, b.end = b.last.Add(slept), b.end.Add(slept)
	b.timer.Reset(max(b.end.Sub(now), 0))
	return true
}

// timeLeft is how long b may still run.
func (b *sandbox) timeLeft() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paused {
		return b.last.Sub(b.pausedAt)
	}
	return time.Until(b.last)
}

func (b *sandbox) isPaused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paused
}

// state is E2B's word for whether b is paused.
func (b *sandbox) state() string {
	if b.isPaused() {
		return "paused"
	}
	return "running"
}

// requireRunning refuses a request to a paused sandbox as E2B's proxy does, or resumes it if its client
// wanted that.
func (b *sandbox) requireRunning(ctx context.Context) error {
	if !b.isPaused() {
		return nil
	}
	if !b.about.resumesItself() {
		return refuseRequest(unavailable, "the sandbox is paused: connect to it")
	}
	_, err := b.resume(ctx, min(b.server.o.Timeout, b.timeLeft()))
	return err
}

// endIfExpired ends b if its time has come, or pauses it if its client wanted that.
func (b *sandbox) endIfExpired() {
	b.mu.Lock()
	end := b.end
	if b.paused {
		end = b.pausedAt.Add(b.pauseLeft)
	}
	left, pauses := time.Until(end), b.about.AutoPause && !b.paused
	if left > 0 {
		b.timer.Reset(left)
	}
	b.mu.Unlock()
	if left > 0 || pauses && b.pause(b.ctx) == nil {
		return
	}
	b.server.removeSandbox(b)
}

type pauseRequest struct {
	Memory *bool `json:"memory"` // false keeps files only
}

func apiPause(ctx context.Context, b *sandbox, in pauseRequest) (any, error) {
	if err := refuseWithoutMemory("keepMemory", in.Memory); err != nil {
		return nil, err
	}
	return nil, b.pause(ctx)
}

// refuseWithoutMemory refuses what an option of E2B's SDK asks for if memory is false: files are never kept alone.
func refuseWithoutMemory(option string, memory *bool) error {
	if memory == nil || *memory {
		return nil
	}
	return refuseRequest(unimplemented, "%s: a paused sandbox always keeps its memory", option)
}

type resumeRequest struct {
	Timeout   *int64 `json:"timeout"`
	AutoPause bool   `json:"autoPause"`
}

func (s *Server) apiResume(ctx context.Context, b *sandbox, in resumeRequest) (any, error) {
	timeout, err := parseSeconds(in.Timeout, min(s.o.Timeout, b.timeLeft()))
	if err != nil {
		return nil, err
	}
	resumed, err := b.resume(ctx, timeout)
	if err == nil && !resumed {
		err = refuseRequest(alreadyExists, "the sandbox is running already")
	}
	if err != nil {
		return nil, err
	}
	return b.ownerInfo(), nil
}
