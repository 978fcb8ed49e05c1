// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/roottest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/testprogram"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A recorder keeps the gate's questions and events.
type recorder struct {
	mu     sync.Mutex
	decide func(proposal.Exec) proposal.ExecDecision
	asked  []proposal.Exec
	events []proposal.Event
}

func (r *recorder) exec(x proposal.Exec) proposal.ExecDecision {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, x)
	return r.decide(x)
}

func (r *recorder) event(e proposal.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) reset(decide func(proposal.Exec) proposal.ExecDecision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.events, r.decide = nil, nil, decide
}

// refused lists the paths that were refused.
func (r *recorder) refused() (list []string) {
	for _, e := range r.kind(proposal.EventRefused) {
		list = append(list, e.Path)
	}
	return list
}

func (r *recorder) kind(kind string) (list []proposal.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

const (
	canary = "/opt/bin/canary"
	tricks = "/opt/bin/tricks"
)

// deny is a small policy like the built-in one: no canary under any name, no loader,
// nothing that a command wrote, nothing without a name.
func deny(x proposal.Exec) proposal.ExecDecision {
	d := proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{}, Cacheable: len(x.Env) == 0}
	switch {
	case x.Path == canary, slices.Contains(x.Same, canary):
		d.Reason = &proposal.Reason{Message: "canary"}
	case strings.HasPrefix(path.Base(x.Path), "ld-linux"):
		d.Reason = &proposal.Reason{Message: "loader"}
	case x.Layer != proposal.LayerRootfs && x.Layer != proposal.LayerWorkspace && !(x.Layer == proposal.LayerWritten && slices.Contains(x.Grants, "built")):
		d.Reason = &proposal.Reason{Message: x.Layer}
	default:
		d.Effect = proposal.Allow
	}
	return d
}

func allow(proposal.Exec) proposal.ExecDecision {
	return proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{}}
}

// isEmpty reports whether no shell and no command in the background is left.
func (w warmRunner) isEmpty() bool {
	s := w.current
	if s == nil {
		return true
	}
	s.backgrounds.mu.Lock()
	defer s.backgrounds.mu.Unlock()
	return len(s.interpreters.list) == 0 && len(s.backgrounds.list) == 0
}

// programsDir returns the directory with the canary, the tricks and testprogram.
func programsDir(t testing.TB) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir != "" {
		return built.dir
	}
	dir := testDir(t)
	for _, path := range []string{testprogram.Build(t, "testdata/canary"), testprogram.Build(t, "testdata/tricks"), testprogram.Path(t)} {
		target := filepath.Join(dir, filepath.Base(path))
		if os.Link(path, target) == nil {
			continue
		}
		testprogram.WriteExecutable(t, target, readFile(t, path)) // another file system
	}
	built.dir = dir
	return dir
}

// built is the directory of programsDir, once it is made.
var built struct {
	mu  sync.Mutex
	dir string
}

// testFiles is the directory of what tests share.
var testFiles string

// testDir returns a new directory in testFiles.
func testDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(testFiles, "")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMain makes every workspace an image if FUMEHOOD_TEST_IMAGES is set.
func TestMain(m *testing.M) {
	if os.Getenv("FUMEHOOD_TEST_IMAGES") != "" {
		DefaultImageFrom = 1
	}
	roottest.Check()
	var err error
	if testFiles, err = os.MkdirTemp("", "fumehood-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	close(warmRunners)
	for w := range warmRunners {
		if err := w.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "close:", err)
			code = 1
		}
	}
	os.RemoveAll(testFiles)
	os.Exit(code)
}

// gatedOptions are testOptions with a gate and a monitor.
func gatedOptions(t testing.TB) (Options, *recorder) {
	t.Helper()
	rec := &recorder{decide: deny}
	o := testOptions(t)
	o.Exec, o.Event, o.UnwatchedUnsafe = rec.exec, rec.event, false
	return o, rec
}

// A warmRunner has a sandbox in which commands of other tests have run.
type warmRunner struct {
	*Runner
	rec *recorder
}

