// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A setup is the installation of dependencies, before a session's first command. It ends
// with the connection, not with the call that began it: the next call needs it too.
type setup struct {
	once sync.Once
	done chan struct{}
	err  error

	mu    sync.Mutex
	begun bool
	count int
	left  bool     // a command other than a service has run
	notes []string // of failures and of what is lost, for the first answer
}

// newSetup returns a setup that has not begun, with notes for the first answer.
func newSetup(notes []string) *setup { return &setup{done: make(chan struct{}), notes: notes} }

// waitOrRun runs the set-up if no call has, and returns when it has ended or ctx has.
func (u *setup) waitOrRun(ctx, connection context.Context, s gate.Session) error {
	u.once.Do(func() {
		u.mu.Lock()
		u.begun = true
		u.mu.Unlock()
		go func() {
			defer close(u.done)
			u.err = s.SetUp(connection, u.recordCommandEnd)
		}()
	})
	select {
	case <-u.done:
		return u.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *setup) recordCommandEnd(r proposal.Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
	u.left = u.left || r.Proposal.Origin != proposal.OriginService
	command := text.Inline(strings.TrimSpace(r.Analysis.Canonical), 80)
	switch {
	case !r.Runnable():
		u.notes = append(u.notes, fmt.Sprintf("set-up command %s: %s", command, r.Decision.Effect))
	case r.Result != nil && !r.Result.Succeeded():
		u.notes = append(u.notes, fmt.Sprintf("set-up command %s: %s", command, r.Result.Outcome()))
	}
}

// describeProgress says how far the set-up is; "" if it does not run.
func (u *setup) describeProgress() string {
	select {
	case <-u.done:
		return ""
	default:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.begun {
		return ""
	}
	return fmt.Sprintf("installing dependencies, %d commands done", u.count)
}

// hasRun reports whether something of it may be in the workspace, as nothing of a service is.
func (u *setup) hasRun() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.left
}

// takeFailures returns the failures that no answer has had yet.
func (u *setup) takeFailures() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	notes := u.notes
	u.notes = nil
	return notes
}
