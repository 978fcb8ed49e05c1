// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/roottest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestMain(m *testing.M) { roottest.RunTests(m) }

type object = map[string]any

// A state is a directory with runs.
type state struct {
	t   *testing.T
	dir string
}

// addRun writes a run that ended days ago, with entries of one kind, and 1000 bytes beside its log.
func (s state) addRun(name string, days int, kind string, body object) (log string) {
	s.t.Helper()
	dir := filepath.Join(s.dir, name)
	log = filepath.Join(dir, "audit.jsonl")
	s.check(os.MkdirAll(filepath.Join(dir, "deep/er"), 0o700))
	s.check(os.WriteFile(filepath.Join(dir, "deep/er/x.stdout"), make([]byte, 1000), 0o600))
	l, err := audit.Create(log, audit.Options{Origin: "fumehood/test"})
	s.check(err)
	_, err = l.Append(kind, body)
	s.check(err)
	if kind != "unsealed" {
		_, err = l.Seal()
		s.check(err)
	}
	s.check(l.Close())
	at := time.Now().AddDate(0, 0, -days)
	s.check(os.Chtimes(log, at, at))
	return log
}

func (s state) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s state) names() (names []string) {
	list, err := os.ReadDir(s.dir)
	s.check(err)
	for _, d := range list {
		names = append(names, d.Name())
	}
	return names
}

// why returns what happens to each entry.
func why(list []Entry) map[string]string {
	said := map[string]string{}
	for _, e := range list {
		said[filepath.Base(e.Path)] = e.Kept
	}
	return said
}

func TestPrune(t *testing.T) {
	s := state{t, t.TempDir()}
	seen := func(counts object, findings ...object) object {
		return object{"result": object{"status": "exited", "observations": object{"counts": counts, "findings": slices.Concat([]object{}, findings), "complete": true}}}
	}
	file := func(refused string) object { return object{"output": object{"path": "a", "refused": refused}} }
	want := map[string]string{}
	for name, r := range map[string]struct {
		kind string
		body object
		kept string
	}{
		"allowed":  {"decision", object{"decision": object{"effect": "allow"}}, ""},
		"result":   {"result", seen(object{"execs": 3}), ""},
		"review":   {"model.answer", object{"text": "x"}, ""},
		"denied":   {"decision", object{"decision": object{"effect": "deny"}}, "a command was not allowed"},
		"asked":    {"decision", object{"decision": object{"effect": "ask"}}, "a command was not allowed"},
		"nothing":  {"decision", object{}, "a command was not allowed"},
		"program":  {"result", seen(object{"refused": 1}), "a program or a network access was refused"},
		"network":  {"result", seen(object{"network_refused": 1}), "a program or a network access was refused"},
		"again":    {"attempt", object{"attempt": seen(object{"refused": 1})["result"]}, "a program or a network access was refused"},
		"finding":  {"result", seen(object{}, object{}), "a finding was reported"},
		"partial":  {"result", object{"result": object{"observations": object{}}}, "not everything that a command did was recorded"},
		"failed":   {"result", object{"result": object{"status": "sandbox failed"}}, "it is not known how a command ended"},
		"shell":    {"result", object{"result": object{"status": "signaled", "killed": "connect"}}, "a program or a network access was refused"},
		"withheld": {"result", object{"result": object{"status": "exited", "outputs": []object{{"refused": "withheld: x"}}}}, "a file was refused"},
		"put":      {"transfer", file("denied by policy"), "a file was refused"},
		"taken":    {"transfer", file(""), ""},
		"absent":   {"transfer", file("no such file"), ""},
		"ended":    {"end", object{"totals": object{}, "error": nil}, ""},
		"stopped":  {"end", object{"error": object{"code": "sandbox.failed"}}, "the run ended with an error"},
		"unknown":  {"later", object{}, "its log has an entry that this version does not know"},
		"mistaken": {"result", object{"result": 5}, "its log has an entry that this version does not know"},
		"unsealed": {"unsealed", object{}, "its log is not sealed"},
	} {
		s.addRun(name, 10, r.kind, r.body)
		want[name] = r.kept
	}
	allowed := object{"decision": object{"effect": "allow"}}
	s.addRun("young", 3, "decision", allowed)
	changed := s.addRun("changed", 10, "decision", allowed)
	data, err := os.ReadFile(changed)
	s.check(err)
	s.check(os.WriteFile(changed, []byte(strings.Replace(string(data), "allow", "alloy", 1)), 0o600))
	want["changed"] = "its log is not valid"
	for name, lock := range map[string]func(f *os.File) error{
		"running": func(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) },
		"pod": func(f *os.File) error {
			return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		},
	} {
		f, err := os.OpenFile(s.addRun(name, 10, "decision", allowed), os.O_RDWR, 0)
		s.check(err)
		defer f.Close()
		s.check(lock(f))
		want[name] = "a process writes its log"
	}
	two := s.addRun("two", 10, "decision", allowed)
	s.check(os.Rename(s.addRun("other", 10, "unsealed", object{}), filepath.Join(filepath.Dir(two), "second.jsonl")))
	want["two"] = "its log is not sealed"
	s.check(os.Mkdir(filepath.Join(filepath.Dir(s.addRun("clone", 10, "decision", allowed)), ".git"), 0o700))
	want["clone"] = "it is a work tree of git"
	for _, name := range []string{"changed", "two"} {
		at := time.Now().AddDate(0, 0, -10)
		for _, log := range []string{"audit.jsonl", "second.jsonl"} {
			_ = os.Chtimes(filepath.Join(s.dir, name, log), at, at)
		}
	}

	// What is not a directory with a log, or leads elsewhere, is left alone.
	outside := state{t, t.TempDir()}
	outside.addRun("run", 10, "decision", allowed)
	s.check(os.Symlink(filepath.Join(outside.dir, "run"), filepath.Join(s.dir, "link")))
	s.check(os.WriteFile(filepath.Join(s.dir, "file.jsonl"), nil, 0o600))
	s.check(os.Mkdir(filepath.Join(s.dir, "linked"), 0o700))
	s.check(os.Symlink(filepath.Join(outside.dir, "run/audit.jsonl"), filepath.Join(s.dir, "linked/audit.jsonl")))
	s.check(os.Symlink(outside.dir, filepath.Join(s.dir, "allowed/away")))
	s.check(os.Link(filepath.Join(outside.dir, "run/audit.jsonl"), filepath.Join(s.dir, "allowed/hard")))
	foreign := s.addRun("foreign", 10, "decision", allowed)
	s.check(os.Chown(filepath.Dir(foreign), 12345, 12345))

	limit := Limit{Before: time.Now().AddDate(0, 0, -7), DryRun: true}
	before := s.names()
	for _, limit.DryRun = range []bool{true, false} {
		list, err := Prune(t.Context(), s.dir, limit)
		s.check(err)
		if diff := cmp.Diff(want, why(list)); diff != "" {
			t.Fatalf("dry: %t (-want +got):\n%s", limit.DryRun, diff)
		}
		if limit.DryRun && !slices.Equal(before, s.names()) {
			t.Error("a dry run removed something")
		}
	}
	gone := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(s.names(), name) })
	if diff := cmp.Diff([]string{"absent", "allowed", "ended", "result", "review", "taken"}, gone); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(outside.dir, "run/deep/er/x.stdout")); err != nil {
		t.Error(err)
	}
}

