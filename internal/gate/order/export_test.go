// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// These are for the tests outside this package.
var (
	Observing = observing
	Redacting = redacting
	Programs  = programs
)

// observing returns an Observer that writes to log, and for which policy has the same
// findings about every event of note.
func observing(log journal.Log, found ...proposal.Finding) *observe.Observer {
	o, err := observe.New(log, func(context.Context, proposal.Event) ([]proposal.Finding, error) { return found, nil })
	if err != nil {
		panic(err)
	}
	return o
}

// redacting returns a Redactor without artifacts that masks the canary.
func redacting() *redact.Redactor {
	r, err := redact.New(redact.Options{Masks: []redact.Mask{{Name: "C", Value: canary}}})
	if err != nil {
		panic(err)
	}
	return r
}

// programs returns a Lineage for tests in which no command starts a program.
func programs() *lineage.ProgramDecider { return &lineage.ProgramDecider{Confine: policy.Confine} }

// afterRun is a command in the background of a test's Runner: it has run already.
type afterRun struct {
	result proposal.Result
	err    error
}

func (p afterRun) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
func (p afterRun) Result() (proposal.Result, error) { return p.result, p.err }
func (p afterRun) Interrupt() error                 { return nil }
func (p afterRun) Kill(string)                      {}