// warmRunners are those that no test uses.
var warmRunners = make(chan warmRunner, 16)

// gated returns a Runner with a gate and a monitor for a test that does not need a new sandbox:
// other tests may have used it, and have left no files, processes or shells in it.
func gated(t testing.TB) (*Runner, *recorder) {
	t.Helper()
	o, rec := gatedOptions(t)
	var w warmRunner
	select {
	case w = <-warmRunners:
	default:
		o.Workspace, o.Artifacts = testDir(t), ""
		r, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		w = warmRunner{r, rec}
	}
	t.Cleanup(func() { w.release(t) })
	return w.Runner, w.rec
}

// release gives w to the next test, unless this one has failed or has left something in it.
func (w warmRunner) release(t testing.TB) {
	w.rec.reset(allow)
	x := Execution{ID: "clean", Text: "shopt -s dotglob nullglob; rm -rf /workspace/* /tmp/* /dev/shm/* ~/*", Grant: proposal.Grant{Limits: testLimits()}}
	result, err := w.Run(context.WithoutCancel(t.Context()), x)
	if !t.Failed() && err == nil && result.Succeeded() && w.isEmpty() {
		w.rec.reset(deny)
		select {
		case warmRunners <- w:
			return
		default:
		}
	}
	if err := w.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// play runs text and returns its output and result.
func play(t testing.TB, r *Runner, text string, kinds ...string) (string, proposal.Result) {
	t.Helper()
	result, err := r.Run(t.Context(), Execution{ID: "x", Text: text, Grant: proposal.Grant{Limits: testLimits(), Exec: kinds}})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if result.Observations == nil || !result.Observations.Complete {
		t.Errorf("%s: not complete: %+v", text, result.Observations)
	}
	return string(result.Stdout.Head) + string(result.Stderr.Head), result
}

// A program that the text never names is refused whatever starts it, and it is
// recorded. The same text runs the program if everything is allowed, so that no test
// passes just because the launcher does not work here.
func TestLaunchers(t *testing.T) {
	t.Parallel()
	checkLaunchers(t, []launcherText{
		{"shell", "sh -c /opt/bin/canary"},
		{"exec", "exec /opt/bin/canary"},
		{"path", "PATH=/opt/bin:$PATH; canary"},
		{"eval", "eval $(echo /opt/bin/can'a'ry)"},
		{"xargs", "echo /opt/bin/canary | xargs -n1 env --"},
		{"find", `find /opt/bin -name canary -exec {} \;`},
		{"program", "/opt/bin/testprogram run /opt/bin/canary"},
		{"program of a shell of a program", "/opt/bin/testprogram run sh -c '/opt/bin/canary; true'"},
		{"awk", `awk 'BEGIN { system("/opt/bin/canary") }'`},
		{"env", "env -i /opt/bin/canary"},
		{"timeout", "timeout 500 /opt/bin/canary"},
		{"nice", "nice -n 1 /opt/bin/canary"},
		{"setsid", "setsid -w /opt/bin/canary"},
		{"flock", "flock /tmp/lock /opt/bin/canary"},
		{"git", "git init -q g; git -C g -c alias.x='!/opt/bin/canary' x"},
		{"tar", "touch f; tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=/opt/bin/canary f"},
		{"sed", "echo | sed 1e/opt/bin/canary"},
		{"script", "printf '#!/opt/bin/canary\\n' > s; chmod +x s; ./s"},
		{"env script", "printf '#!/usr/bin/env -S /opt/bin/canary\\n' > s2; chmod +x s2; ./s2"},
		{"vfork", "/opt/bin/tricks vfork /opt/bin/canary"},
		{"thread", "/opt/bin/tricks threads /opt/bin/canary"},
	})
}

// A launcherText starts the canary.
type launcherText struct{ name, text string }

func checkLaunchers(t *testing.T, tests []launcherText) {
	t.Helper()
	r, rec := gated(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rec.reset(func(x proposal.Exec) proposal.ExecDecision {
				if x.Path == canary {
					return proposal.ExecDecision{Effect: proposal.Deny, Reason: &proposal.Reason{Message: "canary"}}
				}
				return allow(x)
			})
			out, _ := play(t, r, test.text)
			if strings.Contains(out, "CANARY") {
				t.Errorf("it ran: %s", out)
			}
			if !slices.Contains(rec.refused(), canary) {
				t.Errorf("refused %q, output %q", rec.refused(), out)
			}
		})
	}
	rec.reset(allow)
	var all strings.Builder
	for _, test := range tests {
		fmt.Fprintf(&all, "( mkdir '/tmp/%s'; cd '/tmp/%[1]s'; %s )\necho '%[1]s ends'\n", test.name, test.text)
	}
	out, _ := play(t, r, all.String())
	for _, test := range tests {
		own, rest, _ := strings.Cut(out, test.name+" ends\n")
		if out = rest; !strings.Contains(own, "CANARY") {
			t.Errorf("%s: it does not run when it is allowed: %q", test.name, own)
		}
	}
	if len(rec.refused()) > 0 {
		t.Errorf("refused %q although all is allowed", rec.refused())
	}
}

