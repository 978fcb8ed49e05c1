// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/agents/health"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/gate"
)

// DefaultDrain is less than the 30 seconds that most service managers wait.
const DefaultDrain = 20 * time.Second

// DefineReady adds the flag of the servers' pool.
func (s *Flags) DefineReady(f *pflag.FlagSet) {
	f.IntVar(&s.ready, "ready", 1,
		fmt.Sprintf("`N` sandboxes without a network to start before a client needs them, each with about 40 MB, at most %d", sandbox.MaxPool))
}

// ReadyMisuse returns why --ready is invalid, or "".
func (s *Flags) ReadyMisuse() string {
	if s.ready < 0 || s.ready > sandbox.MaxPool {
		return fmt.Sprintf("--ready must be from 0 to %d", sandbox.MaxPool)
	}
	return ""
}

// StartPool makes the gates of a server share a pool until end. Call it before they are made, and
// after StartMetrics.
func (s *Flags) StartPool(c *cli.Invocation) (end func()) {
	s.pool = gate.NewPool(s.ready)
	if m, counts := s.Health.(*health.Metrics); counts {
		m.CountWaiting(s.pool.Waiting)
	}
	return func() {
		if err := s.pool.Close(); err != nil {
			c.WarnOf(err)
		}
	}
}

// FillPool fills the pool for sessions with o.
func FillPool(c *cli.Invocation, g *gate.Gate, o gate.SessionOptions) {
	if err := g.Prepare(c.Ctx, o); err != nil {
		c.WarnOf(err) // clients get it, too
	}
}

// DefineDrain adds the flags of a server over HTTP: how it ends, and where else it says how it is.
func (s *Flags) DefineDrain(f *pflag.FlagSet) {
	f.StringVar(&s.HealthAddress, "health", "",
		"`ADDRESS` also serve /healthz and /metrics, and nothing else, at this address, for example :9464; anyone who can connect can read them")
	f.DurationVar(&s.Drain, "drain", DefaultDrain,
		"`DURATION` how long running commands may take after SIGTERM or SIGINT, before they are killed; a second signal kills them")
}

// StartMetrics makes the gates of a server over HTTP count what they do, listens at --health, and sends
// the metrics to the collector until end.
func (s *Flags) StartMetrics(c *cli.Invocation) (metrics *health.Metrics, end func(), err error) {
	metrics = health.New(c.Version)
	if s.HealthAddress != "" {
		url, err := metrics.Listen(c.Ctx, s.HealthAddress)
		if err != nil {
			return nil, nil, err
		}
		c.PrintNotes("serving " + health.HealthPath + " and " + health.MetricsPath + " at " + url)
	}
	s.Health = metrics
	silent := context.AfterFunc(c.Ctx, func() {
		c.PrintNotes(fmt.Sprintf("shutting down: running commands have %v, a second signal kills them", s.Drain))
	})
	sent := func() {}
	if s.export.exporter != nil {
		sent = s.export.exporter.StartPush(c.Ctx, metrics.Gather, c.WarnOf)
	}
	return metrics, func() { silent(); sent() }, nil
}
