// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// poolIn makes this test's process one with a session and waiting sandboxes, whose files are
// in a directory.
const poolIn = "FUMEHOOD_TEST_POOL"

// A starts is a gate.Health that keeps how long sandboxes took to start.
type starts struct{ took, ready []time.Duration }

func (s *starts) Started(took time.Duration, err error) { s.took = append(s.took, took) }
func (s *starts) Ended()                                {}
func (s *starts) Ready(took time.Duration)              { s.ready = append(s.ready, took) }
func (s *starts) CountDecision(time.Duration)           {}
func (s *starts) Log(log journal.Log) journal.Log       { return log }

// pooledGate returns a gate with a pool, which is closed before the gate's directory is checked.
func pooledGate(t testing.TB, o gate.Options) (*gate.Gate, string) {
	if o.Pool == nil {
		o.Pool = gate.NewPool(1)
	}
	g := newGateAlone(t, o)
	t.Cleanup(func() {
		if err := o.Pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, os.TempDir()
}

// waits returns, when a sandbox whose directory is below dir starts, its directory.
func waits(t testing.TB, dir string) string {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if files, _ := filepath.Glob(filepath.Join(dir, "fumehood-*", "upper", ".gvisor.filestore.*")); len(files) > 0 {
			return filepath.Dir(filepath.Dir(files[0]))
		}
	}
	t.Fatal("no sandbox waits")
	return ""
}

// THREATS 70: nothing that a client or a reader of the log sees depends on whether a sandbox
// waited for its session.
func TestPoolSession(t *testing.T) {
	health := &starts{}
	g, dir := pooledGate(t, gate.Options{Health: health})
	if err := g.Prepare(t.Context(), gate.SessionOptions{}); err != nil {
		t.Fatal(err)
	}
	waited := waits(t, dir)
	fresh := newGateAlone(t, gate.Options{})
	var kinds [2][]string
	var outcomes [2][]string
	for i, g := range []*gate.Gate{g, fresh} {
		s := open(t, g, gate.SessionOptions{})
		for _, p := range []proposal.Proposal{run("a", "ls -a; touch new; ls -A /tmp"), run("b", "cat /etc/shadow"), cell("c", "bash", "cat new")} {
			r := do(t, s, p)
			outcomes[i] = append(outcomes[i], outcome(r)+fmt.Sprint(r.Result != nil && r.Result.NewSandbox))
		}
		report, err := s.Close()
		if err != nil {
			t.Fatal(err)
		}
		kinds[i] = entries(t, report.Audit.File)
	}
	if diff := cmp.Diff(outcomes[1], outcomes[0]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(kinds[1], kinds[0]); diff != "" {
		t.Error(diff)
	}
	if exists(waited) {
		t.Error("the waiting sandbox was not used")
	}
	if len(health.took) != 1 || len(health.ready) != 1 {
		t.Errorf("%+v", health)
	}
}

// entries returns the kinds of a log's entries.
func entries(t *testing.T, path string) (kinds []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := audit.Scan(f, audit.Trust{}, func(e audit.Entry) error { kinds = append(kinds, e.Kind); return nil }); err != nil {
		t.Fatal(err)
	}
	return slices.Compact(kinds) // events come in batches
}

// A session with other limits has a sandbox with these, and a closed gate prepares nothing.
func TestPoolOther(t *testing.T) {
	lanetest.SkipShort(t)
	g, dir := pooledGate(t, gate.Options{})
	if err := g.Prepare(t.Context(), gate.SessionOptions{}); err != nil {
		t.Fatal(err)
	}
	waits(t, dir)
	s := open(t, g, gate.SessionOptions{Limits: proposal.Limits{Pids: 33}})
	if r := ran(t, s, run("a", "ulimit -u")); string(r.Stdout.Head) != "33\n" {
		t.Errorf("%s %s", r.Stdout.Head, r.Stderr.Head)
	}
	_ = g.Close()
	if err := g.Prepare(t.Context(), gate.SessionOptions{}); err == nil {
		t.Error("a closed gate prepares sessions")
	}
}

// pooledProcess opens a session while others wait, and waits to be killed.
func pooledProcess(dir string) int {
	ctx, pool := context.Background(), gate.NewPool(2)
	g, err := gate.New(ctx, gate.Options{Workspace: filepath.Join(dir, "ws"), Artifacts: filepath.Join(dir, "out"), Pool: pool})
	if err == nil {
		err = g.Prepare(ctx, gate.SessionOptions{})
	}
	fmt.Println("prepared")
	var s gate.Session
	if err == nil {
		s, err = g.Open(ctx, gate.SessionOptions{})
	}
	if err == nil {
		_, err = s.Do(ctx, run("a", "true"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ran")
	time.Sleep(time.Hour)
	return 0
}

// BenchmarkOpen measures, in turn, what a server's session takes from the client's request to a
// sandbox that answers, with a pool and without one: gate.New, Open and List. The policy is
// compiled before. Budget with a pool: 50 ms, of which 5 ms are the claim.
//
//	go test ./pkg/gate -run '^$' -bench Open -benchtime 50x
func BenchmarkOpen(b *testing.B) {
	pool := gate.NewPool(1)
	g, dir := pooledGate(b, gate.Options{Pool: pool})
	if err := g.Prepare(b.Context(), gate.SessionOptions{}); err != nil {
		b.Fatal(err)
	}
	pools := map[string]*gate.Pool{"pooled": pool, "cold": nil}
	took := map[string][]time.Duration{}
	for b.Loop() {
		for name, pool := range pools {
			waits(b, dir)
			time.Sleep(500 * time.Millisecond)
			took[name] = append(took[name], request(b, pool))
		}
	}
	for name, list := range took {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2].Seconds()*1000, name+"-p50-ms")
		b.ReportMetric(list[len(list)*95/100].Seconds()*1000, name+"-p95-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// request returns how long a client waits for its session.
func request(b *testing.B, pool *gate.Pool) time.Duration {
	b.Helper()
	begin := time.Now()
	g, err := gate.New(b.Context(), gate.Options{Workspace: "testdata/project", Pool: pool})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	s := open(b, g, gate.SessionOptions{})
	if _, err := s.List(b.Context(), "."); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}
