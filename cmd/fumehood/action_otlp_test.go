// SPDX-License-Identifier: Apache-2.0

//go:build linux

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

// A fork's run has no secret and so does not export, with a warning. The reporting job
// exports the run and says that it ran in another job. No log shows the header's value.
func TestActionTellsCollector(t *testing.T) {
	long(t)
	t.Parallel()
	c := newSink(t)
	inputs := []string{"INPUT_OTLP=" + c.URL, "INPUT_OTLP_HEADERS=Authorization=OTLP_AUTHORIZATION"}
	secret := "OTLP_AUTHORIZATION=Bearer hunter22hunter22"
	w := newWorld(t, true, nil, nil)
	w.permit("contents:read", "pull_requests:read")
	ran := w.act("pull_request", w.event("pull_request.opened.fork", nil), inputs...)
	if ran.outputs["conclusion"] != "failure" || c.text() != "" {
		t.Errorf("outputs %q, the collector got %q", ran.outputs, c.text())
	}
	want(t, "log", ran.log, "otlp.failed", "is empty or not set")
	w.upload(ran, nil)
	w.permit("contents:read", "pull_requests:write", "actions:read")
	told := w.report(nil, append(inputs, secret)...)
	if told.outputs["conclusion"] != "failure" || strings.Contains(told.log, "otlp.failed") {
		t.Errorf("outputs %q\n%s", told.outputs, told.log)
	}
	want(t, "collector", c.text(), `name: "fumehood run"`, `key: "fumehood.source"`, `string_value: "artifact"`, w.head, "fumehood/command", "curl")
	for _, auth := range c.auth {
		if auth != "Bearer hunter22hunter22" {
			t.Errorf("Authorization %q", auth)
		}
	}
	if strings.Contains(strings.ReplaceAll(told.log, "::add-mask::Bearer hunter22hunter22", ""), "hunter22") {
		t.Errorf("the log shows the header's value\n%s", told.log)
	}
}

// The decisions about comments are exported too, including refusals.
func TestActionTellsOfTriggers(t *testing.T) {
	long(t)
	t.Parallel()
	c := newSink(t)
	w := newWorld(t, false, nil, nil)
	w.ask("Codertocat", "/fumehood run cat README.md", "INPUT_OTLP="+c.URL)
	want(t, "collector", c.text(), "allow trigger run by Codertocat", `name: "fumehood run"`, "/comments/")
	w.gh.Permit("hubot", "triage")
	w.ask("hubot", "/fumehood run cat README.md", "INPUT_OTLP="+c.URL)
	want(t, "collector", c.text(), "deny trigger run by hubot")
}
