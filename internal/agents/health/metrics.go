// SPDX-License-Identifier: Apache-2.0

// Package health counts what happens to a server's sandboxes and commands, and serves the
// counts and whether the server takes new work.
//
// Metrics get their numbers from the entries of the audit log and from the sandbox, so they
// agree with logs and reports. They begin at 0 when the process does.
//
// A label has one of a fixed set of values. No name, command, path, host, token or text of
// a pull request is in a metric, so there is a bounded number of time series, and they
// reveal only how much was done, how long it took and how it ended.
package health

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Metrics are the counters and histograms of one server. New returns them. Methods are safe
// for concurrent use.
type Metrics struct {
	own        *prometheus.Registry // what fumehood counts
	all        *prometheus.Registry // and this process
	live, room prometheus.Gauge
	policy     *prometheus.GaugeVec

	starts, runs, decisions, commands, refusals, observed, flows, bytes *prometheus.CounterVec
	retried, logErrors                                                  prometheus.Counter
	startTime, readyTime, commandTime, decisionTime                     prometheus.Histogram

	listener net.Listener // of Serve; nil without Listen

	mu     sync.Mutex
	failed time.Time // when the last sandbox did not start; zero if it did
	code   string
}

// Values of the labels. Commands have proposal.Status's words, too.
const (
	started, startFailed, cancelled = "started", "failed", "cancelled"
	completed, stopped              = "completed", "stopped"
	succeeded, failed               = "succeeded", "failed"
	refusedProgram, refusedNetwork  = "program", "network"
	refusedCommand                  = "command"
	refused                         = "refused"
	bytesSent, bytesReceived        = "sent", "received"
)

