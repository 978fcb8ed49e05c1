// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate

import (
	"context"
	"strings"

	"github.com/fumehood/fumehood/pkg/journal"
	"github.com/fumehood/fumehood/pkg/lineage"
	"github.com/fumehood/fumehood/pkg/observe"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox"
)

// Watch sets o's Exec and Event: policy decides about every program that a command
// starts, and what the sandbox's kernel sees goes to the log and the report. A policy that
// cannot answer refuses the program and stops the run. The caller gives the Observer to
// package order and calls the lineage gate's Begin before each command. A Gate does all
// of that; Watch is for callers with another order of stages. The error is observe.New's.
func Watch(ctx context.Context, engine *policy.Engine, log journal.Log, o *sandbox.Options) (*observe.Observer, *lineage.Gate, error) {
	observer, err := observe.New(log, engine.Event)
	if err != nil {
		return nil, nil, err
	}
	go engine.Ready() // while the sandbox starts
	gate := &lineage.Gate{Exec: engine.Exec, Analyze: Analyze, Start: engine.Start, DecideProgram: engine.DecideProgram, Confine: policy.Confine, Path: strings.Split(o.Path, ":")}
	o.Event = observer.See
	ctx = context.WithoutCancel(ctx) // an interrupted command is killed, not judged differently
	o.Exec = Judged(observer, func(x proposal.Exec) (proposal.ExecDecision, error) { return gate.Judge(ctx, x) })
	return observer, gate, nil
}

// Judged returns judge as the sandbox calls it: an error refuses the program, and makes the
// Observer stop what runs.
func Judged(observer *observe.Observer, judge func(proposal.Exec) (proposal.ExecDecision, error)) func(proposal.Exec) proposal.ExecDecision {
	return func(x proposal.Exec) proposal.ExecDecision {
		d, err := judge(x)
		if err == nil {
			return d
		}
		observer.Fail(err)
		f := proposal.FailureOf(err)
		return proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{f.Code},
			Reason: &proposal.Reason{Rule: f.Code, Effect: proposal.Deny, Message: "policy could not decide about the program", Suggestion: f.Hint, Command: -1}}
	}
}
