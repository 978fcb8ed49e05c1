// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxKept bounds the number of cached results of one kind, and so their memory.
const maxKept = 1 << 16

// A memory is a caching Judge. It asks another Judge once for documents that are equal in
// all fields: most runs of a project run the same commands and start the same programs.
type memory struct {
	Judge
	decisions answers[proposal.Decision]
	execs     answers[proposal.ExecDecision]
	steps     answers[proposal.EgressDecision]
}

// Decide leaves the analysis out of the key: it is the result of Options.Parse for
// the proposal.
func (m *memory) Decide(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	return m.decisions.once(p, func() (proposal.Decision, error) { return m.Judge.Decide(ctx, p, a) })
}

func (m *memory) Exec(ctx context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
	same := x
	same.Pid, same.Parent = 0, 0 // they differ in each run, and policy does not see them
	return m.execs.once(same, func() (proposal.ExecDecision, error) { return m.Judge.Exec(ctx, x) })
}

func (m *memory) Egress(ctx context.Context, x proposal.Egress) (proposal.EgressDecision, error) {
	return m.steps.once(x, func() (proposal.EgressDecision, error) { return m.Judge.Egress(ctx, x) })
}

// answers are the results of one kind, by the digest of the question.
type answers[A any] struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]A
}

// once returns the cached result or asks. Errors are not cached.
func (s *answers[A]) once(question any, ask func() (A, error)) (A, error) {
	text, err := json.Marshal(question)
	if err != nil || bytes.Contains(text, []byte(`\ufffd`)) { // replaces bytes that JSON cannot represent, which might differ
		return ask()
	}
	key := sha256.Sum256(text)
	s.mu.Lock()
	a, known := s.kept[key]
	s.mu.Unlock()
	if known {
		return a, nil
	}
	if a, err = ask(); err == nil {
		s.keep(key, a)
	}
	return a, err
}

func (s *answers[A]) keep(key [sha256.Size]byte, a A) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[[sha256.Size]byte]A{}
	}
	if len(s.kept) < maxKept {
		s.kept[key] = a
	}
}