// New returns Metrics of a server of this version, in a registry of their own. Every time series is
// there from the start, except for that of the policy, which the first run names.
func New(version string) *Metrics {
	m := &Metrics{own: prometheus.NewRegistry(), all: prometheus.NewRegistry()}
	m.newGaugeVec("fumehood_build_info", "The version of fumehood: always 1.", "version").
		WithLabelValues(version).Set(1)
	m.policy = m.newGaugeVec("fumehood_policy_info",
		"The digest of the policy of the latest run: always 1.", "digest")
	m.room = prometheus.NewGauge(prometheus.GaugeOpts{Name: "fumehood_sandboxes_limit",
		Help: "Sandboxes that the server has at most."})
	m.live = prometheus.NewGauge(prometheus.GaugeOpts{Name: "fumehood_sandboxes", Help: "Sandboxes that are running."})
	m.starts = m.newCounterVec("fumehood_sandbox_starts_total", "Sandboxes that were started, by result.", "result",
		started, startFailed, cancelled)
	m.runs = m.newCounterVec("fumehood_runs_total",
		"Sessions and plans that ended: stopped means by a failure of fumehood.", "outcome", completed, cancelled, stopped)
	m.decisions = m.newCounterVec("fumehood_decisions_total", "Commands that policy decided, by effect.", "effect",
		proposal.Allow.String(), proposal.Deny.String(), proposal.Ask.String())
	m.commands = m.newCounterVec("fumehood_commands_total", "Commands that ran, by how they ended.", "outcome",
		listOutcomes()...)
	m.refusals = m.newCounterVec("fumehood_refusals_total",
		"Starts of programs and network accesses of running commands that were refused.", "kind", refusedProgram, refusedNetwork)
	m.observed = m.newCounterVec("fumehood_observed_refusals_total",
		"Commands, starts of programs and network accesses that rules on trial, or overridden, would have refused.", "kind", refusedCommand,
		refusedProgram, refusedNetwork)
	m.flows = m.newCounterVec("fumehood_connections_total", "Connections through the egress gateway, by how they ended.",
		"outcome", succeeded, failed, refused)
	m.bytes = m.newCounterVec("fumehood_network_bytes_total", "Bytes through the egress gateway.", "direction",
		bytesSent, bytesReceived)
	m.logErrors = prometheus.NewCounter(prometheus.CounterOpts{Name: "fumehood_log_errors_total",
		Help: "Entries that could not be written to an audit log: the run stops."})
	m.retried = prometheus.NewCounter(prometheus.CounterOpts{Name: "fumehood_commands_retried_total",
		Help: "Commands that ran again because a runtime crashed."})
	m.startTime = m.newHistogram("fumehood_sandbox_start_seconds", "Time in which a sandbox started.", .05, .1, .25, .5,
		1, 2.5, 5, 10, 30, 60)
	m.readyTime = m.newHistogram("fumehood_session_ready_seconds",
		"Time from the request for a session until its first sandbox was ready, without the time in which the session was not used.", .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
	m.commandTime = m.newHistogram("fumehood_command_seconds", "Time that a command ran.", .005, .01, .05, .1, .5, 1, 5,
		10, 30, 60, 300, 1200)
	m.decisionTime = m.newHistogram("fumehood_decision_seconds", "Time in which policy decided a command.", .0005, .001,
		.0025, .005, .01, .025, .05, .1, .25, .5, 1)
	m.own.MustRegister(m.live, m.room, m.retried, m.logErrors)
	m.all.MustRegister(m.own, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) newCounterVec(name, help, label string, values ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, value := range values {
		v.WithLabelValues(value)
	}
	m.own.MustRegister(v)
	return v
}

func (m *Metrics) newGaugeVec(name, help, label string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
	m.own.MustRegister(v)
	return v
}

func (m *Metrics) newHistogram(name, help string, buckets ...float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.own.MustRegister(h)
	return h
}

// Gather returns what fumehood counts, without what is counted of the process.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) { return m.own.Gather() }

// Started counts a sandbox that started, or that did not because of err.
func (m *Metrics) Started(took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.live.Inc()
		m.startTime.Observe(took.Seconds())
		m.failed = time.Time{}
		m.starts.WithLabelValues(started).Inc()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		m.starts.WithLabelValues(cancelled).Inc()
	default:
		m.failed, m.code = time.Now(), proposal.FailureOf(err).Code
		m.starts.WithLabelValues(startFailed).Inc()
	}
}

// CountStartedElsewhere counts a sandbox that another process has started.
func (m *Metrics) CountStartedElsewhere() { m.live.Inc() }

// Ended counts a sandbox that started and is gone.
func (m *Metrics) Ended() { m.live.Dec() }

// Ready counts a session that became ready.
func (m *Metrics) Ready(took time.Duration) { m.readyTime.Observe(took.Seconds()) }

// CountDecision counts the time of a decision of policy.
func (m *Metrics) CountDecision(took time.Duration) { m.decisionTime.Observe(took.Seconds()) }

// SetLimit says how many sandboxes the server has at most.
func (m *Metrics) SetLimit(sandboxes int) { m.room.Set(float64(sandboxes)) }

// CountWaiting reports the number of sandboxes that wait for clients. Call it once.
func (m *Metrics) CountWaiting(waiting func() int) {
	m.own.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "fumehood_sandboxes_waiting",
		Help: "Sandboxes that were started before a client needed them."}, func() float64 { return float64(waiting()) }))
}

// Log returns log so that what is written to it is counted, too.
func (m *Metrics) Log(log journal.Log) journal.Log { return countedLog{m, log} }

type countedLog struct {
	m   *Metrics
	log journal.Log
}

// Append and Write count entries that were written. Each method of journal.Log is here, so
// that none is not counted.
func (c countedLog) Append(kind string, v any) (int64, error) {
	n, err := c.log.Append(kind, v)
	return c.countWritten(v, n, err)
}

func (c countedLog) Write(kind string, v any) (int64, error) {
	n, err := c.log.Write(kind, v)
	return c.countWritten(v, n, err)
}

func (c countedLog) countWritten(v any, n int64, err error) (int64, error) {
	if err != nil {
		c.m.logErrors.Inc()
		return n, err
	}
	c.m.countEntry(v)
	return n, err
}

