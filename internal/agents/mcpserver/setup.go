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

// A setup is the installation of dependencies, before the first command of a session that may need
// them. It ends with the connection, not with the call that began it: the next call needs it too.
type setup struct {
	mu      sync.Mutex
	running int // calls that wait for it
	count   int
	left    bool     // a command other than a service has run
	notes   []string // of failures and of what is lost, for the first answer
}

// runBefore runs what p needs of the set-up, and returns when it has ended or ctx has.
func (u *setup) runBefore(ctx, connection context.Context, s gate.Session, p proposal.Proposal) error {
	done := make(chan error, 1)
	u.countRunning(1)
	go func() {
		defer u.countRunning(-1)
		done <- s.SetUp(connection, p, u.recordCommandEnd)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *setup) countRunning(more int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.running += more
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
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running == 0 {
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
