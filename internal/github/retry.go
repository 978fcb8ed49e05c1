// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fumehood/fumehood/internal/kit/retry"
)

// How often one request is made at most when there is no answer, when the answer is
// not what it should be, and when a rate limit is named.
const (
	triesUnavailable = 5
	triesMalformed   = 3
	triesLimited     = 10

	firstBackoff = time.Second
	// GitHub wants at least a minute after a secondary limit that names no time.
	limitBackoff = time.Minute
)

// A retryState is what is left to one call of a Client of waiting and trying.
type retryState struct {
	c      *Client
	op     operation
	start  time.Time
	waited time.Duration
	tries  int // of the present request
}

func (c *Client) newRetryState(op operation) *retryState {
	return &retryState{c: c, op: op, start: c.now()}
}

// requestWithRetry makes one request by f, again where that helps and does no harm.
func requestWithRetry[T any](
	ctx context.Context, c *Client, op operation, f func(context.Context) (T, error),
) (T, error) {
	return retryRequest(ctx, c.newRetryState(op), f)
}

func retryRequest[T any](ctx context.Context, p *retryState, f func(context.Context) (T, error)) (T, error) {
	for p.tries = 1; ; p.tries++ {
		value, e := tryRequest(ctx, p, f)
		if e == nil {
			return value, nil
		}
		wait, again := p.nextWait(ctx, e)
		if !again {
			if p.op.effect != reads && e.mayHaveSucceeded() {
				e.Kind = Uncertain
			}
			return value, e.toStopError(p.op)
		}
		if err := p.c.sleep(ctx, wait); err != nil {
			return value, canceledError(err).toStopError(p.op)
		}
		p.waited += wait
	}
}

// tryRequest makes one request within its time.
func tryRequest[T any](ctx context.Context, p *retryState, f func(context.Context) (T, error)) (T, *Error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, canceledError(err)
	}
	limit := p.c.timeout
	if p.op == download {
		limit = max(limit, p.c.maxWait) // as large as the caller allows
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	value, err := f(timed)
	e := asError(err)
	if e == nil {
		return value, nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		e = &Error{Kind: Unavailable, Status: e.Status, Message: fmt.Sprintf("no complete response within %v", limit),
			Err: err}
		if ctx.Err() != nil {
			e = canceledError(ctx.Err())
			e.unsent = false
		}
	}
	return none, e
}

// canceledError is the error of a call whose caller has gone before a request was made.
func canceledError(err error) *Error {
	return &Error{Kind: Canceled, Message: makePrintable(err.Error()), Err: err, unsent: true}
}

// mayHaveSucceeded reports whether the request that met e may have done its work all the same.
func (e *Error) mayHaveSucceeded() bool {
	return !e.unsent && (e.Kind == Unavailable || e.Kind == Malformed || e.Kind == Canceled)
}

// nextWait says whether to try again after e, and when.
func (p *retryState) nextWait(ctx context.Context, e *Error) (wait time.Duration, again bool) {
	if e.long || p.op.effect == adds && e.mayHaveSucceeded() {
		return 0, false
	}
	tries := 0
	switch e.Kind {
	case RateLimited:
		tries, wait = triesLimited, limitBackoff<<(p.tries-1)
	case Unavailable:
		tries, wait = triesUnavailable, retry.Backoff(firstBackoff, p.tries)
	case Malformed:
		tries, wait = triesMalformed, retry.Backoff(firstBackoff, p.tries)
	default:
		return 0, false
	}
	if e.wait > 0 {
		wait = e.wait
	}
	now := p.c.now()
	if e.Kind == RateLimited {
		e.Until = now.Add(wait)
	}
	if p.tries >= tries || max(now.Sub(p.start), p.waited)+wait > p.c.maxWait {
		return 0, false
	}
	return wait, retry.FitsDeadline(ctx, now, wait)
}
