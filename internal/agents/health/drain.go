// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Drain is how a server ends: work that runs goes on, and no other begins. The zero Drain
// has not begun. Methods are safe for concurrent use.
type Drain struct {
	begun atomic.Bool
	work  sync.RWMutex // locked for reading by work, and for writing when none is awaited
}

// HasBegun reports whether no work may begin any more. Call it after Enter.
func (d *Drain) HasBegun() bool { return d.begun.Load() }

// Enter says that there is work that Wait waits for, until leave is called. Work that came
// too late is not waited for; it must not begin: see HasBegun.
func (d *Drain) Enter() (leave func()) {
	if d.work.TryRLock() {
		return d.work.RUnlock
	}
	return func() {}
}

// Wait begins the drain, and returns when the work before it has ended, or ctx has. Work
// that entered and saw that the drain had not begun is waited for.
func (d *Drain) Wait(ctx context.Context) {
	d.begun.Store(true)
	ended := make(chan struct{})
	go func() {
		d.work.Lock()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// WithGrace returns a context that ends when grace has passed since ctx ended, or at the first
// SIGINT or SIGTERM after that. cancel must be called.
func WithGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	again := make(chan os.Signal, 1)
	stop := context.AfterFunc(ctx, func() {
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(again)
		select {
		case <-again:
		case <-time.After(grace):
		case <-later.Done():
		}
		cancel()
	})
	return later, func() { stop(); cancel() }
}

// Close closes server as soon as the answers that it has are sent, within a second.
func Close(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = server.Shutdown(ctx)
	_ = server.Close()
}
