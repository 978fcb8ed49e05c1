// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/health"
)

// defaultDrain is less than the 30 seconds that most service managers wait.
const defaultDrain = 20 * time.Second

// defineReady adds the flag of the servers' pool.
func (s *runFlags) defineReady(f *pflag.FlagSet) {
	f.IntVar(&s.ready, "ready", 1, fmt.Sprintf("`N` sandboxes without a network to start before a client needs them, each with about 40 MB, at most %d", gate.MaxPool))
}

// readyMisuse returns why --ready is invalid, or "".
func (s *runFlags) readyMisuse() string {
	if s.ready < 0 || s.ready > gate.MaxPool {
		return fmt.Sprintf("--ready must be from 0 to %d", gate.MaxPool)
	}
	return ""
}

// pooling makes the gates of a server share a pool until end. Call it before they are made.
func (c *invocation) pooling(s *runFlags) (end func()) {
	s.pool = gate.NewPool(s.ready)
	return func() {
		if err := s.pool.Close(); err != nil {
			c.WarnOf(err)
		}
	}
}

// prepare fills the pool for sessions with o.
func (c *invocation) prepare(g *gate.Gate, o gate.SessionOptions) {
	if err := g.Prepare(c.Ctx, o); err != nil {
		c.WarnOf(err) // clients get it, too
	}
}

func (s *runFlags) defineDrain(f *pflag.FlagSet) {
	f.DurationVar(&s.drain, "drain", defaultDrain, "`DURATION` how long running commands may take after SIGTERM or SIGINT, before they are killed; a second signal kills them")
}

// serving makes the gates of a server over HTTP count what they do, and sends the metrics to
// the collector until end.
func (c *invocation) serving(s *runFlags) (metrics *health.Metrics, end func()) {
	metrics = health.New()
	s.health = metrics
	silent := context.AfterFunc(c.Ctx, func() {
		c.Note(fmt.Sprintf("shutting down: running commands have %v, a second signal kills them", s.drain))
	})
	sent := func() {}
	if s.export.exporter != nil {
		sent = s.export.exporter.StartPush(c.Ctx, metrics.Gather, c.WarnOf)
	}
	return metrics, func() { silent(); sent() }
}
