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

// A decisionCache is a caching Judge. It asks another Judge once for documents that are equal in
// all fields: most runs of a project run the same commands and start the same programs.
type decisionCache struct {
	Judge
	decisions answerCache[proposal.Decision]
	execs     answerCache[proposal.ExecDecision]
	steps     answerCache[proposal.EgressDecision]
}

// Decide leaves the analysis out of the key: it is the result of Options.Parse for
// the proposal.
func (m *decisionCache) Decide(
	ctx context.Context, p proposal.Proposal, a proposal.Analysis,
) (proposal.Decision, error) {
	return m.decisions.answerOnce(p, func() (proposal.Decision, error) { return m.Judge.Decide(ctx, p, a) })
}

func (m *decisionCache) Exec(ctx context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
	same := x
	same.Pid, same.Parent = 0, 0 // they differ in each run, and policy does not see them
	return m.execs.answerOnce(same, func() (proposal.ExecDecision, error) { return m.Judge.Exec(ctx, x) })
}

func (m *decisionCache) Egress(ctx context.Context, x proposal.Egress) (proposal.EgressDecision, error) {
	return m.steps.answerOnce(x, func() (proposal.EgressDecision, error) { return m.Judge.Egress(ctx, x) })
}

// answerCache are the results of one kind, by the digest of the question.
type answerCache[A any] struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]A
}

// answerOnce returns the cached result or asks. Errors are not cached.
func (s *answerCache[A]) answerOnce(question any, ask func() (A, error)) (A, error) {
	text, err := json.Marshal(question)
	// replaces bytes that JSON cannot represent, which might differ
	if err != nil || bytes.Contains(text, []byte(`\ufffd`)) {
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
		s.keepAnswer(key, a)
	}
	return a, err
}

func (s *answerCache[A]) keepAnswer(key [sha256.Size]byte, a A) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[[sha256.Size]byte]A{}
	}
	if len(s.kept) < maxKept {
		s.kept[key] = a
	}
}
