// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"sync"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Policy is what one pod decides by. Compile returns one. It is compiled in the background; what
// it decides waits for that, and has its error.
type Policy struct {
	digest string
	made   func() (*policy.Engine, error)
	ready  chan struct{}
}

// Compile compiles policy in the background, whose files must be valid. The error is a
// *proposal.StopError.
func Compile(o policy.Options) (*Policy, error) {
	digest, err := o.Digest()
	if err != nil {
		return nil, err
	}
	p := &Policy{digest, sync.OnceValues(func() (*policy.Engine, error) { return policy.New(context.Background(), o) }),
		make(chan struct{})}
	go func() {
		defer close(p.ready)
		if made, err := p.made(); err == nil {
			made.Ready()
		}
	}()
	return p, nil
}

// Digest is that of the options: see policy.Options.Digest.
func (p *Policy) Digest() string { return p.digest }

// Ready is closed when nothing is left to compile, or that has failed.
func (p *Policy) Ready() <-chan struct{} { return p.ready }

// Decide implements order.Decider.
func (p *Policy) Decide(ctx context.Context, x proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	made, err := p.made()
	if err != nil {
		return proposal.Decision{}, err
	}
	return made.Decide(ctx, x, a)
}

// Start decides about a start, as policy.Engine.Start does.
func (p *Policy) Start(ctx context.Context, x proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	made, err := p.made()
	if err != nil {
		return proposal.Decision{}, err
	}
	return made.Start(ctx, x, a)
}

// DecideProgram decides about a program under another name, as policy.Engine.DecideProgram does.
func (p *Policy) DecideProgram(
	ctx context.Context, x proposal.Proposal, a proposal.Analysis,
) (d proposal.Decision, decided bool, err error) {
	made, err := p.made()
	if err != nil {
		return proposal.Decision{}, false, err
	}
	return made.DecideProgram(ctx, x, a)
}

// workspace is what policy says about files. Without a policy nothing starts, whatever it is.
func (p *Policy) workspace() facts.Workspace {
	made, err := p.made()
	if err != nil {
		return facts.Workspace{}
	}
	return made.Workspace()
}

// decided returns a method of the engine that waits for it.
func decided[I, O any](
	p *Policy, decide func(*policy.Engine, context.Context, I) (O, error),
) func(context.Context, I) (O, error) {
	return func(ctx context.Context, x I) (o O, err error) {
		made, err := p.made()
		if err != nil {
			return o, err
		}
		return decide(made, ctx, x)
	}
}
