// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	collectmetrics "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/slim/otlp/metrics/v1"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// MetricsEvery is the time between two sendings of a server's metrics.
const MetricsEvery = time.Minute

// SendMetrics sends counters, gauges and histograms with the names and labels that they have
// for Prometheus, cumulative since their creation. instance identifies this process. It
// returns like Send.
func (x *Exporter) SendMetrics(
	ctx context.Context, instance string, families []*dto.MetricFamily, now time.Time,
) error {
	defer x.client.CloseIdleConnections()
	headers, err := readHeaders(x.o.Headers, x.o.Getenv)
	if err != nil {
		return err
	}
	run := proposal.Run{ID: instance, Version: x.o.Version}
	var list []*metrics.Metric
	for _, f := range families {
		list = append(list, metricOf(f, uint64(now.UnixNano())))
	}
	scoped := &metrics.ScopeMetrics{Scope: newScope(run), SchemaUrl: SchemaURL, Metrics: list}
	m := &collectmetrics.ExportMetricsServiceRequest{ResourceMetrics: []*metrics.ResourceMetrics{{
		Resource: resourceOf(run, x.o.Source), SchemaUrl: SchemaURL, ScopeMetrics: []*metrics.ScopeMetrics{scoped}}}}
	var answer collectmetrics.ExportMetricsServiceResponse
	err = x.postMessage(ctx, headers, "v1/metrics", m, &answer)
	if p := answer.PartialSuccess; err == nil && p != nil && p.RejectedDataPoints != 0 {
		err = rejectedError(p.RejectedDataPoints, len(list), "metrics", redactHeaders(headers, p.ErrorMessage))
	}
	return metricsFailed(err)
}

// PushMetrics sends what gather returns every MetricsEvery until ctx ends, and then a last time. A
// failure is passed to warn, if the one before it succeeded.
func (x *Exporter) PushMetrics(
	ctx context.Context, instance string, gather func() ([]*dto.MetricFamily, error), warn func(error),
) {
	ticks := time.NewTicker(MetricsEvery)
	defer ticks.Stop()
	healthy := true
	for ended := false; !ended; {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			ended = true
		}
		err := x.pushOnce(ctx, instance, gather)
		if err != nil && healthy {
			warn(err)
		}
		healthy = err == nil
	}
}

// StartPush is PushMetrics in the background, as a new instance, until the function that it returns
// has sent the last metrics. It does not end with ctx.
func (x *Exporter) StartPush(
	ctx context.Context, gather func() ([]*dto.MetricFamily, error), warn func(error),
) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { x.PushMetrics(ctx, rand.Text(), gather, warn) })
	return func() { cancel(); running.Wait() }
}

func (x *Exporter) pushOnce(ctx context.Context, instance string, gather func() ([]*dto.MetricFamily, error)) error {
	families, err := gather()
	if err != nil {
		return metricsFailed(err)
	}
	ctx, cancel := NewSendContext(ctx)
	defer cancel()
	return x.SendMetrics(ctx, instance, families, time.Now())
}

func metricsFailed(err error) error {
	if err == nil {
		return nil
	}
	return &proposal.StopError{Code: Failed,
		Message: "cannot send metrics to the collector: " + strings.ReplaceAll(err.Error(), "\n", "; "),
		Hint:    "check that the collector receives metrics; later metrics include what is missing now"}
}

func metricOf(f *dto.MetricFamily, now uint64) *metrics.Metric {
	m := &metrics.Metric{Name: f.GetName(), Description: f.GetHelp()}
	if strings.HasSuffix(m.Name, "_seconds") {
		m.Unit = "s"
	}
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		m.Data = &metrics.Metric_Sum{Sum: &metrics.Sum{IsMonotonic: true, AggregationTemporality: cumulative,
			DataPoints: mapPoints(f, now, counterPoint)}}
	case dto.MetricType_GAUGE:
		m.Data = &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: mapPoints(f, now, gaugePoint)}}
	case dto.MetricType_HISTOGRAM:
		m.Data = &metrics.Metric_Histogram{Histogram: &metrics.Histogram{AggregationTemporality: cumulative,
			DataPoints: mapPoints(f, now, histogramPoint)}}
	}
	return m
}

const cumulative = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

func mapPoints[P any](
	f *dto.MetricFamily, now uint64, point func(*dto.Metric, []*common.KeyValue, uint64) P,
) (points []P) {
	for _, m := range f.GetMetric() {
		var labels attributes
		for _, l := range m.GetLabel() {
			labels.addText(l.GetName(), l.GetValue())
		}
		points = append(points, point(m, labels, now))
	}
	return points
}

func counterPoint(m *dto.Metric, labels []*common.KeyValue, now uint64) *metrics.NumberDataPoint {
	begin := uint64(m.GetCounter().GetCreatedTimestamp().AsTime().UnixNano())
	return &metrics.NumberDataPoint{Attributes: labels, StartTimeUnixNano: begin, TimeUnixNano: now,
		Value: &metrics.NumberDataPoint_AsDouble{AsDouble: m.GetCounter().GetValue()}}
}

func gaugePoint(m *dto.Metric, labels []*common.KeyValue, now uint64) *metrics.NumberDataPoint {
	return &metrics.NumberDataPoint{Attributes: labels, TimeUnixNano: now,
		Value: &metrics.NumberDataPoint_AsDouble{AsDouble: m.GetGauge().GetValue()}}
}

// histogramPoint counts each bucket alone, which Prometheus counts together with those below it.
func histogramPoint(m *dto.Metric, labels []*common.KeyValue, now uint64) *metrics.HistogramDataPoint {
	h := m.GetHistogram()
	sum, below := h.GetSampleSum(), uint64(0)
	p := &metrics.HistogramDataPoint{Attributes: labels,
		StartTimeUnixNano: uint64(h.GetCreatedTimestamp().AsTime().UnixNano()), TimeUnixNano: now,
		Count: h.GetSampleCount(), Sum: &sum}
	for _, b := range h.GetBucket() {
		p.ExplicitBounds = append(p.ExplicitBounds, b.GetUpperBound())
		p.BucketCounts = append(p.BucketCounts, b.GetCumulativeCount()-below)
		below = b.GetCumulativeCount()
	}
	p.BucketCounts = append(p.BucketCounts, p.Count-below)
	return p
}
