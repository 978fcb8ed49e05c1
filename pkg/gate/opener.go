// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate

import (
	"context"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Opener decides proposals and has one session at a time: a *Gate, whose sessions are
// *Sessions, or something like it elsewhere.
type Opener[S any] interface {
	Check(ctx context.Context, plan proposal.Plan) ([]proposal.Record, error)
	Open(ctx context.Context, o SessionOptions) (S, error)
	Close() error
}

// As returns g with each session as as returns it. A session that is not opened is the zero T, so
// that no interface holds a nil pointer.
func As[S, T any](g Opener[S], as func(S) T) Opener[T] { return opener[S, T]{g, as} }

type opener[S, T any] struct {
	Opener[S]
	as func(S) T
}

func (g opener[S, T]) Open(ctx context.Context, o SessionOptions) (t T, err error) {
	s, err := g.Opener.Open(ctx, o)
	if err == nil {
		t = g.as(s)
	}
	return t, err
}

// Each returns a function that makes an Opener for a tenant of what open returns, as as returns it.
// Without an Opener it returns nil.
func Each[G, T any](open func(tenant string) (G, error), as func(G) Opener[T]) func(context.Context, string) (Opener[T], error) {
	return func(_ context.Context, tenant string) (Opener[T], error) {
		g, err := open(tenant)
		if err != nil {
			return nil, err
		}
		return as(g), nil
	}
}
