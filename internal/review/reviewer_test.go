// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"testing"

	"github.com/fumehood/fumehood/internal/review/model"
	"github.com/fumehood/fumehood/internal/review/spend"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A fakeSession runs nothing, and fails where a test wants it to.
type fakeSession struct {
	*fake
	setUp, closing error
	closed         int
}

func (s *fakeSession) SetUp(context.Context, proposal.Proposal, func(proposal.Record)) error {
	return s.setUp
}

func (s *fakeSession) Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	return s.do(ctx, p)
}

func (s *fakeSession) Close() (proposal.Report, error) {
	s.closed++
	return proposal.Report{}, s.closing
}

// A failure of set-up, of the model or of closing is not lost, and the session is closed once.
func TestConverse(t *testing.T) {
	setUp, asking, closing := errors.New("set-up"), errors.New("asking"), errors.New("closing")
	for _, c := range []struct {
		name                         string
		setUp, asking, closing, want error
	}{
		{name: "nothing fails"},
		{name: "set-up fails", setUp: setUp, want: setUp},
		{name: "the model fails", asking: asking, want: asking},
		{name: "closing fails", closing: closing, want: closing},
		{name: "the model and closing fail", asking: asking, closing: closing, want: closing},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{answer: says(reply(true, nil, claim))}
			if c.asking != nil {
				f.answer = func(int, model.Request) (model.Answer, error) { return model.Answer{}, c.asking }
			}
			s := &fakeSession{fake: f, setUp: c.setUp, closing: c.closing}
			m := &modelReview{talk: f.conversation(t, free, spend.Price{})}
			if err := m.converse(t.Context(), s); (err == nil) != (c.want == nil) || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if s.closed != 1 || c.setUp != nil && len(f.asked) > 0 {
				t.Errorf("closed %d times, the model was asked %d times", s.closed, len(f.asked))
			}
		})
	}
}
