// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	logs "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/evidence/export/exporttest"
	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestSend: a collector receives the run as one tree of spans, and every decision
// in the span that it belongs to.
func TestSend(t *testing.T) {
	f := newFake(t)
	parent := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	story, b := exported(t, exporttest.Run{}, export.Options{TraceParent: parent})
	o := Options{Endpoint: f.URL + "/", TraceParent: parent, Version: "v0.3.0", Headers: []Header{{"Authorization", "SECRET"}}, Getenv: func(string) string { return "Bearer x" }}
	if err := send(t, o, story, b, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if f.headers.Get("Authorization") != "Bearer x" || f.headers.Get("User-Agent") != "fumehood/v0.3.0" {
		t.Errorf("headers %v", f.headers)
	}
	var tree []string
	ids := map[string]string{"b7ad6b7169203331": "outside"}
	for _, s := range f.spans() {
		id, up := hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId)
		if ids[id] != "" || ids[up] == "" || hex.EncodeToString(s.TraceId) != "0af7651916cd43dd8448eb211c80319c" || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("span %s %s below %q of trace %x", s.Name, id, ids[up], s.TraceId)
		}
		ids[id] = ids[up] + "/" + s.Name
		tree = append(tree, ids[id])
	}
	run := "outside/fumehood run"
	want := []string{run, run + "/proposal unit", run + "/proposal unit/decide", run + "/proposal unit/execute",
		run + "/proposal fetch", run + "/proposal fetch/decide", run + "/proposal ask", run + "/proposal ask/decide"}
	if diff := cmp.Diff(want, tree); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	var said []string
	for _, r := range f.records() {
		said = append(said, fmt.Sprintf("%s %s %s in %s", r.SeverityText, r.EventName, r.Body.GetStringValue(), strings.TrimPrefix(ids[hex.EncodeToString(r.SpanId)], run)))
	}
	if diff := cmp.Diff(wantRecords, said); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if got := byKey(f.spans()[0].Attributes)["cicd.pipeline.result"]; got != "failure" {
		t.Errorf("the run's result is %v", got)
	}
}

var wantRecords = []string{
	"WARN fumehood.decision observed proposal go test ./...: slow (team.slow) in /proposal unit/decide",
	"WARN fumehood.decision observed command go go test ./...: slow (team.slow) in /proposal unit/decide",
	"WARN fumehood.decision deny proposal curl https://evil.example: needs the network (net.fetch) in /proposal fetch/decide",
	"WARN fumehood.decision deny command go curl https://evil.example: needs the network (net.fetch) in /proposal fetch/decide",
	"WARN fumehood.decision ask proposal make: no reason given (make.ask) in /proposal ask/decide",
	"WARN fumehood.decision observed exec /usr/bin/curl: starts curl (exec.network-client) in /proposal unit/execute",
	"WARN fumehood.decision deny exec /usr/bin/curl: starts curl (exec.network-client) in /proposal unit/execute",
	"WARN fumehood.decision deny egress lookup evil.example in /proposal unit/execute",
	"INFO fumehood.decision allow egress connect proxy.example:443 in /proposal unit/execute",
	"WARN fumehood.decision deny egress connect 10.0.0.1:22 in /proposal unit/execute",
	"INFO fumehood.decision allow egress request proxy.example:443 in /proposal unit/execute",
	"WARN fumehood.finding note event connect /bin/x: spoke to (event.metadata) in /proposal unit/execute",
}

