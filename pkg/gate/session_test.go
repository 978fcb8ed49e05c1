// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// newGateAlone returns a gate whose runs keep their short-lived files below a new directory,
// os.TempDir. Tests that use it do not run in parallel.
func newGateAlone(t testing.TB, o gate.Options) *gate.Gate {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	return newGate(t, o)
}

// newGate returns a gate for the workspace testdata/project.
func newGate(t testing.TB, o gate.Options) *gate.Gate {
	t.Helper()
	needSandbox(t)
	if o.Workspace == "" {
		o.Workspace = "testdata/project"
	}
	g, err := gate.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func open(t testing.TB, g *gate.Gate, o gate.SessionOptions) gate.Session {
	t.Helper()
	s, err := g.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func run(id, text string) proposal.Proposal { return proposal.Proposal{ID: id, Run: text} }

func do(t *testing.T, s gate.Session, p proposal.Proposal) proposal.Record {
	t.Helper()
	r, err := s.Do(t.Context(), p)
	if err != nil {
		t.Fatalf("%s: %v", p.ID, err)
	}
	return r
}

// ran is do for what is allowed.
func ran(t *testing.T, s gate.Session, p proposal.Proposal) *proposal.Result {
	t.Helper()
	r := do(t, s, p)
	if r.Result == nil {
		t.Fatalf("%s: %+v", p.ID, r.Decision)
	}
	return r.Result
}

// outcome is what a caller sees of a record, whichever way it took.
func outcome(r proposal.Record) string {
	text := r.Proposal.ID + " " + r.Decision.Effect.String()
	for _, reason := range r.Decision.Reasons {
		text += " " + reason.Rule
	}
	if r.Result != nil {
		text += fmt.Sprintf(" exit %d, %d refused, %s %v", r.Result.ExitCode, r.Result.Observations.Counts.Refused, r.Result.Stdout.SHA256, r.Result.Stdout.Redacted)
	}
	return text
}

// checkLog verifies the log of a report.
func checkLog(t *testing.T, r proposal.Report, complete bool) {
	t.Helper()
	f, err := os.Open(r.Audit.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	summary, err := audit.Scan(f, audit.Trust{Key: r.Audit.Key}, func(audit.Entry) error { return nil })
	if err != nil || summary.Complete() != complete {
		t.Errorf("the log: %v, complete %v", err, summary.Complete())
	}
}

// Files of one command are there for the next, processes are not; and files go in and
// out, searched for secrets, and recorded.
func TestSessionFiles(t *testing.T) {
	t.Parallel()
	g := newGate(t, gate.Options{})
	s := open(t, g, gate.SessionOptions{})
	ctx := t.Context()
	put := func(name, data, refused string) {
		t.Helper()
		out, err := s.Put(ctx, name, []byte(data))
		if err != nil || !strings.Contains(out.Refused, refused) || (out.Refused == "") != (refused == "") {
			t.Errorf("put %q: %+v, %v", name, out, err)
		}
	}
	put("in/deep/note.txt", "hello\n", "")
	put("Makefile.bak", "changed\n", "")
	put("../x", "x", "not a path inside")
	put("/etc/passwd", "x", "not a path inside")
	put("task/x", "x", "not a directory")
	put("in", "x", "not a regular file")
	for _, name := range []string{".git/hooks/pre-commit", ".github/workflows/x.yml", "sub/conftest.py", "-t/.npmrc"} { // as for cp in a text
		put(name, "x", "(files.place)")
	}
	if r := ran(t, s, run("links", "./task links; cat in/deep/note.txt; echo more >> in/deep/note.txt; sleep 600 &")); r.Leftover != 1 || string(r.Stdout.Head) != "hello\n" {
		t.Errorf("got %+v", r)
	}
	put("out", "x", "not a regular file")
	put("dir/passwd", "x", "not a directory")
	data, out, err := s.Take(ctx, "in/deep/note.txt")
	if err != nil || out.Refused != "" || string(data) != "hello\nmore\n" {
		t.Errorf("took %q, %+v, %v", data, out, err)
	}
	taken, _ := filepath.Glob(filepath.Join(s.Artifacts(), "*.outputs"))
	data, _, err = s.TakePart(ctx, "in/deep/note.txt", 6, 4)
	if left, _ := filepath.Glob(filepath.Join(s.Artifacts(), "*.outputs")); err != nil || string(data) != "more" || len(left) != len(taken) {
		t.Errorf("took the part %q, left %q, %v", data, left, err)
	}
	for _, name := range []string{"out", "dir/passwd", "../x", "none", "in"} {
		if data, out, err := s.Take(ctx, name); err != nil || out.Refused == "" || data != nil {
			t.Errorf("take %q: %q, %+v, %v", name, data, out, err)
		}
	}
	if r := ran(t, s, run("key", "./task leak > found.txt")); !r.Observations.Complete {
		t.Errorf("files that the caller moved were recorded as the command's: %+v", r.Observations.Counts)
	}
	if data, out, err := s.Take(ctx, "found.txt"); err != nil || !bytes.HasPrefix(data, []byte("[redacted ")) || len(out.Redacted) == 0 {
		t.Errorf("a key came out: %q, %+v, %v", data, out, err)
	}
	put("key.txt", "changed\n", "")
	found, err := s.List(ctx, "*.txt")
	if err != nil || len(found.Files) != 2 {
		t.Errorf("list: %+v, %v", found, err)
	}
	if found, err := s.List(ctx, "[["); err != nil || len(found.Files) != 0 {
		t.Errorf("a bad pattern: %+v, %v", found, err)
	}
	changes, err := s.Changes(ctx)
	var names []string
	for _, c := range changes.Files {
		names = append(names, c.Kind+" "+c.Path)
	}
	want := []string{"added Makefile.bak", "added dir", "added found.txt", "added in", "added in/deep", "added in/deep/note.txt", "changed key.txt", "added out"}
	if diff := cmp.Diff(want, names); diff != "" || err != nil {
		t.Errorf("changes (-want +got):\n%s\n%v", diff, err)
	}
	report, err := s.Close()
	if err != nil || len(report.Transfers) != 23 {
		t.Errorf("%d transfers, %v", len(report.Transfers), err)
	}
	checkLog(t, report, true)
}

// Many proposals, one after the other, and some at once: each has its turn.
func TestSessionMany(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	g := newGate(t, gate.Options{})
	s := open(t, g, gate.SessionOptions{})
	n := sample.Rounds(t, 200, 20, 5)
	for i := range n {
		if r := ran(t, s, run(fmt.Sprintf("p%d", i), fmt.Sprintf("echo %d >> n; wc -l < n", i))); strings.TrimSpace(string(r.Stdout.Head)) != fmt.Sprint(i+1) {
			t.Fatalf("proposal %d: %+v", i, r)
		}
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := s.Do(t.Context(), run(fmt.Sprintf("at-once-%d", i), "mkdir lock && rmdir lock")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := g.Run(t.Context(), decode(t, document)); proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != "gate.busy" {
		t.Errorf("a run beside a session: %v", err)
	}
	if _, err := g.Open(t.Context(), gate.SessionOptions{}); proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != "gate.busy" {
		t.Errorf("a session beside a session: %v", err)
	}
	report, err := s.Close()
	if err != nil || report.Totals.Succeeded != n+8 {
		t.Errorf("%+v, %v", report.Totals, err)
	}
	checkLog(t, report, true)
}

// However a session ends, nothing of it is left on the host, and its log verifies.
func TestSessionEnds(t *testing.T) {
	ends := map[string]struct {
		idle time.Duration
		end  func(cancel func(), s gate.Session, g *gate.Gate)
		code string
	}{
		"closed":    {0, func(_ func(), s gate.Session, _ *gate.Gate) { _, _ = s.Close() }, ""},
		"cancelled": {0, func(cancel func(), _ gate.Session, _ *gate.Gate) { cancel() }, "run.cancelled"},
		"forgotten": {time.Millisecond, func(func(), gate.Session, *gate.Gate) {}, "session.idle"},
		"gate":      {0, func(_ func(), _ gate.Session, g *gate.Gate) { g.Close() }, ""},
	}
	for _, name := range sample.EveryNthKey(t, ends, 1, 4) {
		c := ends[name]
		t.Run(name, func(t *testing.T) {
			g := newGateAlone(t, gate.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, err := g.Open(ctx, gate.SessionOptions{Idle: c.idle})
			if err != nil {
				t.Fatal(err)
			}
			under, groups := make(chan error, 1), []string(nil)
			if c.idle == 0 {
				go func() {
					_, err := s.Do(t.Context(), run("long", "touch began; sleep 600"))
					under <- err
				}()
				groups = began(t, os.TempDir())
			} else {
				under <- nil
			}
			c.end(cancel, s, g)
			<-s.Done()
			<-under
			report, err := s.Close()
			if f := proposal.FailureOf(err); f == nil && c.code != "" || f != nil && f.Code != c.code {
				t.Errorf("got %v, want %q", err, c.code)
			}
			checkLog(t, report, true)
			if _, err := s.Do(t.Context(), run("late", "true")); err == nil || proposal.FailureOf(err).Code != "session.closed" {
				t.Errorf("after its end: %v", err)
			}
			checkNothingLeft(t, os.TempDir(), groups)
		})
	}
}

// A session may end while it opens; its gate can be used afterwards.
func TestSessionEndsAtOnce(t *testing.T) {
	t.Parallel()
	g := newGate(t, gate.Options{})
	for i := range sample.Rounds(t, 30, 10, 4) {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := g.Open(ctx, gate.SessionOptions{Idle: 1 + time.Duration(i%2)*time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		<-s.Done()
	}
	if _, err := g.Run(t.Context(), decode(t, "schema: fumehood.plan/v1\nproposals: [{id: a, run: echo}]")); err != nil {
		t.Error(err)
	}
}

// began waits for a sandbox whose files are below dir, and returns its cgroups.
func began(t *testing.T, dir string) []string {
	t.Helper()
	for len(groupsOf(dir)) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("no sandbox")
		}
		time.Sleep(5 * time.Millisecond)
	}
	return groupsOf(dir)
}

// groupsOf lists the cgroups of the processes that name dir, without those that this
// process is in.
func groupsOf(dir string) (groups []string) {
	own, _ := os.ReadFile("/proc/self/cgroup")
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte(dir)) {
			continue
		}
		lines, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cgroup"))
		for line := range strings.Lines(string(lines)) {
			if !strings.Contains(string(own), line) {
				groups = append(groups, strings.TrimSpace(line[strings.LastIndex(line, ":")+1:]))
			}
		}
	}
	return groups
}

// checkNothingLeft looks for processes, mounts, cgroups and files that a session has left.
func checkNothingLeft(t *testing.T, dir string, groups []string) {
	t.Helper()
	for _, group := range groups {
		if left, _ := filepath.Glob("/sys/fs/cgroup/*" + group); len(left) > 0 || exists("/sys/fs/cgroup"+group) {
			t.Errorf("the cgroup %s is left", group)
		}
	}
	if left := naming(dir); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(dir)) {
		t.Errorf("mounts are left: %v\n%s", err, mounts)
	}
	files, err := os.ReadDir(dir)
	for _, f := range files {
		t.Errorf("left: %s", f.Name())
	}
	if err != nil {
		t.Error(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// naming lists the processes that name dir: runsc, its gofer and gVisor's kernel all do.
func naming(dir string) (found []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(data, []byte{0}, []byte(" "))))
		}
	}
	return found
}

// A call that is cancelled ends its command, and not the session; one that waits for its
// turn gives up.
func TestSessionCall(t *testing.T) {
	t.Parallel()
	g := newGate(t, gate.Options{})
	s := open(t, g, gate.SessionOptions{})
	ran(t, s, run("first", "true"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan proposal.Record)
	go func() {
		r, err := s.Do(ctx, run("long", "sleep 600"))
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	for running := false; !running; time.Sleep(time.Millisecond) {
		waiting, stop := context.WithTimeout(t.Context(), time.Millisecond)
		_, err := s.Changes(waiting)
		running = errors.Is(err, context.DeadlineExceeded)
		stop()
	}
	cancel()
	if r := <-ended; r.Result == nil || r.Result.Status != proposal.Signaled && r.Result.Status != proposal.NotRun {
		t.Errorf("got %+v", r.Result)
	}
	if r := ran(t, s, run("next", "echo on")); string(r.Stdout.Head) != "on\n" {
		t.Errorf("got %+v", r)
	}
	for _, p := range []proposal.Proposal{{ID: "../x", Run: "true"}, {ID: "x"}, {ID: "y", Run: "true", Argv: []string{"true"}}, {ID: "z", Run: "true\x00"}, {ID: "cwd", Run: "true", Cwd: "../.."}} {
		if _, err := s.Do(t.Context(), p); err == nil || proposal.FailureOf(err).Code != "session.proposal" {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if _, err := s.Close(); err != nil {
		t.Error(err)
	}
}
