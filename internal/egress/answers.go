// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxAnswers is the maximum number of answers that are kept for one command.
const maxAnswers = 4096

// answerCache are what policy allowed a command before: a program that opens many connections to a
// host asks the same three or four questions about each. Policies are repeatable (no clock, no
// randomness, no network: see package policy/module) and a command's grant does not change, so the
// supervisor would give the same answer again. Each lookup and connection is still reported, with
// that answer.
//
// Refusals are not kept: the supervisor also explains them to the program, and a name's budget may
// be the reason. Nor are answers about requests and datagrams, where more than the host counts.
type answerCache struct {
	mu   sync.Mutex
	kept map[answerKey]proposal.EgressDecision
}

// An answerKey is all of an Egress that a reusable answer depends on.
type answerKey struct {
	kind, name, typ, address, protocol, sni string
	port                                    int
}

// questionOf returns e as a question, or false if it is of a kind, or has a field, that is
// asked about each time.
func questionOf(e proposal.Egress) (answerKey, bool) {
	switch e.Kind {
	case points.EgressLookup, points.EgressConnect, points.EgressHello:
	default:
		return answerKey{}, false
	}
	q := answerKey{e.Kind, e.Name, e.Type, e.Address, e.Protocol, e.SNI, e.Port}
	e.Kind, e.Name, e.Type, e.Address, e.Protocol, e.SNI, e.Port = "", "", "", "", "", "", 0
	return q, reflect.ValueOf(e).IsZero()
}

// findAnswer returns the answer that was kept.
func (a *answerCache) findAnswer(q answerKey) (proposal.EgressDecision, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d, ok := a.kept[q]
	return cloneDecision(d), ok
}

// storeAnswer keeps d, if it allows and there is room.
func (a *answerCache) storeAnswer(q answerKey, d proposal.EgressDecision) {
	if d.Effect != proposal.Allow {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept = map[answerKey]proposal.EgressDecision{}
	}
	if len(a.kept) < maxAnswers {
		a.kept[q] = cloneDecision(d)
	}
}

// cloneDecision returns d without anything that another copy of it shares.
func cloneDecision(d proposal.EgressDecision) proposal.EgressDecision {
	d.Rules = slices.Clone(d.Rules)
	if d.Reason != nil {
		reason := *d.Reason
		d.Reason = &reason
	}
	return d
}

// decideEgress returns policy's answer: from the supervisor or, for a question that was allowed in the same
// command, that answer again. Its callers keep the command's span open, so that no answer is kept
// for the next command.
func (w *gatewayServer) decideEgress(ctx context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
	q, reusable := questionOf(e)
	w.mu.RLock()
	s := w.current
	w.mu.RUnlock()
	if s == nil || !reusable {
		return w.control.askSupervisor(ctx, e)
	}
	if d, ok := s.answers.findAnswer(q); ok && ctx.Err() == nil {
		return d, nil
	}
	d, err := w.control.askSupervisor(ctx, e)
	if err == nil {
		s.answers.storeAnswer(q, d)
	}
	return d, err
}
