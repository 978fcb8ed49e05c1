// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"slices"

	"github.com/fumehood/fumehood/pkg/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Layers keeps what the commands of set-up leave, from run to run. Its methods report what goes
// wrong to their own caller: without a layer, the commands run.
type Layers interface {
	// Find returns the layer that has the effects of setup, all of a run's commands of set-up as
	// they were decided, or nil. It is called before the Runner is created, which must then
	// begin with the layer's files.
	Find(ctx context.Context, setup []proposal.Record) *proposal.Layer
	// Keep makes a layer of what setup left, and returns it, or nil. It is called when all have
	// succeeded in runner, and nothing else has run there. The runner's next sandboxes may begin
	// with it.
	Keep(ctx context.Context, runner Runner, setup []proposal.Record) *proposal.Layer
}

// findLayer looks for the layer of the commands of set-up among records, once.
func (s *Session) findLayer(ctx context.Context, records []proposal.Record) {
	setup := setupOf(records)
	if s.h.p.Layers == nil || s.setup != nil || len(setup) == 0 {
		return
	}
	s.setup = map[string]bool{}
	for _, r := range setup {
		s.setup[r.Proposal.ID] = true
	}
	s.layer = s.h.p.Layers.Find(ctx, setup)
}

func setupOf(records []proposal.Record) []proposal.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r proposal.Record) bool { return r.Proposal.Origin == "" })
}

// Prepare looks for a layer of setup, which the caller is going to Do in this order before
// anything else. Without it, they run, and no layer is made.
func (s *Session) Prepare(ctx context.Context, setup []proposal.Proposal) error {
	if s.h.p.Layers == nil || s.runner != nil || s.changing > 0 || s.stopped != nil {
		return nil
	}
	records, err := s.h.Check(ctx, proposal.Plan{Proposals: setup})
	if err == nil {
		s.findLayer(ctx, records)
	}
	return err
}

// replaced reports whether the layer has the effects of r.
func (s *Session) replaced(r proposal.Record) bool {
	return s.layer != nil && s.setup[r.Proposal.ID] && r.Runnable()
}

// outcome runs the allowed record i, or takes its result from the layer. The result may be kept
// under key, unless that is "".
func (s *Session) outcome(ctx context.Context, i int, key string) error {
	r := &s.records[i]
	if !s.replaced(*r) {
		return s.h.one(ctx, s.runner, r, s.deadline, key, func() { s.keepLayer(ctx, i) })
	}
	result := proposal.FromLayer(*s.layer)
	r.Result = &result
	_, err := s.h.p.Log.Append("result", journal.NewResult(*r))
	return err
}

// keepLayer makes a layer if record i was the last command of set-up.
func (s *Session) keepLayer(ctx context.Context, i int) {
	done := slices.DeleteFunc(setupOf(s.records[:i+1]), func(r proposal.Record) bool { return !s.setup[r.Proposal.ID] })
	if len(s.setup) == 0 || len(done) != len(s.setup) || !s.setup[s.records[i].Proposal.ID] || s.run.Session && s.changing != len(done) {
		return
	}
	for n, r := range done {
		if r.Result == nil || !r.Result.Succeeded() || n > 0 && r.Result.NewSandbox {
			return
		}
	}
	if l := s.h.p.Layers.Keep(ctx, s.runner, done); l != nil {
		l.Kept = true
		s.records[i].Result.Layer = l
	}
}