// The oldest go until the rest is small enough; what stays counts.
func TestPruneBySize(t *testing.T) {
	s := state{t, t.TempDir()}
	for days := range 6 {
		effect := "allow"
		if days == 5 {
			effect = "deny"
		}
		s.addRun(fmt.Sprint(days), days, "decision", object{"decision": object{"effect": effect}})
	}
	info, err := os.Stat(filepath.Join(s.dir, "0/audit.jsonl"))
	s.check(err)
	one := info.Size() + 1000
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if list, err := Prune(ended, s.dir, Limit{Bytes: 1}); proposal.FailureOf(err).Code != "audit.interrupted" || len(list) > 0 {
		t.Errorf("interrupted: %v, %v", why(list), err)
	}
	if list, err := Prune(t.Context(), s.dir, Limit{}); err != nil || len(list) > 0 {
		t.Errorf("no limit: %v, %v", why(list), err)
	}
	list, err := Prune(t.Context(), s.dir, Limit{Bytes: 3*one + 100})
	s.check(err)
	if diff := cmp.Diff(map[string]string{"5": "a command was not allowed", "4": "", "3": "", "2": ""}, why(list)); diff != "" {
		t.Error(diff)
	}
	if got := strings.Join(s.names(), " "); got != "0 1 5" {
		t.Error(got)
	}
	if _, err := Prune(t.Context(), filepath.Join(s.dir, "none"), Limit{}); proposal.FailureOf(err).Code != "audit.directory" {
		t.Error(err)
	}
}

// What cannot be looked at is listed, whatever its age, if it is or may be one with logs.
func TestPruneUnreadable(t *testing.T) {
	s := state{t, t.TempDir()}
	s.check(os.Chmod(filepath.Dir(s.dir), 0o755))
	allowed := object{"decision": object{"effect": "allow"}}
	s.addRun("closed", 0, "decision", allowed)
	for _, name := range []string{"part", "bare"} {
		log := s.addRun(name, 0, "decision", allowed)
		s.check(os.Chmod(filepath.Dir(log), 0o755))
		if name == "bare" {
			s.check(os.Remove(log))
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.check(unix.Setfsuid(12345)) // of this thread: files are not root's to read
	list, err := Prune(t.Context(), s.dir, Limit{})
	s.check(errors.Join(err, unix.Setfsuid(0)))
	want := map[string]string{"closed": "openat closed: permission denied", "part": "openat deep: permission denied"}
	if diff := cmp.Diff(want, why(list)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
