// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Granted returns the network entries granted to commands that will run.
func Granted(records []proposal.Record) (granted []string) {
	for _, r := range records {
		if r.Runnable() && r.Decision.Grant != nil {
			granted = append(granted, r.Decision.Grant.Network...)
		}
	}
	slices.Sort(granted)
	return slices.Compact(granted)
}

// connect opens the network for granted, if it is not empty or Parts say so. Without a gateway it returns
// a coded error, and nothing runs: a test that silently lacks its network proves nothing.
func (h *Hood) connect(ctx context.Context, granted []string) error {
	switch {
	case len(granted) == 0 && !h.p.NetworkAlways:
		return nil
	case h.p.Network == nil:
		return &proposal.StopError{Code: "network.unavailable",
			Message: "policy granted a host to a command, but this run has no gateway",
			Hint:    "run `fumehood doctor`, which shows what this host lacks, or propose the command without `network`"}
	}
	h.networkOpen = true
	return h.p.Network.Open(ctx, granted)
}

// within runs x between the gateway's Begin and End. The first error is the Runner's,
// or says that x was not started; the second says that the gateway did not end it.
func (h *Hood) within(ctx context.Context, runner Runner, x proposal.Execution) (result proposal.Result, runErr, endErr error) {
	if !h.networkOpen {
		result, runErr = runner.Run(ctx, x)
		return result, runErr, nil
	}
	x.Notes = new(proposal.Notes)
	if err := h.p.Network.Begin(ctx, x); err != nil {
		never := notStarted("the gateway did not accept it")
		if ctx.Err() != nil {
			never.Detail = "the run was interrupted"
		}
		return never, err, nil
	}
	result, runErr = runner.Run(ctx, x)
	return result, runErr, h.p.Network.End()
}
