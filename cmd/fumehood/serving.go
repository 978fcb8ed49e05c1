// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/pkg/health"
)

// defaultDrain is less than the 30 seconds that most service managers wait.
const defaultDrain = 20 * time.Second

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
