// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/kit/text"
)

// The bounds of watchers.
const (
	maxWatchers = 8   // of one sandbox
	maxWaiting  = 500 // events that no client has fetched
	watchEvery  = 300 * time.Millisecond
	watchBusy   = 2 * time.Second // between looks while commands run: each look is one more
)

// A watcher finds changes of a directory by comparing lists of it. It makes one only when something may have changed
// files: a request, a command or code.
type watcher struct {
	b         *sandbox
	at        place
	depth     uint32
	withEntry bool

	seen   map[string]entry
	change int64 // of the sandbox, at the last look
	looked time.Time

	mu     sync.Mutex
	events []map[string]any // for GetWatcherEvents
	err    error
	stop   context.CancelFunc
}

func (s *Server) watchRoutes(mux *http.ServeMux, service string) {
	mux.HandleFunc(service+"WatchDir", serveStreaming(s, watchDir))
	mux.HandleFunc(service+"CreateWatcher", serveUnary(s, createWatcher))
	mux.HandleFunc(service+"GetWatcherEvents", serveUnary(s, watcherEvents))
	mux.HandleFunc(service+"RemoveWatcher", serveUnary(s, removeWatcher))
}

// newWatcher returns a watcher that has looked once. close must be called.
func newWatcher(ctx context.Context, b *sandbox, in watchRequest) (*watcher, error) {
	select {
	case b.watching <- struct{}{}:
	default:
		return nil, refuseRequest(resourceExhausted, "the sandbox has %d watchers at a time", maxWatchers)
	}
	w := &watcher{b: b, depth: 1, withEntry: in.Entry}
	if in.Recursive {
		w.depth = maxDepth
	}
	var err error
	if w.at, err = findPlace(in.Path); err == nil {
		w.change = b.changes.Load()
		var list []entry
		list, err = b.listFiles(ctx, w.at, w.depth)
		if err == nil && (len(list) == 0 || list[0].Type != typeDirectory) {
			err = refuseRequest(invalidArgument, "%q is not a directory", text.Inline(in.Path, 200))
		}
		w.keepList(list)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *watcher) close() { <-w.b.watching }

// keepList makes list the last one, and returns the one before.
func (w *watcher) keepList(list []entry) map[string]entry {
	before := w.seen
	w.seen = map[string]entry{}
	for _, e := range list {
		if e.below != "" {
			w.seen[e.below] = e
		}
	}
	return before
}

// findEvents returns the events since the last look.
func (w *watcher) findEvents(ctx context.Context) ([]map[string]any, error) {
	change := w.b.changes.Load()
	if change == w.change && !(w.b.isBusy() && time.Since(w.looked) > watchBusy) {
		return nil, nil
	}
	w.change, w.looked = change, time.Now()
	list, err := w.b.listFiles(ctx, w.at, w.depth)
	if err != nil && refusalOf(err).code != notFound {
		return nil, err
	}
	before := w.keepList(list)
	var events []map[string]any
	add := func(kind string, e entry, there bool) {
		event := map[string]any{"name": e.below, "type": "EVENT_TYPE_" + kind}
		if w.withEntry && there {
			event["entry"] = e
		}
		events = append(events, event)
	}
	for _, e := range list {
		old, known := before[e.below]
		switch {
		case e.below == "":
			continue
		case !known:
			add("CREATE", e, true)
			if e.Type != typeDirectory {
				add("WRITE", e, true)
			}
		case old.stamp != e.stamp && e.Type != typeDirectory:
			add("WRITE", e, true)
		case old.Mode != e.Mode:
			add("CHMOD", e, true)
		}
		delete(before, e.below)
	}
	for _, below := range slices.Sorted(maps.Keys(before)) {
		add("REMOVE", before[below], false)
	}
	return events, nil
}

// followEvents calls each with every event until ctx ends.
func (w *watcher) followEvents(ctx context.Context, each func(map[string]any) error, idle func() error) error {
	ticks := time.NewTicker(watchEvery)
	defer ticks.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.b.ctx.Done():
			return refuseRequest(unavailable, "the sandbox has ended")
		case <-ticks.C:
		}
		events, err := w.findEvents(ctx)
		for _, e := range events {
			if err == nil {
				err = each(e)
			}
		}
		if err == nil && time.Since(last) > keepAlive {
			last, err = time.Now(), idle()
		}
		if err != nil {
			return err
		}
	}
}

func watchDir(ctx context.Context, b *sandbox, in watchRequest, out *stream) error {
	w, err := newWatcher(ctx, b, in)
	if err != nil {
		return err
	}
	defer w.close()
	if err := out.sendMessage(map[string]any{"start": map[string]any{}}); err != nil {
		return err
	}
	return w.followEvents(ctx, func(e map[string]any) error {
		return out.sendMessage(map[string]any{"filesystem": e})
	}, func() error { return out.sendMessage(map[string]any{"keepalive": map[string]any{}}) })
}

func createWatcher(ctx context.Context, b *sandbox, in watchRequest) (any, error) {
	w, err := newWatcher(ctx, b, in)
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(b.ctx)
	w.stop = stop
	id := rand.Text()
	b.mu.Lock()
	if b.watchers == nil {
		b.watchers = map[string]*watcher{}
	}
	full := len(b.watchers) >= maxWatchers // those that have failed and were not removed count, too
	if !full {
		b.watchers[id] = w
	}
	b.mu.Unlock()
	if full {
		stop()
		w.close()
		return nil, refuseRequest(resourceExhausted, "the sandbox has %d watchers: remove one", maxWatchers)
	}
	go func() {
		defer w.close()
		err := w.followEvents(following, w.addEvent, func() error { return nil })
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
	}()
	return map[string]any{"watcherId": id}, nil
}

// addEvent keeps an event for watcherEvents.
func (w *watcher) addEvent(e map[string]any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) >= maxWaiting {
		return refuseRequest(resourceExhausted, "more than %d events were not fetched", maxWaiting)
	}
	w.events = append(w.events, e)
	return nil
}

func (b *sandbox) findWatcher(id string) (*watcher, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.watchers[id]; w != nil {
		return w, nil
	}
	return nil, refuseRequest(notFound, "there is no watcher %q", text.Inline(id, 100))
}

func watcherEvents(_ context.Context, b *sandbox, in watchRequest) (any, error) {
	w, err := b.findWatcher(in.WatcherID)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	events := append([]map[string]any{}, w.events...)
	if w.events = nil; len(events) == 0 && w.err != nil {
		return nil, w.err
	}
	return map[string]any{"events": events}, nil
}

func removeWatcher(_ context.Context, b *sandbox, in watchRequest) (any, error) {
	w, err := b.findWatcher(in.WatcherID)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	delete(b.watchers, in.WatcherID)
	b.mu.Unlock()
	w.stop()
	return map[string]any{}, nil
}
