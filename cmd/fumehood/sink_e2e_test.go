// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collectlogs "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	collectmetrics "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	collecttrace "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// A sink is a collector that keeps what it received, as text.
type sink struct {
	*httptest.Server
	mu   sync.Mutex
	got  strings.Builder
	auth []string
}

func newSink(t *testing.T) *sink {
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var m proto.Message = &collecttrace.ExportTraceServiceRequest{}
		switch r.URL.Path {
		case "/v1/logs":
			m = &collectlogs.ExportLogsServiceRequest{}
		case "/v1/metrics":
			m = &collectmetrics.ExportMetricsServiceRequest{}
		}
		if err != nil || proto.Unmarshal(body, m) != nil {
			t.Errorf("%s: no OTLP, %v", r.URL.Path, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		// The number of spaces after a colon depends on the build of the library.
		s.got.WriteString(strings.ReplaceAll(prototext.Format(m), ":  ", ": "))
		s.auth = append(s.auth, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}
