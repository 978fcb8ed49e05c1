// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	collectlogs "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	collecttrace "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	logs "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Failed is the error code for a failure to send.
const Failed = "otlp.failed"

// Patience is the recommended time limit for sending.
const Patience = 10 * time.Second

// interruptedPatience bounds sending once the process is asked to end.
const interruptedPatience = 2 * time.Second

// NewSendContext returns the context to send with: what became of an interrupted run is worth
// knowing, so it goes on when ctx is done, but then briefly. cancel must be called.
func NewSendContext(ctx context.Context) (bounded context.Context, cancel context.CancelFunc) {
	patience := Patience
	if ctx.Err() != nil {
		patience = interruptedPatience
	}
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// Options say where to send, and as whom. Endpoint and Headers come from the user who starts
// fumehood, never from a plan or a pull request.
type Options struct {
	Endpoint    string // base URL of OTLP over HTTP
	Headers     []Header
	Getenv      func(string) string // returns the values of the headers
	Plain       bool                // allow plain HTTP to any machine
	TraceParent string
	Version     string // of fumehood
	Source      string // the attribute fumehood.source
	// TLS is for tests; nil means the system's trust store.
	TLS *tls.Config
}

// An Exporter sends to one collector.
type Exporter struct {
	o      Options
	base   *url.URL
	client *http.Client
}

// New checks everything that can be checked without sending. Errors have the code
// otlp.endpoint.
func New(o Options) (*Exporter, error) {
	base, err := parseEndpoint(o.Endpoint, o.Plain)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		Proxy: proxyFromEnvironment, TLSClientConfig: o.TLS, ForceAttemptHTTP2: true, TLSHandshakeTimeout: Patience,
		MaxResponseHeaderBytes: 64 << 10, DisableCompression: true, MaxConnsPerHost: 1, IdleConnTimeout: Patience,
	}
	return &Exporter{o: o, base: base, client: &http.Client{Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

var errProxy = errors.New("a proxy variable is not a URL")

// proxyFromEnvironment returns the proxy set in the environment. It hides the original error,
// which quotes the variable, including any password.
func proxyFromEnvironment(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, errProxy
	}
	return u, nil
}

// Send sends a run and its decisions. It returns when ctx ends at the latest;
// callers should give ctx a timeout of Patience. Any error is a *proposal.StopError
// with the code otlp.failed; it should not stop the run.
func (x *Exporter) Send(ctx context.Context, story export.Story, b *Batch) error {
	return x.sendRun(ctx, story.Run, buildSpans(story, x.o.TraceParent, b.Dropped), b.records)
}

// SendLog sends the run of the log at path. How long that takes is Bounded.
func (x *Exporter) SendLog(ctx context.Context, path string, trust audit.Trust, o export.Options) error {
	var b Batch
	story, err := export.LogFile(path, trust, o, b.Take)
	if err != nil {
		return err
	}
	ctx, cancel := NewSendContext(ctx)
	defer cancel()
	return x.Send(ctx, story, &b)
}

// SendDecisions sends decisions that are not part of a run.
func (x *Exporter) SendDecisions(ctx context.Context, about proposal.Run, b *Batch) error {
	return x.sendRun(ctx, about, nil, b.records)
}

func (x *Exporter) sendRun(
	ctx context.Context, run proposal.Run, spans []*trace.Span, records []*logs.LogRecord,
) error {
	defer x.client.CloseIdleConnections()
	run.Version = x.o.Version
	headers, err := readHeaders(x.o.Headers, x.o.Getenv)
	if err != nil {
		return err
	}
	from := resourceOf(run, x.o.Source)
	traceErr := x.sendSpans(ctx, headers, from, run, spans)
	var lost *lostError
	if errors.As(traceErr, &lost) && !lost.answered {
		return sendError(traceErr) // the collector is unreachable: do not try again
	}
	return sendError(errors.Join(traceErr, x.sendRecords(ctx, headers, from, run, records)))
}

func (x *Exporter) sendSpans(
	ctx context.Context, h http.Header, from *resource.Resource, run proposal.Run, spans []*trace.Span,
) error {
	for _, part := range splitRequests(spans) {
		m := &collecttrace.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{Resource: from,
			SchemaUrl:  SchemaURL,
			ScopeSpans: []*trace.ScopeSpans{{Scope: newScope(run), SchemaUrl: SchemaURL, Spans: part}}}}}
		var answer collecttrace.ExportTraceServiceResponse
		if err := x.postMessage(ctx, h, "v1/traces", m, &answer); err != nil {
			return err
		}
		if p := answer.PartialSuccess; p != nil && p.RejectedSpans != 0 {
			return rejectedError(p.RejectedSpans, len(part), "spans", redactHeaders(h, p.ErrorMessage))
		}
	}
	return nil
}

func (x *Exporter) sendRecords(
	ctx context.Context, h http.Header, from *resource.Resource, run proposal.Run, records []*logs.LogRecord,
) error {
	var errs error
	for _, part := range splitRequests(records) {
		m := &collectlogs.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{Resource: from,
			SchemaUrl: SchemaURL,
			ScopeLogs: []*logs.ScopeLogs{{Scope: newScope(run), SchemaUrl: SchemaURL, LogRecords: part}}}}}
		var answer collectlogs.ExportLogsServiceResponse
		if err := x.postMessage(ctx, h, "v1/logs", m, &answer); err != nil {
			return errors.Join(errs, err)
		}
		if p := answer.PartialSuccess; p != nil && p.RejectedLogRecords != 0 && errs == nil {
			errs = rejectedError(p.RejectedLogRecords, len(part), "log records", redactHeaders(h, p.ErrorMessage))
		}
	}
	return errs
}

func sendError(err error) error {
	if err == nil {
		return nil
	}
	return &proposal.StopError{Code: Failed,
		Message: "cannot send everything to the collector: " + strings.ReplaceAll(err.Error(), "\n", "; "),
		Hint:    "send it again from the audit log: fumehood export LOG --to otlp --endpoint URL"}
}