// The same program reached in another way is still that program, or is where nothing
// may be executed.
func TestTricks(t *testing.T) {
	t.Parallel()
	o, rec := gatedOptions(t)
	if err := os.WriteFile(filepath.Join(o.Workspace, "brought"), readFile(t, testprogram.Build(t, "testdata/canary")), 0o755); err != nil {
		t.Fatal(err)
	}
	r := testRunner(t, o)
	type trick struct {
		name, text string
		path       string // the refused path
		reason     string
	}
	for _, test := range sample.EveryNth(t, []trick{
		{name: "loader", text: "/lib64/ld-linux-x86-64.so.2 /usr/bin/id", path: "ld-linux", reason: "loader"},
		{name: "loader by link", text: "ln -s /lib64/ld-linux-x86-64.so.2 l; ./l /usr/bin/id", path: "ld-linux", reason: "loader"},
		{name: "copy on the overlay", text: "cp /opt/bin/canary harmless; ./harmless", path: "/workspace/harmless", reason: "canary"},
		{name: "copy on tmp", text: "cp /opt/bin/canary /tmp/harmless; /tmp/harmless", path: "/tmp/harmless", reason: "canary"},
		{name: "copy in HOME", text: "cp /opt/bin/canary ~/harmless; ~/harmless", path: "/home/fumehood/harmless", reason: "canary"},
		{name: "copy on shm", text: "cp /opt/bin/canary /dev/shm/harmless; /dev/shm/harmless", path: "/dev/shm/harmless", reason: "canary"},
		{name: "changed copy", text: "cp /opt/bin/canary /tmp/changed; echo >> /tmp/changed; /tmp/changed", path: "/tmp/changed", reason: "written"},
		{name: "brought along", text: "./brought", path: "/workspace/brought", reason: "canary"},
		{name: "brought and renamed", text: "mv brought b2; ./b2; mv b2 brought", path: "/workspace/b2", reason: "canary"},
		{name: "hard link", text: "cp /opt/bin/canary h1; ln h1 h2; ./h2", path: "/workspace/h2", reason: "canary"},
		{name: "symlink chain", text: "ln -s /opt/bin/canary l1; ln -s l1 l2; ln -s $PWD/l2 /tmp/l3; /tmp/l3", path: canary, reason: "canary"},
		{name: "dots", text: "/opt/../opt/./bin//canary", path: canary, reason: "canary"},
		{name: "proc root", text: "/proc/self/root/opt/bin/canary", path: canary, reason: "canary"},
		{name: "another name", text: "exec -a harmless /opt/bin/canary", path: canary, reason: "canary"},
		{name: "memfd", text: "/opt/bin/tricks memfd /opt/bin/canary", path: "memfd:x", reason: "canary"},
		{name: "memfd by proc", text: "/opt/bin/tricks memfd /opt/bin/canary proc", path: "memfd:x", reason: "canary"},
		{name: "unlinked", text: "/opt/bin/tricks unlinked /opt/bin/canary", path: "unlinked", reason: "canary"},
		{name: "empty path", text: "/opt/bin/tricks emptypath /opt/bin/canary", path: canary, reason: "canary"},
		{name: "by folder", text: "/opt/bin/tricks at /opt/bin/canary", path: canary, reason: "canary"},
		{name: "relative", text: "/opt/bin/tricks relative /opt/bin/canary", path: canary, reason: "canary"},
		{name: "own mounts", text: "/opt/bin/tricks userns /opt/bin/canary /usr/bin/true", path: tricks, reason: "other"},
		{name: "script", text: "printf '#!/bin/sh\\necho CANARY\\n' > s; chmod +x s; ./s", path: "/workspace/s", reason: "written"},
		{name: "interpreter of a script of a script", text: "printf '#!/opt/bin/canary\\n' > i; printf '#!/workspace/i\\n' > s3; chmod +x i s3; ./s3", path: "/workspace/s3", reason: "written"},
	}, 3, 3) {
		t.Run(test.name, func(t *testing.T) {
			rec.reset(deny)
			out, _ := play(t, r, test.text)
			if strings.Contains(out, "CANARY") || strings.Contains(out, "uid=") {
				t.Errorf("it ran: %s", out)
			}
			last := proposal.Event{}
			for _, e := range rec.kind(proposal.EventRefused) {
				if strings.Contains(e.Path, test.path) {
					last = e
				}
			}
			if last.Decision == nil || last.Decision.Reason == nil || last.Decision.Reason.Message != test.reason {
				t.Errorf("refused %q, last %+v because %+v; output %q", rec.refused(), last, last.Decision, out)
			}
			rec.reset(allow)
			if out, _ := play(t, r, "rm -rf ./* /tmp/* ~/*; cp /proc/self/exe /dev/null; "+restore+test.text); !strings.Contains(out, "CANARY") && !strings.Contains(out, "uid=") {
				t.Errorf("it does not run when it is allowed: %q", out)
			}
		})
	}
}

