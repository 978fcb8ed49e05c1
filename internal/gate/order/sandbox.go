// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// openSandbox makes the Runner, with the largest limits of the commands that will run, for the
// network entries that they were granted. Its sandbox starts with its first Run. The time for all
// commands begins.
func (s *Session) openSandbox(ctx context.Context, limits proposal.Limits, granted []string) (err error) {
	if s.options, err = s.completeOptions(ctx, limits, granted); err != nil {
		return err
	}
	if s.runner, err = s.stages.Start(s.options); err != nil {
		s.runner = nil
		return err
	}
	s.deadline = s.stages.Now().Add(s.stages.budgetOrDefault())
	return nil
}

// completeOptions returns the options of the run's sandbox. Stages.Sandbox has what is known before
// the run: runsc, the root, the workspace, the variables of tools, the guard for git, and the pool.
// Everything else is set here, in this order, and nowhere else.
func (s *Session) completeOptions(
	ctx context.Context, limits proposal.Limits, granted []string,
) (sandbox.Options, error) {
	st, o := s.stages, s.stages.Sandbox

	// The decisions are on disk, so it is known what the sandbox must be large enough for. Each
	// command then gets its own limits.
	o.Limits = limits

	// What commands print and leave waits where only the Redactor takes it from.
	o.Artifacts = st.Unread

	// Each program is decided before it starts. A decision that cannot be made refuses the program
	// and stops the run. A command that is interrupted is killed, not judged differently.
	judging := context.WithoutCancel(ctx)
	o.Exec = func(x proposal.Exec) proposal.ExecDecision {
		return st.Observer.AnswerExec(st.Lineage.DecideExec(judging, x))
	}

	// What the kernel sees is in the log before the result.
	o.Event = st.Observer.AddEvent

	// findLayer has looked for what set-up leaves, with the options without a network: the key of a
	// layer does not depend on what only this run's gateway has.
	o.Layer, o.Recorded = s.found.File, s.found.Record

	// Servers count their sandboxes.
	if st.Health != nil {
		o.Started, o.Ended = s.countStarted, st.Health.Ended
	}

	// The gateway is last: it starts a process, and covers files of the options so far. Without it
	// the sandbox has no network.
	if err := s.openNetwork(ctx, granted, o); err != nil {
		return o, err
	}
	s.link.addTo(&o)
	return o, nil
}

// countStarted counts a sandbox that has started, or could not because of err.
func (s *Session) countStarted(took time.Duration, err error) {
	s.stages.Health.Started(took, err)
	if err == nil && s.opened > 0 {
		s.ready.Do(func() { s.stages.Health.Ready(s.opened + took) })
	}
}

// openNetwork opens the network for granted, if it is not empty or Stages say so. Without a gateway
// it returns a coded error, and nothing runs: a test that silently lacks its network proves nothing.
func (s *Session) openNetwork(ctx context.Context, granted []string, o sandbox.Options) error {
	switch {
	case len(granted) == 0 && !s.stages.NetworkAlways:
		return nil
	case s.stages.Network == nil:
		return &proposal.StopError{Code: "network.unavailable",
			Message: "policy granted a host to a command, but this run has no gateway",
			Hint:    "run `fumehood doctor`, which shows what this host lacks, or propose the command without `network`"}
	}
	link, err := s.stages.Network.Open(ctx, granted, o)
	if err != nil {
		return err
	}
	s.link = &link
	return nil
}

// GrantedNetwork returns the network entries granted to commands that will run.
func GrantedNetwork(records []proposal.Record) (granted []string) {
	for _, r := range records {
		if r.Runnable() && r.Decision.Grant != nil {
			granted = append(granted, r.Decision.Grant.Network...)
		}
	}
	slices.Sort(granted)
	return slices.Compact(granted)
}
