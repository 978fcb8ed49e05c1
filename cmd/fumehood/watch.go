// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"strings"

	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/lineage"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox"
)

// watch has policy judge every program that a command starts, and what the sandbox's
// kernel sees go to the log and the report. A policy that cannot answer refuses the
// program and stops the run. The gate that it returns must be told of each command.
func watch(ctx context.Context, engine *policy.Engine, log hood.Log, o *sandbox.Options) (*hood.Observer, *lineage.Gate) {
	go engine.Ready() // while the sandbox starts
	observer := hood.NewObserver(log, engine.Event)
	gate := &lineage.Gate{Exec: engine.Exec, Analyze: analyse, Start: engine.Start, Path: strings.Split(o.Path, ":")}
	o.Event = observer.See
	ctx = context.WithoutCancel(ctx) // an interrupted command is killed, not judged otherwise
	o.Exec = func(x proposal.Exec) proposal.ExecDecision {
		d, err := gate.Judge(ctx, x)
		if err == nil {
			return d
		}
		observer.Fail(err)
		f := proposal.FailureOf(err)
		return proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{f.Code},
			Reason: &proposal.Reason{Rule: f.Code, Effect: proposal.Deny, Message: "policy could not judge the program", Suggestion: f.Hint, Command: -1}}
	}
	return observer, gate
}
