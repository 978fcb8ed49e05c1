// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pod

import (
	"context"
	"sync"

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An engine is the pod's policy. It is compiled while the sandbox starts; what it decides waits for
// that, and has its error.
type engine struct {
	digest string
	made   func() (*policy.Engine, error)
}

// compile compiles policy in the background, and calls failed if that is not possible.
func compile(o policy.Options, failed func(error)) (*engine, error) {
	digest, err := o.Digest()
	if err != nil {
		return nil, err
	}
	e := &engine{digest, sync.OnceValues(func() (*policy.Engine, error) { return policy.New(context.Background(), o) })}
	go func() {
		if made, err := e.made(); err != nil {
			failed(err)
		} else {
			made.Ready()
		}
	}()
	return e, nil
}

// Decide implements hood.Decider.
func (e *engine) Decide(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	made, err := e.made()
	if err != nil {
		return proposal.Decision{}, err
	}
	return made.Decide(ctx, p, a)
}

// Start decides about a start, as policy.Engine.Start does.
func (e *engine) Start(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	made, err := e.made()
	if err != nil {
		return proposal.Decision{}, err
	}
	return made.Start(ctx, p, a)
}

// decided returns a method of the engine that waits for it.
func decided[I, O any](e *engine, decide func(*policy.Engine, context.Context, I) (O, error)) func(context.Context, I) (O, error) {
	return func(ctx context.Context, x I) (o O, err error) {
		made, err := e.made()
		if err != nil {
			return o, err
		}
		return decide(made, ctx, x)
	}
}
