// SPDX-License-Identifier: Apache-2.0

package hood

import (
	"context"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// connected says, with a code, that a command was granted a host and there is no way
// out. Nothing runs then: a test that silently lacks its network proves nothing.
func (h *Hood) connected(records []proposal.Record) error {
	for _, r := range records {
		if h.Network == nil && r.Runnable() && r.Decision.Grant != nil && len(r.Decision.Grant.Network) > 0 {
			return &proposal.StopError{Code: "network.unavailable",
				Message: "policy granted the network to a command, and this run has no gateway",
				Hint:    "run `fumehood doctor`, which says what this host lacks, or propose the command without `network`"}
		}
	}
	return nil
}

// within runs x between the gateway's Begin and End. The first error is the Runner's,
// or says that x was not started; the second is that the gateway did not end it.
func (h *Hood) within(ctx context.Context, runner Runner, x proposal.Execution) (proposal.Result, error, error) {
	if h.Network == nil {
		result, err := runner.Run(ctx, x)
		return result, err, nil
	}
	if err := h.Network.Begin(ctx, x); err != nil {
		result := notRun("it was not started: the gateway did not take it")
		result.Status = proposal.SandboxFailed
		return *result, err, nil
	}
	result, err := runner.Run(ctx, x)
	return result, err, h.Network.End()
}
