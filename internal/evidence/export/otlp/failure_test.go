// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	collectlogs "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	collecttrace "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/evidence/export/exporttest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// write responds with a protobuf message.
func write(t *testing.T, w http.ResponseWriter, m proto.Message) {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Error(err)
	}
	w.Header().Set("Content-Type", protobuf)
	_, _ = w.Write(data)
}

// status responds once with each status, then as a collector.
func status(codes ...int) func(int, http.ResponseWriter, *http.Request) bool {
	return func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n > len(codes) {
			return false
		}
		w.WriteHeader(codes[n-1])
		return true
	}
}

// TestAnswers: whatever a collector responds, sending ends soon and returns the cause.
func TestAnswers(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(int, http.ResponseWriter, *http.Request) bool
		want   string // in the error; "" for none
		asked  string // number of requests, "" for any
	}{
		{"well", nil, "", "2"},
		{"busy, then well", status(503, 429), "", "4"},
		{"always busy", func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "0") // so that the number of tries ends it, and not a clock
			w.WriteHeader(503)
			return true
		}, "503", ""},
		{"come back later than there is time", func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(429)
			return true
		}, "429", "2"},
		{"come back soon", func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n > 1 {
				return false
			}
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(503)
			return true
		}, "", "3"},
		{"wrong", status(400, 400), "400 Bad Request to v1/traces", "2"},
		{"no traces", status(404), "check that it accepts this signal", "2"},
		{"no key", status(401, 403), "check the header", "2"},
		{"moved", func(_ int, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			return true
		}, "redirects are not followed", "2"},
		{"created", status(201, 202), "201", "2"},
		{"nothing", func(_ int, w http.ResponseWriter, _ *http.Request) bool { return true }, "", "2"},
		{"a web page", func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<h1>\x1b[31mwelcome</h1>"))
			return true
		}, "check that it is a collector", "2"},
		{"garbage", func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", protobuf)
			_, _ = w.Write([]byte{0xff, 0xff, 0xff})
			return true
		}, "check that it is a collector", "2"},
		{"without end", func(_ int, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", protobuf)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					break
				}
			}
			return true
		}, "has more than 65536 bytes", "2"},
		{"headers without end", func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			for i := range 5000 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", 100))
			}
			return true
		}, "cannot be reached", ""},
		{"early end", func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(200)
			panic(http.ErrAbortHandler)
		}, "", ""},
		{"hang up", func(int, http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, "cannot be reached", ""},
		{"some rejected", func(n int, w http.ResponseWriter, r *http.Request) bool {
			if n > 1 {
				write(t, w, &collectlogs.ExportLogsServiceResponse{PartialSuccess: &collectlogs.ExportLogsPartialSuccess{RejectedLogRecords: 4, ErrorMessage: "too old\x1b[31m\n::error::"}})
			} else {
				write(t, w, &collecttrace.ExportTraceServiceResponse{PartialSuccess: &collecttrace.ExportTracePartialSuccess{RejectedSpans: 2}})
			}
			return true
		}, "it rejected 2 of 8 spans; it rejected 4 of 12 log records: too old⟨ESC⟩[31m↵::error::", "2"},
		{"a warning, nothing rejected", func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			write(t, w, &collectlogs.ExportLogsServiceResponse{PartialSuccess: &collectlogs.ExportLogsPartialSuccess{ErrorMessage: "old"}})
			return true
		}, "", "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.Config.ErrorLog, f.answer = nil, tt.answer
			story, b := exported(t, exporttest.Run{}, export.Options{})
			err := send(t, Options{Endpoint: f.URL}, story, b, time.Minute)
			switch {
			case tt.name == "early end":
				if err == nil {
					t.Error("no error")
				}
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if got := strconv.Itoa(len(f.paths())); tt.asked != "" && got != tt.asked {
				t.Errorf("asked %s times, want %s: %v", got, tt.asked, f.paths())
			}
		})
	}
}

// A response that quotes the secret header, even where it would be truncated, does
// not reveal it.
func TestAnswerQuotesHeader(t *testing.T) {
	h := http.Header{"Authorization": {"Bearer hunter2-token"}, "X-Key": {"k"}}
	for said, want := range map[string]string{
		"no such token: Bearer hunter2-token":      "no such token: …",
		"hunter2-token is not known, key k is":     "… is not known, key k is",
		strings.Repeat("x", 190) + "hunter2-token": strings.Repeat("x", 190) + "…",
	} {
		if got := redactHeaders(h, said); got != want {
			t.Errorf("%q became %q", said, got)
		}
	}
	f := newFake(t)
	f.answer = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		why := r.Header.Get("Authorization")
		if r.URL.Path == "/v1/traces" {
			write(t, w, &collecttrace.ExportTraceServiceResponse{PartialSuccess: &collecttrace.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: why}})
		} else {
			write(t, w, &collectlogs.ExportLogsServiceResponse{PartialSuccess: &collectlogs.ExportLogsPartialSuccess{RejectedLogRecords: 4, ErrorMessage: why}})
		}
		return true
	}
	story, b := exported(t, exporttest.Run{}, export.Options{})
	o := Options{Endpoint: f.URL, Headers: []Header{{Name: "Authorization", Variable: "TOKEN"}}, Getenv: func(string) string { return "Bearer hunter2-token" }}
	if err := send(t, o, story, b, 4*time.Second); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "rejected 4") {
		t.Errorf("got %v", err)
	}
}

// A collector that accepts the connection but never responds costs at most the
// given time.
func TestHang(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	story, b := exported(t, exporttest.Run{}, export.Options{})
	begin := time.Now()
	if err := send(t, Options{Endpoint: "http://" + l.Addr().String()}, story, b, 500*time.Millisecond); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(begin); took > Patience {
		t.Errorf("it took %v", took)
	}
}

// An unreachable collector is detected soon, without waiting.
func TestNobody(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	story, b := exported(t, exporttest.Run{}, export.Options{})
	begin := time.Now()
	if err := send(t, Options{Endpoint: "http://" + l.Addr().String()}, story, b, Patience); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(begin); took > Patience {
		t.Errorf("it took %v", took)
	}
}

// A server with an untrusted certificate receives nothing, not even the headers.
func TestCertificate(t *testing.T) {
	lanetest.SkipShort(t)
	asked := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	server.StartTLS()
	defer server.Close()
	story, b := exported(t, exporttest.Run{}, export.Options{})
	if err := send(t, Options{Endpoint: server.URL}, story, b, 5*time.Second); err == nil || asked > 0 {
		t.Errorf("error %v, asked %d times", err, asked)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	if err := send(t, Options{Endpoint: server.URL, TLS: &tls.Config{RootCAs: roots}}, story, b, 5*time.Second); err != nil || asked != 2 {
		t.Errorf("with its root: error %v, asked %d times", err, asked)
	}
}

// Sending ends when its context ends.
func TestCancel(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.answer = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	story, b := exported(t, exporttest.Run{}, export.Options{})
	x, err := New(Options{Endpoint: f.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Send(ctx, story, b); err == nil || ctx.Err() == nil {
		t.Errorf("error %v, of the context %v", err, ctx.Err())
	}
}
