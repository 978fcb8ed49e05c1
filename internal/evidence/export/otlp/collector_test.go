// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	collectlogs "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	collectmetrics "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	collecttrace "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	logs "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/evidence/export/exporttest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A fake is a collector that decodes requests with the official messages.
type fake struct {
	*httptest.Server
	mu      sync.Mutex
	t       testing.TB
	asked   []string // paths
	traces  []*collecttrace.ExportTraceServiceRequest
	logs    []*collectlogs.ExportLogsServiceRequest
	metrics []*collectmetrics.ExportMetricsServiceRequest
	headers http.Header
	// answer, if set, may respond instead of the collector and reports whether it did.
	answer func(n int, w http.ResponseWriter, r *http.Request) bool
}

func newFake(t testing.TB) *fake {
	f := &fake{t: t}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil {
		return
	}
	f.mu.Lock()
	f.asked, f.headers = append(f.asked, r.URL.Path), r.Header.Clone()
	n, answer := len(f.asked), f.answer
	f.mu.Unlock()
	if answer != nil && answer(n, w, r) {
		return
	}
	w.Header().Set("Content-Type", protobuf)
	_, _ = w.Write(f.take(r, body))
}

func (f *fake) take(r *http.Request, body []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != protobuf {
		f.t.Errorf("%s with %q", r.Method, r.Header.Get("Content-Type"))
	}
	var answer []byte
	var err error
	switch r.URL.Path {
	case "/v1/traces":
		var m collecttrace.ExportTraceServiceRequest
		if err = proto.Unmarshal(body, &m); err == nil {
			f.traces = append(f.traces, &m)
			answer, err = proto.Marshal(&collecttrace.ExportTraceServiceResponse{})
		}
	case "/v1/logs":
		var m collectlogs.ExportLogsServiceRequest
		if err = proto.Unmarshal(body, &m); err == nil {
			f.logs = append(f.logs, &m)
			answer, err = proto.Marshal(&collectlogs.ExportLogsServiceResponse{PartialSuccess: &collectlogs.ExportLogsPartialSuccess{}})
		}
	case "/v1/metrics":
		var m collectmetrics.ExportMetricsServiceRequest
		if err = proto.Unmarshal(body, &m); err == nil {
			f.metrics = append(f.metrics, &m)
			answer, err = proto.Marshal(&collectmetrics.ExportMetricsServiceResponse{})
		}
	default:
		f.t.Errorf("asked for %s", r.URL.Path)
	}
	if err != nil {
		f.t.Errorf("%s: %v", r.URL.Path, err)
	}
	return answer
}

func (f *fake) paths() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.asked...)
}

func (f *fake) spans() (list []*trace.Span) {
	for _, m := range f.traces {
		for _, r := range m.ResourceSpans {
			for _, s := range r.ScopeSpans {
				list = append(list, s.Spans...)
			}
		}
	}
	return list
}

func (f *fake) records() (list []*logs.LogRecord) {
	for _, m := range f.logs {
		for _, r := range m.ResourceLogs {
			for _, s := range r.ScopeLogs {
				list = append(list, s.LogRecords...)
			}
		}
	}
	return list
}

// exported exports a run from a log written by exporttest.
func exported(t testing.TB, r exporttest.Run, o export.Options) (export.Story, *Batch) {
	t.Helper()
	data, a := exporttest.WriteLog(t, r)
	var b Batch
	story, _, err := export.Log(bytes.NewReader(data), audit.Trust{Key: a.Key, Checkpoint: a.Checkpoint}, o, func(d export.Decision) error { b.Add(d); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return story, &b
}

// send sends to f within patience.
func send(t testing.TB, o Options, story export.Story, b *Batch, patience time.Duration) error {
	t.Helper()
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begin := time.Now()
	err = x.Send(ctx, story, b)
	if took := time.Since(begin); took > patience+time.Second {
		t.Errorf("it took %v, longer than %v", took, patience)
	}
	if err != nil && proposal.FailureOf(err).Code != Failed {
		t.Errorf("error %v has not the code %s", err, Failed)
	}
	return err
}

// byKey returns a list of attributes as a map.
func byKey(list []*common.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[kv.Key] = v.IntValue
		case *common.AnyValue_BoolValue:
			out[kv.Key] = v.BoolValue
		case *common.AnyValue_ArrayValue:
			var items []string
			for _, item := range v.ArrayValue.Values {
				items = append(items, item.GetStringValue())
			}
			out[kv.Key] = items
		}
	}
	return out
}
