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

// mostKept bounds the answers of one kind that are kept, and so their memory.
const mostKept = 1 << 16

// A memory is a Judge that asks another once about what is the same in every field that
// a document has: what projects run, and what that starts, is the same in most runs.
type memory struct {
	Judge
	decisions answers[proposal.Decision]
	execs     answers[proposal.ExecDecision]
	steps     answers[proposal.EgressDecision]
}

// Decide leaves the analysis out of the question: it is what Options.Parse made of the
// proposal.
func (m *memory) Decide(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	return m.decisions.once(p, func() (proposal.Decision, error) { return m.Judge.Decide(ctx, p, a) })
}

func (m *memory) Exec(ctx context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
	same := x
	same.Pid, same.Parent = 0, 0 // numbers of one run, which policy does not see
	return m.execs.once(same, func() (proposal.ExecDecision, error) { return m.Judge.Exec(ctx, x) })
}

func (m *memory) Egress(ctx context.Context, x proposal.Egress) (proposal.EgressDecision, error) {
	return m.steps.once(x, func() (proposal.EgressDecision, error) { return m.Judge.Egress(ctx, x) })
}

// answers are those to questions of one kind, by their digest.
type answers[A any] struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]A
}

// once asks, unless the same was asked before. An error is no answer, and not kept.
func (s *answers[A]) once(question any, ask func() (A, error)) (A, error) {
	text, err := json.Marshal(question)
	if err != nil || bytes.Contains(text, []byte(`\ufffd`)) { // in place of bytes that JSON cannot say, which might differ
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
	if len(s.kept) < mostKept {
		s.kept[key] = a
	}
}
