// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"os"
	"slices"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// SetupLayers keeps what the commands of set-up leave, from run to run. Its methods report what goes
// wrong to their own caller: without a layer, the commands run.
type SetupLayers interface {
	// Find looks for the layer that has the effects of setup, all of a run's commands of set-up as
	// they were decided, in a sandbox of o, which has no network yet. It is called before the
	// Runner is created, which begins with the layer's files.
	Find(ctx context.Context, setup []proposal.Record, o sandbox.Options) FoundSetupLayer
	// Keep makes a layer of what setup left, and returns it, or nil. It is called when all have
	// succeeded in a sandbox of runner in which nothing else has run. The runner's next sandboxes may begin
	// with it.
	Keep(ctx context.Context, runner Runner, setup []proposal.Record) *proposal.Layer
}

// A FoundSetupLayer is what Layers.Find has found. The zero value is nothing: set-up runs, and is not kept.
type FoundSetupLayer struct {
	Layer  *proposal.Layer // replaces the commands of set-up; nil if they run
	File   *os.File        // its files; open until the Runner has ended
	Record bool            // what set-up reads is recorded, so that Keep can make a layer
}

// findLayer looks for the layer of the commands of set-up among records, once.
func (s *Session) findLayer(ctx context.Context, records []proposal.Record) {
	setup := setupOf(records)
	if s.stages.Layers == nil || s.setup != nil || len(setup) == 0 {
		return
	}
	s.setup = map[string]bool{}
	for _, r := range setup {
		s.setup[r.Proposal.ID] = true
	}
	s.found = s.stages.Layers.Find(ctx, setup, s.stages.Sandbox)
}

func setupOf(records []proposal.Record) []proposal.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r proposal.Record) bool { return r.Proposal.Origin == "" })
}

// Prepare looks for a layer of setup, which the caller is going to Do in this order before anything
// that may need it or write a file, and reports whether there is one. Without Prepare, they run, and no
// layer is made.
func (s *Session) Prepare(ctx context.Context, setup []proposal.Proposal) (replaced bool, err error) {
	if s.stages.Layers == nil || s.runner != nil || s.changing > 0 || s.stopped != nil {
		return s.found.Layer != nil, nil
	}
	records, err := s.stages.Check(ctx, proposal.Plan{Proposals: setup})
	if err == nil {
		s.findLayer(ctx, records)
	}
	return s.found.Layer != nil, err
}

// isReplaced reports whether the layer has the effects of r.
func (s *Session) isReplaced(r proposal.Record) bool {
	return s.found.Layer != nil && s.setup[r.Proposal.ID] && r.Runnable()
}

// takeFromLayer takes the result of r from the layer that was found.
func (s *Session) takeFromLayer(r *proposal.Record) error {
	result := fromLayer(*s.found.Layer)
	r.Result = &result
	_, err := s.stages.Log.Append("result", journal.NewResult(*r))
	return err
}

// keepLayer makes a layer if record i was the last command of set-up, and none of a proposer came between them.
func (s *Session) keepLayer(ctx context.Context, i int) {
	first := i + 1 - len(s.setup)
	if len(s.setup) == 0 || first < 0 || s.written {
		return
	}
	done := s.records[first : i+1]
	if slices.ContainsFunc(done, func(r proposal.Record) bool { return !s.setup[r.Proposal.ID] }) {
		return
	}
	for n, r := range done {
		if r.Result == nil || !r.Result.Succeeded() || n > 0 && r.Result.NewSandbox {
			return
		}
	}
	if l := s.stages.Layers.Keep(ctx, s.runner, done); l != nil {
		l.Kept = true
		s.records[i].Result.Layer = l
	}
}

// fromLayer returns the Result of a command of set-up that l replaces.
func fromLayer(l proposal.Layer) proposal.Result {
	return proposal.Result{Status: proposal.Exited, Layer: &l, Outputs: []proposal.Output{},
		Changes: proposal.Changes{Files: []proposal.Change{}}}
}