// restore recreates what the workspace came with.
const restore = "cp /opt/bin/canary brought; "

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Arguments are sent in part, and the digest covers all of them; of variables only
// names are sent.
func TestArguments(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	rec.reset(allow)
	play(t, r, "/opt/bin/tricks argv /usr/bin/true; /opt/bin/tricks bytes /usr/bin/true; LD_PRELOAD= NODE_OPTIONS= /usr/bin/true")
	var long, odd, steered proposal.Exec
	for _, x := range rec.asked {
		switch {
		case len(x.Argv) > 20 || x.ArgvCut:
			long = x
		case len(x.Argv) == 3 && strings.HasPrefix(x.Argv[1], "\uFFFD"):
			odd = x
		case len(x.Env) > 0:
			steered = x
		}
	}
	if !long.ArgvCut || len(strings.Join(long.Argv, "")) > 30<<10 || long.Path != "/usr/bin/true" || len(long.ArgvDigest) != 71 {
		t.Errorf("two megabytes of arguments: cut %v, %d words", long.ArgvCut, len(long.Argv))
	}
	if odd.Path != "/usr/bin/true" {
		t.Error("arguments that are not UTF-8 are not reported")
	}
	if !slices.Equal(steered.Env, []string{"LD_PRELOAD", "NODE_OPTIONS"}) && !slices.Equal(steered.Env, []string{"NODE_OPTIONS", "LD_PRELOAD"}) {
		t.Errorf("variables %q", steered.Env)
	}
}

