// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/evidence/export/exporttest"
	"github.com/fumehood/fumehood/internal/evidence/export/otlp"
)

// build builds a program from a separate module below testdata, which pins its
// dependencies.
func build(name string) (string, error) {
	path := filepath.Join(shared, name)
	cmd := exec.Command("go", "build", "-mod=readonly", "-o", path, ".")
	cmd.Dir = filepath.Join("testdata", name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

var buildCollector = sync.OnceValues(func() (string, error) { return build("collector") })

// aLog returns the log of a run with one of everything.
func aLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if _, err := exporttest.Write(path, exporttest.Run{ID: "20261121-040506-7f3a"}); err != nil {
		t.Fatal(err)
	}
	return path
}

func exported(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := runCommandLine(t.Context(), append([]string{"export"}, args...), nil, &stdout, &stderr); code != exitOK {
		t.Fatalf("export %v: exit %d\n%s", args, code, &stderr)
	}
	return stdout.String()
}

// Every line decodes to OPA's own type for decision log events, without unknown
// fields, and is equal after OPA has encoded it again.
func TestE2EDecisionsAreOPAs(t *testing.T) {
	t.Parallel()
	ours := exported(t, aLog(t), "--all")
	program, err := build("opaevent")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stdin = strings.NewReader(ours)
	theirs, err := cmd.Output()
	if err != nil {
		t.Fatalf("OPA does not take it: %v\n%s", err, err.(*exec.ExitError).Stderr)
	}
	if diff := cmp.Diff(documents(t, ours), documents(t, string(theirs))); diff != "" || len(documents(t, ours)) < 10 {
		t.Errorf("(-ours +OPA's):\n%s", diff)
	}
	wrong := exec.CommandContext(t.Context(), cmd.Path)
	wrong.Stdin = strings.NewReader(`{"decision_id":"x","rules":[]}`)
	if wrong.Run() == nil {
		t.Error("a field that OPA does not know was taken")
	}
}

func documents(t *testing.T, lines string) (list []any) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

// await waits until the text appears.
func (l *lockedBuffer) await(t *testing.T, text string) {
	t.Helper()
	jobtest.WaitUntil(t, text, func() bool { return strings.Contains(l.String(), text) })
}

// collecting starts a real collector and returns its address and its log of
// received data.
func collecting(t *testing.T) (string, *lockedBuffer) {
	t.Helper()
	program, err := buildCollector()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
    logs: {receivers: [otlp], exporters: [debug]}
    metrics: {receivers: [otlp], exporters: [debug]}
`, address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	cmd := exec.CommandContext(t.Context(), program, "--config", config)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	out.await(t, "Everything is ready")
	return "http://" + address, &out
}

// TestE2ECollector: a real collector receives a real run, in the job's trace.
func TestE2ECollector(t *testing.T) {
	t.Parallel()
	address, got := collecting(t)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("plan.yaml", "schema: fumehood.plan/v1\nproposer: tester\nproposals:\n  - {id: read, run: cat a.txt}\n  - {id: fetch, run: curl https://evil.example}\n")
	if err := os.Mkdir(filepath.Join(dir, "w"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("w/a.txt", "hello\n")
	cmd := exec.CommandContext(t.Context(), jobtest.FindProgram(t), "run", "--setup", "none", "--plan", filepath.Join(dir, "plan.yaml"), "--workspace", filepath.Join(dir, "w"),
		"--artifacts", filepath.Join(dir, "a"), "--otlp", address)
	cmd.Env = append(os.Environ(), "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	out, err := cmd.CombinedOutput()
	if code := exitCode(t, err); code != exitRefused || bytes.Contains(out, []byte("otlp")) {
		t.Fatalf("exit %d\n%s", code, out)
	}
	got.await(t, `"log records": 3`)
	for _, want := range []string{
		`"spans": 6`, "Trace ID       : 0af7651916cd43dd8448eb211c80319c", "Parent ID      : b7ad6b7169203331", "Name           : fumehood run",
		"Name           : proposal fetch", "Name           : execute", "cicd.pipeline.result: Str(failure)", "process.exit.code: Int(0)",
		"Body: Str(deny command curl https://evil.example: ", "SeverityText: WARN", `fumehood.decision.rules: Slice(["network.client"])`,
		"Resource SchemaURL: " + otlp.SchemaURL, "service.name: Str(fumehood)",
	} {
		got.await(t, want)
	}

	// Again, from the log, with all events.
	exported(t, filepath.Join(dir, "a/audit.jsonl"), "--to", "otlp", "--endpoint", address)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if _, err := exporttest.Write(path, exporttest.Run{ID: "flood", Text: "\x1b[31m\n\xff", Extra: exporttest.ManyFlows(10_000)}); err != nil {
		t.Fatal(err)
	}
	exported(t, path, "--to", "otlp", "--endpoint", address)
	got.await(t, "fumehood.dropped_records: Int(8002)")
	got.await(t, "last.example")
}

// TestE2ECollectorMetrics: a real collector receives the metrics of a server that ends.
func TestE2ECollectorMetrics(t *testing.T) {
	t.Parallel()
	address, got := collecting(t)
	s := newHTTPServer(t, "--otlp", address)
	mcpCall(t, s.dial(t), "run", map[string]any{"command": "true"})
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	s.end(t)
	for _, want := range []string{"-> Name: fumehood_sandbox_start_seconds", "-> Unit: s", "-> DataType: Histogram", "-> DataType: Sum", "-> IsMonotonic: true",
		"-> AggregationTemporality: Cumulative", "-> outcome: Str(succeeded)", "-> Name: fumehood_sandboxes", "-> DataType: Gauge"} {
		got.await(t, want)
	}
	if strings.Contains(s.log.String(), "otlp.failed") {
		t.Errorf("it prints\n%s", s.log)
	}
}

// TestE2ESemanticConventions: every name, except for fumehood's own, is one of the
// conventions that fumehood claims to follow.
func TestE2ESemanticConventions(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "go.opentelemetry.io/otel@v1.47.0").Output()
	if err != nil {
		t.Fatal(err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	version := "v" + strings.TrimPrefix(otlp.SchemaURL, "https://opentelemetry.io/schemas/")
	source, err := os.ReadFile(filepath.Join(module.Dir, "semconv", version, "attribute_group.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range otlp.Attributes {
		known := regexp.MustCompile(`attribute\.Key\("` + regexp.QuoteMeta(a.Key) + `"\)`).Match(source)
		if known == strings.HasPrefix(a.Key, "fumehood.") {
			t.Errorf("%s: known to the conventions: %v", a.Key, known)
		}
	}
}
