// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/roottest"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestMain removes everything that the runs of the examples leave, and makes every
// workspace an image if FUMEHOOD_TEST_IMAGES is set.
func TestMain(m *testing.M) {
	if code, is := gate.Helper(); is {
		os.Exit(code)
	}
	if dir := os.Getenv(sessionIn); dir != "" {
		os.Exit(killedSession(dir))
	}
	if dir := os.Getenv(poolIn); dir != "" {
		os.Exit(pooledProcess(dir))
	}
	if os.Getenv("FUMEHOOD_TEST_IMAGES") != "" {
		sandbox.DefaultImageFrom = 1
	}
	roottest.Check()
	state, err := os.MkdirTemp("", "fumehood-test-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_STATE_HOME", state)
	code := m.Run()
	os.RemoveAll(state)
	os.Exit(code)
}

// inShort is the test that starts a sandbox with -short.
const inShort = "TestClosed"

// needSandbox finds or builds fumehood-runsc. With -short it skips the tests that are not in inShort.
func needSandbox(t testing.TB) {
	t.Helper()
	if t.Name() != inShort {
		lanetest.SkipShort(t)
	}
	installtest.Runsc(t)
}

func decode(t testing.TB, document string) proposal.Plan {
	t.Helper()
	p, problems := plan.Decode([]byte(document), "plan.yaml")
	if len(problems) > 0 {
		t.Fatal(plan.Describe("plan.yaml", problems[0]))
	}
	return p
}

// closed is what TestClosed runs in addition to the example's document: the caller's
// variables, a way out, git's configuration, and a file of the host.
const closed = document + `
  - {id: environment, run: ./task stolen}
  - {id: network, run: cat /proc/net/route}
  - {id: hooks, run: git config --get core.hooksPath}
  - {id: host, run: cat /etc/shadow}
  - {id: own-hooks, run: ./task hooks}
  - {id: bytes, run: ./task bytes; wc -c *.bytes | cut -c1; timeout 9 wc -c *.bytes}
  - {id: local, run: getent ahosts api.localhost | grep -cw 127.0.0.1}
`

