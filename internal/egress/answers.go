// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxAnswers is the maximum number of answers that are kept for one command.
const maxAnswers = 4096

// answers are what policy allowed a command before: a program that opens many connections to a
// host asks the same three or four questions about each. Policies are repeatable (no clock, no
// randomness, no network: see package policy/module) and a command's grant does not change, so the
// supervisor would give the same answer again. Each lookup and connection is still reported, with
// that answer.
//
// Refusals are not kept: the supervisor also explains them to the program, and a name's budget may
// be the reason. Nor are answers about requests and datagrams, where more than the host counts.
type answers struct {
	mu   sync.Mutex
	kept map[question]proposal.EgressDecision
}

// A question is all of an Egress that a reusable answer depends on.
type question struct {
	kind, name, typ, address, protocol, sni string
	port                                    int
}

// questionOf returns e as a question, or false if it is of a kind, or has a field, that is
// asked about each time.
func questionOf(e proposal.Egress) (question, bool) {
	switch e.Kind {
	case proposal.EgressLookup, proposal.EgressConnect, proposal.EgressHello:
	default:
		return question{}, false
	}
	q := question{e.Kind, e.Name, e.Type, e.Address, e.Protocol, e.SNI, e.Port}
	e.Kind, e.Name, e.Type, e.Address, e.Protocol, e.SNI, e.Port = "", "", "", "", "", "", 0
	return q, reflect.ValueOf(e).IsZero()
}

// find returns the answer that was kept.
func (a *answers) find(q question) (proposal.EgressDecision, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d, ok := a.kept[q]
	return own(d), ok
}

// keep keeps d, if it allows and there is room.
func (a *answers) keep(q question, d proposal.EgressDecision) {
	if d.Effect != proposal.Allow {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept = map[question]proposal.EgressDecision{}
	}
	if len(a.kept) < maxAnswers {
		a.kept[q] = own(d)
	}
}

// own returns d without anything that another copy of it shares.
func own(d proposal.EgressDecision) proposal.EgressDecision {
	d.Rules = slices.Clone(d.Rules)
	if d.Reason != nil {
		reason := *d.Reason
		d.Reason = &reason
	}
	return d
}

// ask returns policy's answer: from the supervisor or, for a question that was allowed in the same
// command, that answer again. Its callers keep the command's span open, so that no answer is kept
// for the next command.
func (w *way) ask(ctx context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
	q, reusable := questionOf(e)
	w.mu.RLock()
	s := w.current
	w.mu.RUnlock()
	if s == nil || !reusable {
		return w.control.ask(ctx, e)
	}
	if d, ok := s.answers.find(q); ok && ctx.Err() == nil {
		return d, nil
	}
	d, err := w.control.ask(ctx, e)
	if err == nil {
		s.answers.keep(q, d)
	}
	return d, err
}
