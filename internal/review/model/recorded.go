// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"sync"
)

// NewRecorded returns a Provider that gives the answers in order, whatever it is asked, and
// reports no token. It is for demonstrations: no model is asked.
func NewRecorded(answers []string) Provider { return &recorded{answers: answers} }

type recorded struct {
	mu      sync.Mutex
	answers []string
}

func (p *recorded) Ask(context.Context, Request) (Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.answers) == 0 {
		return Answer{}, &Error{Message: "the recording is over"}
	}
	text := p.answers[0]
	p.answers = p.answers[1:]
	return Answer{Text: text, Stop: Complete}, nil
}