// Every default is closed, as the package comment promises for the zero Options, in a plan's run
// and in a session.
func TestClosed(t *testing.T) {
	needSandbox(t)
	t.Setenv("CANARY", "canary-0b5e77aa")
	g, err := gate.New(t.Context(), gate.Options{Workspace: "testdata/project"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	report, err := g.Run(t.Context(), decode(t, closed))
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]proposal.Record{}
	for _, r := range report.Records {
		records[r.Proposal.ID] = r
	}
	for _, id := range []string{"hidden", "native", "host"} {
		if r := records[id]; r.Decision.Effect == proposal.Allow || r.Result != nil {
			t.Errorf("%s: %s, result %+v", id, r.Decision.Effect, r.Result)
		}
	}
	checkFetch(t, records["fetch"].Result)
	checkLeak(t, report, records["leak"].Result)
	for id, want := range map[string]string{"environment": "0\n", "hooks": "/dev/null\n", "local": "3\n", "bytes": "2\n", "own-hooks": "hook in /tmp\n"} {
		if r := records[id].Result; r == nil || string(r.Stdout.Head) != want {
			t.Errorf("%s: %+v, want %q", id, r, want)
		}
	}
	if r := records["network"].Result; r != nil && strings.Count(string(r.Stdout.Head), "\n") > 1 {
		t.Errorf("the sandbox has routes: %s", r.Stdout.Head)
	}
	if run := report.Run; len(run.Unenforced) > 0 || run.Mode != "enforce" || len(run.Policies) != 1 || run.Policies[0].Kind != "shipped" || !strings.HasPrefix(run.Rootfs, "host@") {
		t.Errorf("%+v", run)
	}
	checkAudit(t, g, report)
	t.Run("session", func(t *testing.T) { checkSessionIsRun(t, g, report) })
}

// checkSessionIsRun checks that a session has the same decisions, refusals and redactions as the
// run of a plan with the same proposals.
func checkSessionIsRun(t *testing.T, g *gate.Gate, report proposal.Report) {
	t.Helper()
	var want, got []string
	s := open(t, g, gate.SessionOptions{})
	for _, r := range report.Records {
		want = append(want, outcome(r))
	}
	for _, p := range decode(t, closed).Proposals {
		got = append(got, outcome(do(t, s, p)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-plan +session:\n%s", diff)
	}
	sealed, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, sealed, true)
	if len(sealed.Records[3].Result.Stdout.Head) > 0 {
		t.Error("a session's report has output in it")
	}
}

// checkFetch checks that the programs of a command are recorded, and that the one
// without a rule in policy was refused.
func checkFetch(t *testing.T, r *proposal.Result) {
	t.Helper()
	if r == nil || r.Succeeded() || r.Observations == nil || !r.Observations.Complete {
		t.Fatalf("fetch: %+v", r)
	}
	started := func(kind, name string) bool {
		return slices.ContainsFunc(r.Observations.Execs, func(e proposal.Event) bool {
			return e.Kind == kind && e.Exec != nil && filepath.Base(e.Exec.Path) == name
		})
	}
	if !started(proposal.EventExec, "bash") || !started(proposal.EventRefused, "git-remote-http") {
		for _, e := range r.Observations.Execs {
			t.Errorf("recorded: %s %s %v", e.Kind, e.Path, e.Exec.Argv)
		}
	}
}

// checkLeak checks that the key is in nothing that the run left.
func checkLeak(t *testing.T, report proposal.Report, r *proposal.Result) {
	t.Helper()
	if r == nil || string(r.Stdout.Head) != "[redacted github-pat]\n" || len(r.Stdout.Redacted) != 1 {
		t.Fatalf("leak: %+v", r)
	}
	err := filepath.WalkDir(filepath.Dir(report.Audit.File), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "16C7e42F292c") {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// checkAudit checks that the log is sealed, and verifies with the data in the report.
func checkAudit(t *testing.T, g *gate.Gate, report proposal.Report) {
	t.Helper()
	f, err := os.Open(report.Audit.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := audit.Verify(f, audit.Trust{Key: report.Audit.Key, Checkpoint: report.Audit.Checkpoint})
	if err != nil || s.State != audit.Sealed {
		t.Errorf("%v, %v", s, err)
	}
	if files := g.Files(); !slices.Contains(files, report.Audit.File) || len(g.Warnings()) > 0 {
		t.Errorf("files %q, warnings %q", files, g.Warnings())
	}
}

// Weakened protection is in the report.
func TestUnsafeIsReported(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	trial, err := gate.ReadPolicy(t.Context(), "testdata/policy", gate.PolicyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := gate.Options{Workspace: "testdata/project", ObserveUnsafe: true, Policies: []gate.Policy{trial}, MountsUnsafe: []gate.Mount{{Source: "testdata/policy", Target: "/seen"}}}
	g, err := gate.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	p := decode(t, "schema: fumehood.plan/v1\nproposals:\n  - {id: a, run: curl https://example.com}\n")
	first, err := g.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	report, err := g.Run(t.Context(), p) // a gate runs one plan at a time, each with its own log
	if err != nil || report.Run.ID == first.Run.ID || report.Audit.File == first.Audit.File || len(report.Run.Unenforced) != 2 || report.Run.Mode != "observe" || report.Records[0].Decision.Effect == proposal.Allow {
		t.Errorf("%v: %+v", err, report)
	}
}

// Contradictory and senseless options are refused with a code, before anything begins.
func TestRefused(t *testing.T) {
	t.Parallel()
	granting := gate.Policy{Name: "x", Role: "grants"}
	for name, test := range map[string]struct {
		o    gate.Options
		code string
	}{
		"decide only and a log":       {gate.Options{DecideOnly: true, AuditFile: "x"}, "gate.options"},
		"decide only and a mount":     {gate.Options{DecideOnly: true, MountsUnsafe: []gate.Mount{{}}}, "gate.options"},
		"two replace the shipped":     {gate.Options{Policies: []gate.Policy{granting, granting}}, "gate.options"},
		"origin of another role":      {gate.Options{Policies: []gate.Policy{{Origin: proposal.PolicyOrigin{Role: "grants"}}}}, "gate.options"},
		"unknown role":                {gate.Options{Policies: []gate.Policy{{Role: "owns"}}}, "gate.options"},
		"policy without a rule":       {gate.Options{Policies: []gate.Policy{{Name: "none"}}}, "policy.missing"},
		"results of another mode":     {gate.Options{Results: gate.Store{Mode: "perhaps"}}, "gate.options"},
		"layers of another mode":      {gate.Options{Layers: gate.Store{Mode: "Read"}}, "gate.options"},
		"resolver without port":       {gate.Options{Resolvers: []netip.AddrPort{{}}}, "gate.options"},
		"credential for all hosts":    {gate.Options{Credentials: []gate.Credential{{Name: "T", Host: "*", Value: "secret-value"}}}, "network.credential"},
		"credential without value":    {gate.Options{Credentials: []gate.Credential{{Name: "T", Host: "a.example"}}}, "network.credential"},
		"credential of two lines":     {gate.Options{Credentials: []gate.Credential{{Name: "T", Host: "a.example", Value: "secret\nvalue"}}}, "network.credential"},
		"mask that is too short":      {gate.Options{Masks: []gate.Mask{{Name: "M", Value: "abc"}}}, "output.mask"},
		"mount over what is our own":  {gate.Options{MountsUnsafe: []gate.Mount{{Source: ".", Target: "/etc"}}}, "mount.invalid"},
		"workspace that is not there": {gate.Options{Workspace: "testdata/absent"}, "sandbox.workspace"},
		"unknown root file system":    {gate.Options{Rootfs: "docker:x"}, "rootfs.unsupported"},
		"image without digest":        {gate.Options{Rootfs: "image:127.0.0.1:1/x"}, "rootfs.unpinned"},
		"a devcontainer of anybody":   {gate.Options{Rootfs: "devcontainer"}, "rootfs.devcontainer"},
	} {
		g, err := gate.New(t.Context(), test.o)
		var stop *proposal.StopError
		if !errors.As(err, &stop) || stop.Code != test.code || stop.Hint == "" || g != nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", name, err, test.code)
		}
	}
}

// A gate that only decides runs nothing, and a closed one does nothing.
func TestNotRunnable(t *testing.T) {
	t.Parallel()
	g, err := gate.New(t.Context(), gate.Options{DecideOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := g.Run(t.Context(), proposal.Plan{})
	if f := proposal.FailureOf(err); f == nil || f.Code != "gate.options" || r.Audit != nil || r.Error == nil {
		t.Errorf("%v, %+v", err, r)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := g.Check(t.Context(), proposal.Plan{}); err == nil || proposal.FailureOf(err).Code != "gate.closed" {
		t.Errorf("closed: %v", err)
	}
}