// TestTable compares the table with what is sent: everything sent is in the table,
// at a place that it lists, and each row is sent at least once.
func TestTable(t *testing.T) {
	f := newFake(t)
	rows := map[string]Attribute{}
	for _, a := range Attributes {
		rows[a.Key] = a
	}
	if len(rows) != len(Attributes) {
		t.Error("a row is there twice")
	}
	for _, s := range everything(t) {
		if err := send(t, Options{Endpoint: f.URL, Version: "v", Source: "artifact"}, s.story, s.batch, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	used := map[string]bool{}
	check := func(on string, list []*common.KeyValue) {
		for _, kv := range list {
			row, known := rows[kv.Key]
			kind := map[string]string{"string": "string", "int64": "int", "bool": "boolean", "[]string": "string[]"}[fmt.Sprintf("%T", byKey([]*common.KeyValue{kv})[kv.Key])]
			if !known || kind != row.Type || !slices.Contains(strings.Split(row.On, ", "), on) {
				t.Errorf("%s is %s on %s, its row says %+v", kv.Key, kind, on, row)
			}
			used[kv.Key] = true
		}
	}
	for _, m := range f.traces {
		check("resource", m.ResourceSpans[0].Resource.Attributes)
	}
	for _, s := range f.spans() {
		on, _, _ := strings.Cut(strings.TrimPrefix(s.Name, "fumehood "), " ")
		check(on, s.Attributes)
	}
	for _, r := range f.records() {
		check("log", r.Attributes)
	}
	for key := range rows {
		if !used[key] {
			t.Errorf("%s is never sent", key)
		}
	}
	golden.Compare(t, "../../../../testdata/schema/fumehood.otlp.v1.md", []byte(AttributeTable()))
}

type sent struct {
	story export.Story
	batch *Batch
}

// everything returns runs that together have every attribute.
func everything(t *testing.T) []sent {
	whole, b := exported(t, exporttest.Run{Text: "x"}, export.Options{All: true})
	b.Dropped = 3
	b.Add(export.TriggerDecision("id", points.Trigger{Command: "run", Actor: points.Actor{Login: "octocat"}}, proposal.Decision{Effect: proposal.Allow}, whole.Run, export.Options{}, exporttest.Start))
	limited := whole
	limited.Steps = slices.Clone(whole.Steps)
	limited.Steps[0].Result = &proposal.Result{Status: proposal.TimedOut, Limit: "wall 2m", Signal: "SIGKILL"}
	limited.Steps[0].Approved = true
	limited.Error = &proposal.Failure{Code: "run.timeout"}
	approved := export.Decision{Path: export.PathProposal, Result: export.Result{Effect: export.Ask, Approved: true}}
	b.Add(approved)
	report := proposal.Report{Run: exporttest.Run{ID: "r", Text: "x"}.Description(), Totals: proposal.Totals{Proposed: 1}}
	estimated, err := export.Report(report, export.Options{}, func(export.Decision) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return []sent{{whole, b}, {limited, &Batch{}}, {estimated, &Batch{}}}
}

// A flood of one kind of decision neither crowds out another nor increases the size
// of what is sent.
func TestFlood(t *testing.T) {
	lanetest.SkipShort(t)
	f := newFake(t)
	const n = 10_000
	story, b := exported(t, exporttest.Run{Extra: exporttest.ManyFlows(n)}, export.Options{})
	begin := time.Now()
	if err := send(t, Options{Endpoint: f.URL}, story, b, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events, %d records sent in %v", n, len(f.records()), time.Since(begin))
	if got := len(f.records()); got > 5*MaxRecords || b.Dropped != n+2-MaxRecords {
		t.Errorf("%d records, %d dropped", got, b.Dropped)
	}
	if got := byKey(f.spans()[0].Attributes)["fumehood.dropped_records"]; got != int64(b.Dropped) {
		t.Errorf("the run's span says that %v were dropped, %d were", got, b.Dropped)
	}
	if !slices.ContainsFunc(b.records, func(r *logs.LogRecord) bool { return strings.Contains(r.Body.GetStringValue(), "last.example") }) {
		t.Error("the refusal after the flood is not told")
	}
	for _, m := range f.logs {
		if size := proto.Size(m); size > 2*requestBytes {
			t.Errorf("one request of %d bytes", size)
		}
	}
}

// Whatever untrusted authors write, what is sent is short, valid UTF-8 and free of control
// characters.
func TestHostileText(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	texts := map[string]string{
		"newline": "a\nb\r\n::error::x", "controls": "\x00\x1b[31m\x07\x7f\u0085", "bidi": "\u202ecod\u202c\u200b", "invalid": "\xff\xfe",
		"long": strings.Repeat("x", 60<<10), "wide": strings.Repeat("😀", 10<<10), "nested": strings.Repeat("\x1b", 60<<10),
	}
	for _, name := range sample.EveryNthKey(t, texts, 1, 3) {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			story, b := exported(t, exporttest.Run{Text: texts[name]}, export.Options{All: true})
			if err := send(t, Options{Endpoint: f.URL}, story, b, 5*time.Second); err != nil {
				t.Fatal(err)
			}
			var all []string
			add := func(list []*common.KeyValue) {
				for _, v := range byKey(list) {
					all = append(all, fmt.Sprint(v))
				}
			}
			add(f.traces[0].ResourceSpans[0].Resource.Attributes)
			for _, s := range f.spans() {
				all = append(all, s.Name, s.Status.GetMessage())
				add(s.Attributes)
			}
			for _, r := range f.records() {
				all = append(all, r.Body.GetStringValue())
				add(r.Attributes)
			}
			for _, got := range all {
				if !utf8.ValidString(got) || strings.ContainsFunc(got, text.IsHidden) || text.CountUnits(got) > 4*maxUnits {
					t.Errorf("%d bytes: %.200q", len(got), got)
				}
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	for _, tt := range []struct {
		url   string
		plain bool
		want  string // in the message; "" if accepted
	}{
		{"https://otlp.example", false, ""},
		{"https://otlp.example:4318/otlp/", false, ""},
		{"http://127.0.0.1:4318", false, ""},
		{"http://[::1]:4318", false, ""},
		{"http://localhost:4318", false, ""},
		{"http://otlp.example", true, ""},
		{"http://otlp.example", false, "plain HTTP"},
		{"http://localhost.evil.example", false, "plain HTTP"},
		{"http://127.0.0.1.evil.example", false, "plain HTTP"},
		{"http://2130706433/", false, "plain HTTP"},
		{"http://0.0.0.0", false, "plain HTTP"},
		{"grpc://otlp.example:4317", false, "scheme"},
		{"otlp.example:4318", false, "not a URL"},
		{"unix:///run/otlp", false, "not a URL"},
		{"", false, "not a URL"},
		{"https://", false, "not a URL"},
		{"https://:4318", false, "not a URL"},
		{"https://u:hunter22@otlp.example", false, "user or a password"},
		{"https://otlp.example/?key=hunter22", false, "query"},
		{"https://otlp.example/#x", false, "fragment"},
		{"https://otlp.example/v1/traces", false, "one signal's path"},
		{"https://otlp.example/\nx", false, "not a URL"},
	} {
		_, err := New(Options{Endpoint: tt.url, Plain: tt.plain})
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%q: %v", tt.url, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || proposal.FailureOf(err).Code != "otlp.endpoint"):
			t.Errorf("%q: error %v, want %q", tt.url, err, tt.want)
		case err != nil && strings.Contains(fmt.Sprint(err, proposal.FailureOf(err).Hint), "hunter22"):
			t.Errorf("%q: the message repeats a secret: %v", tt.url, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	for _, s := range []string{"Authorization", "=X", "A B=X", "Authorization=", "Authorization=Bearer hunter22", "Authorization=1X", "Host=X", "content-type=X", "Transfer-Encoding=X", "A:=X", "A\n=X"} {
		if _, err := ParseHeader(s); err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%q: error %v", s, err)
		}
	}
	h, err := ParseHeader("x-api-key=OTLP_KEY")
	if err != nil || h != (Header{"X-Api-Key", "OTLP_KEY"}) {
		t.Errorf("got %+v, error %v", h, err)
	}
	f := newFake(t)
	story, b := exported(t, exporttest.Run{}, export.Options{})
	for _, value := range []string{"", "hunter22\n", "hunter22\x00", "hünter22"} {
		err := send(t, Options{Endpoint: f.URL, Headers: []Header{h}, Getenv: func(string) string { return value }}, story, b, time.Second)
		if err == nil || strings.Contains(err.Error(), "hunter22") || len(f.paths()) > 0 {
			t.Errorf("value %q: error %v, asked %v", value, err, f.paths())
		}
	}
}
