// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	metrics "go.opentelemetry.io/proto/slim/otlp/metrics/v1"

	"github.com/fumehood/fumehood/internal/agents/health"
)

func exporterOf(t *testing.T, f *fake) *Exporter {
	t.Helper()
	x, err := New(Options{Endpoint: f.URL, Version: "1.2.3", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The collector gets the same numbers as Prometheus.
func TestSendMetrics(t *testing.T) {
	f := newFake(t)
	begin := uint64(time.Now().UnixNano())
	m := health.New("v0")
	for _, took := range []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond, time.Hour} {
		m.Started(took, nil)
	}
	m.Ended()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := exporterOf(t, f).SendMetrics(t.Context(), "instance", families, now); err != nil {
		t.Fatal(err)
	}
	r := f.metrics[0].ResourceMetrics[0]
	if got := r.Resource.String(); !strings.Contains(got, `"instance"`) || !strings.Contains(got, "1.2.3") {
		t.Errorf("the resource is %s", got)
	}
	found := map[string]*metrics.Metric{}
	for _, x := range r.ScopeMetrics[0].Metrics {
		found[x.Name] = x
		if x.Data == nil || x.Description == "" || (x.Unit == "s") != strings.HasSuffix(x.Name, "_seconds") {
			t.Errorf("metric %v", x)
		}
	}
	if len(found) != len(families) {
		t.Errorf("%d metrics, want %d", len(found), len(families))
	}
	if p := found["fumehood_sandboxes"].GetGauge().DataPoints; len(p) != 1 || p[0].GetAsDouble() != 3 {
		t.Errorf("gauge %v", p)
	}
	starts := found["fumehood_sandbox_starts_total"].GetSum()
	if !starts.IsMonotonic || starts.AggregationTemporality != cumulative || len(starts.DataPoints) != 3 {
		t.Errorf("counter %v", starts)
	}
	for _, p := range starts.DataPoints {
		result := p.Attributes[0].Value.GetStringValue()
		if want := map[string]float64{"started": 4}[result]; p.Attributes[0].Key != "result" || p.GetAsDouble() != want ||
			p.StartTimeUnixNano < begin || p.StartTimeUnixNano > p.TimeUnixNano || p.TimeUnixNano != uint64(now.UnixNano()) {
			t.Errorf("point %v", p)
		}
	}
	h := found["fumehood_sandbox_start_seconds"].GetHistogram().DataPoints[0]
	if !slices.Equal(h.BucketCounts, []uint64{1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1}) || len(h.ExplicitBounds) != len(h.BucketCounts)-1 || h.Count != 4 || h.GetSum() < 3600 || h.StartTimeUnixNano < begin {
		t.Errorf("histogram %v", h)
	}
}

// Metrics are sent a last time when the server ends, and a collector that fails is reported
// once.
func TestPush(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var warnings []error
	warn := func(err error) { warnings = append(warnings, err) }
	x := exporterOf(t, f)
	x.PushMetrics(ctx, "i", health.New("v0").Gather, warn)
	if len(f.metrics) != 1 || len(warnings) != 0 {
		t.Errorf("%d requests, warnings %v", len(f.metrics), warnings)
	}
	f.answer = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	x.PushMetrics(ctx, "i", health.New("v0").Gather, warn)
	x.PushMetrics(ctx, "i", func() ([]*dto.MetricFamily, error) { return nil, errors.New("broken") }, warn)
	if len(warnings) != 2 || !strings.Contains(warnings[0].Error(), "404 Not Found to v1/metrics: check that it accepts this signal") || !strings.Contains(warnings[1].Error(), "broken") {
		t.Errorf("warnings %v", warnings)
	}
}
