// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"context"
	"maps"

	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/state"
)

// What a saved sandbox has of this package: the mount of ListingName, and what the gate knows of files that
// outlives a command. All else that the gate keeps is about commands, of which none runs, or is read again.
// RecordedName can be registered, but not mounted: what was read so far would be lost.

func init() {
	state.Register((*listingType)(nil))
	state.Register((*listingFS)(nil))
	state.Register((*listingFile)(nil))
	state.Register((*recordedType)(nil))
}

const statePrefix = "fumehood/sentry."

// StateTypeName implements state.Type.
func (*listingType) StateTypeName() string { return statePrefix + "listingType" }

// StateFields implements state.Type.
func (*listingType) StateFields() []string {
	return []string{"shared", "listings", "last", "live", "over"}
}

// StateSave implements state.SaverLoader.
func (*listingType) StateSave(sink state.Sink) {
	g := active.Load()
	if g == nil { // nothing is decided
		g = &execGate{}
	}
	g.files.Lock()
	shared := g.sharedBefore || len(g.shared) > 0
	g.files.Unlock()
	m := &g.mapped
	m.mu.Lock()
	defer m.mu.Unlock()
	last, live := maps.Clone(m.last), maps.Clone(m.live)
	sink.Save(0, &shared)
	sink.Save(1, &m.listings)
	sink.Save(2, &last)
	sink.Save(3, &live)
	sink.Save(4, &m.over)
}

// StateLoad implements state.SaverLoader. The sinks belong to the loaded kernel from then on.
func (*listingType) StateLoad(ctx context.Context, source state.Source) {
	g := active.Load()
	if g == nil {
		g = &execGate{}
	}
	source.Load(0, &g.sharedBefore)
	source.Load(1, &g.mapped.listings)
	source.Load(2, &g.mapped.last)
	source.Load(3, &g.mapped.live)
	source.Load(4, &g.mapped.over)
	if k, ok := ctx.Value(kernel.CtxKernel).(*kernel.Kernel); ok { // without it no command begins
		g.capacity.kernel.Store(k)
	}
	if s := latch.Load(); s != nil {
		s.listing.Do(func() {}) // ListingName is available
	}
}

// StateTypeName implements state.Type.
func (*listingFS) StateTypeName() string { return statePrefix + "listingFS" }

// StateFields implements state.Type.
func (*listingFS) StateFields() []string { return []string{"Filesystem", "of", "source"} }

// StateSave implements state.SaverLoader.
func (f *listingFS) StateSave(sink state.Sink) {
	sink.Save(0, &f.Filesystem)
	sink.Save(1, &f.of)
	sink.Save(2, &f.source)
}

// StateLoad implements state.SaverLoader.
func (f *listingFS) StateLoad(_ context.Context, source state.Source) {
	source.Load(0, &f.Filesystem)
	source.Load(1, &f.of)
	source.Load(2, &f.source)
}

// StateTypeName implements state.Type.
func (*listingFile) StateTypeName() string { return statePrefix + "listingFile" }

// StateFields implements state.Type.
func (*listingFile) StateFields() []string { return []string{"InodeAttrs", "InodeWatches", "f"} }

// StateSave implements state.SaverLoader.
func (i *listingFile) StateSave(sink state.Sink) {
	sink.Save(0, &i.InodeAttrs)
	sink.Save(1, &i.InodeWatches)
	sink.Save(2, &i.f)
}

// StateLoad implements state.SaverLoader.
func (i *listingFile) StateLoad(_ context.Context, source state.Source) {
	source.Load(0, &i.InodeAttrs)
	source.Load(1, &i.InodeWatches)
	source.Load(2, &i.f)
}

// StateTypeName implements state.Type.
func (*recordedType) StateTypeName() string { return statePrefix + "recordedType" }

// StateFields implements state.Type.
func (*recordedType) StateFields() []string { return []string{} }

// StateSave implements state.SaverLoader.
func (*recordedType) StateSave(state.Sink) {}

// StateLoad implements state.SaverLoader.
func (rt *recordedType) StateLoad(context.Context, state.Source) { rt.g = active.Load() }
