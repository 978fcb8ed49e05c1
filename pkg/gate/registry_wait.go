// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// registryPatience is how long a command waits for the first registry that answers. Package managers repeat their
// requests for more than a minute, and do not say meanwhile what they wait for.
const registryPatience = 10 * time.Second

// A registryWait ends a command that reaches none of its registries. The gateway asks about what a program sends
// only when the host has accepted the connection: the first such question ends the wait.
type registryWait struct {
	patience time.Duration // registryPatience if 0

	mu    sync.Mutex
	notes *sandbox.Notes
	stop  context.CancelCauseFunc // nil if no command runs, or a registry has answered it
	timer *time.Timer             // nil before the first question
}

// beginCommand waits for the registries of the command that runs.
func (w *registryWait) beginCommand(notes *sandbox.Notes, stop context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes, w.stop, w.timer = notes, stop, nil
}

// endWait waits no longer.
func (w *registryWait) endWait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = nil
	if w.timer != nil {
		w.timer.Stop()
	}
}

// noteQuestion takes each question of the gateway that policy allows.
func (w *registryWait) noteQuestion(x proposal.Egress) {
	switch {
	case len(x.Registries) == 0:
		return
	case x.Kind != points.EgressLookup && x.Kind != points.EgressConnect:
		w.endWait()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil || w.timer != nil {
		return
	}
	began := make(chan *time.Timer, 1)
	w.timer = time.AfterFunc(cmp.Or(w.patience, registryPatience), func() { w.giveUp(<-began, x) })
	began <- w.timer
}

// giveUp ends the command whose wait began with timer and x.
func (w *registryWait) giveUp(timer *time.Timer, x proposal.Egress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil || w.timer != timer {
		return
	}
	text := replaceUnprintable(fmt.Sprintf("cannot reach the registry %s: %s did not answer within %s",
		strings.Join(x.Registries, ", "), x.Name, cmp.Or(w.patience, registryPatience)))
	w.notes.Add("fumehood: " + text)
	w.stop(&proposal.StopError{Code: "network.unanswered", Message: text,
		Hint: "check that this machine can reach the host"})
	w.stop = nil
}