func (m *Metrics) countEntry(entry any) {
	switch e := entry.(type) {
	case proposal.Run:
		m.CountLogEvent(journal.LogEvent{Run: &e})
	case journal.Events:
		m.CountLogEvent(journal.LogEvent{Events: e.Events})
	case journal.Decision:
		m.CountLogEvent(journal.LogEvent{Decision: &e.Decision})
	case journal.Result:
		m.CountLogEvent(journal.LogEvent{Result: &e.Result})
	case journal.End:
		m.CountLogEvent(journal.LogEvent{Totals: &e.Totals, Error: e.Error})
	}
}

// CountLogEvent counts an entry of a log that another process writes.
func (m *Metrics) CountLogEvent(e journal.LogEvent) {
	switch {
	case e.Run != nil:
		m.policy.Reset()
		m.policy.WithLabelValues(e.Run.Policy).Set(1)
	case e.Events != nil:
		m.countFlows(e.Events)
	case e.Decision != nil:
		m.decisions.WithLabelValues(e.Decision.Effect.String()).Inc()
		if wouldRefuse(*e.Decision) {
			m.observed.WithLabelValues(refusedCommand).Inc()
		}
	case e.Result != nil:
		m.countResult(*e.Result)
	case e.Totals != nil:
		m.runs.WithLabelValues(endOf(e.Error)).Inc()
	}
}

func (m *Metrics) countResult(r proposal.Result) {
	m.commands.WithLabelValues(outcomeOf(r)).Inc()
	m.commandTime.Observe((time.Duration(r.WallMS) * time.Millisecond).Seconds())
	if r.Retried != nil {
		m.retried.Inc()
	}
	if o := r.Observations; o != nil {
		m.refusals.WithLabelValues(refusedProgram).Add(float64(o.Counts.Refused))
		m.refusals.WithLabelValues(refusedNetwork).Add(float64(o.Counts.NetRefused))
		m.observed.WithLabelValues(refusedProgram).Add(float64(o.Counts.Watched))
		m.observed.WithLabelValues(refusedNetwork).Add(float64(o.Counts.NetWatched))
	}
}

// countFlows counts connections, not the lookups and requests of which they consist.
func (m *Metrics) countFlows(events []proposal.Event) {
	for _, e := range events {
		if e.Kind != proposal.EventConnection || e.Flow == nil {
			continue
		}
		outcome := succeeded
		switch {
		case e.Flow.Refused():
			outcome = refused
		case e.Flow.Code != "":
			outcome = failed
		}
		m.flows.WithLabelValues(outcome).Inc()
		m.bytes.WithLabelValues(bytesSent).Add(float64(e.Flow.Sent))
		m.bytes.WithLabelValues(bytesReceived).Add(float64(e.Flow.Received))
	}
}

// wouldRefuse reports whether a rule on trial would have made d stricter.
func wouldRefuse(d proposal.Decision) bool {
	return slices.ContainsFunc(d.Reasons, func(r proposal.Reason) bool { return r.Observed && r.Effect < d.Effect })
}

// listOutcomes are the values of outcomeOf.
func listOutcomes() []string {
	list := []string{succeeded, failed}
	for s := proposal.SandboxFailed; s < proposal.NotRun; s++ {
		if s != proposal.Exited {
			list = append(list, statusLabel(s))
		}
	}
	return list
}

func outcomeOf(r proposal.Result) string {
	switch {
	case r.Succeeded():
		return succeeded
	case r.Status == proposal.Exited:
		return failed
	}
	return statusLabel(r.Status)
}

func statusLabel(s proposal.Status) string { return strings.ReplaceAll(s.String(), " ", "_") }

func endOf(f *proposal.Failure) string {
	switch {
	case f == nil:
		return completed
	case f.Code == "run.cancelled" || f.Code == "run.timeout" || f.Code == "session.idle":
		return cancelled
	}
	return stopped
}