// Values of variables stay in the sandbox, wherever they come from.
func TestValuesStay(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	rec.reset(allow)
	x := Execution{ID: "x", Text: "env; /opt/bin/tricks files", Grant: proposal.Grant{Limits: testLimits(), Env: map[string]string{"TOKEN": "hidden-value", "PYTHONPATH": "/hidden-value"}}}
	result, err := r.Run(t.Context(), x)
	if err != nil || !bytes.Contains(result.Stdout.Head, []byte("TOKEN=hidden-value")) {
		t.Fatalf("%v, output %q", err, result.Stdout.Head)
	}
	reported, err := json.Marshal([]any{rec.asked, rec.events})
	if err != nil || bytes.Contains(reported, []byte("hidden-value")) || !bytes.Contains(reported, []byte("PYTHONPATH")) {
		t.Errorf("reported %s, %v", reported, err)
	}
}

// A grant lets a command run what it built, and this is recorded.
func TestGrant(t *testing.T) {
	t.Parallel()
	r, rec := gated(t)
	out, _ := play(t, r, "cp /usr/bin/id built; ./built", "built")
	if !strings.Contains(out, "uid=") {
		t.Errorf("output %q, refused %q", out, rec.refused())
	}
	last := rec.asked[len(rec.asked)-1]
	if last.Layer != proposal.LayerWritten || !slices.Contains(last.Same, "/usr/bin/id") {
		t.Errorf("asked %+v", last)
	}
	rec.reset(deny)
	if out, _ := play(t, r, "./built"); strings.Contains(out, "uid=") {
		t.Error("it runs without the grant: an answer outlived its command")
	}
}

// The first program is decided too, in whichever way it is started.
func TestFirst(t *testing.T) {
	t.Parallel()
	o, rec := gatedOptions(t)
	if err := os.WriteFile(filepath.Join(o.Workspace, "first.sh"), []byte("#!/bin/sh -e\n/usr/bin/id\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := testRunner(t, o)
	small := testLimits()
	small.Pids--
	for _, test := range []struct {
		name   string
		argv   []string
		limits proposal.Limits
		path   string
		exit   int
	}{
		{"plain", []string{"id"}, testLimits(), "/usr/bin/id", 0},
		{"by link", []string{"/bin/sh", "-c", "true"}, testLimits(), "/usr/bin/dash", 0},
		{"refused", []string{canary}, testLimits(), canary, 126},
		{"refused by way of init", []string{canary}, small, canary, 126},
		{"smaller grant", []string{"id"}, small, "/usr/bin/id", 0},
		{"script of the workspace", []string{"./first.sh"}, testLimits(), "/usr/bin/dash", 0},
		{"absent", []string{"no-such-program"}, testLimits(), "", 127},
		{"absent in the workspace", []string{"./no-such-program"}, testLimits(), "", 127},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec.reset(deny)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for a canary that runs
			defer cancel()
			began := time.Now()
			result, err := r.Run(ctx, Execution{ID: "x", Argv: test.argv, Grant: proposal.Grant{Limits: test.limits}})
			if err != nil || result.ExitCode != test.exit {
				t.Fatalf("exit %d, %v; want %d; stderr %q", result.ExitCode, err, test.exit, result.Stderr.Head)
			}
			passed := time.Since(began).Milliseconds() + 1
			if result.WallMS > passed || result.CPUMS > passed*int64(runtime.NumCPU()) { // no more than there was
				t.Errorf("it took %d ms, of processors %d ms, in %d ms", result.WallMS, result.CPUMS, passed)
			}
			var first proposal.Event
			for _, e := range rec.events {
				if e.Exec != nil && e.Exec.First {
					first = e
				}
			}
			if test.path == "" {
				if first.Exec != nil {
					t.Errorf("first %+v", first.Exec)
				}
				return
			}
			if first.Exec == nil || first.Path != test.path || first.Exec.Digest == "" {
				t.Fatalf("first %+v", first)
			}
			if (first.Kind == proposal.EventRefused) != (test.exit == 126) || first.Kind == proposal.EventExec && first.Pid == 0 {
				t.Errorf("event %+v", first)
			}
			if bytes.Contains(result.Stdout.Head, []byte("CANARY")) {
				t.Error("it ran")
			}
		})
	}
}
