// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/kit/lease/leasetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// claimed returns a sandbox that has made everything on the host and was not started.
func claimed(stateDir string) (*instance, error) { return claimedIn(stateDir, "") }

// claimedIn is claimed, with a parent of the sandbox's cgroup.
func claimedIn(stateDir, parent string) (*instance, error) {
	s := &instance{o: Options{StateDir: stateDir, Cgroup: parent}}
	err := s.createStateDirs()
	if err == nil {
		s.cgroup, err = newCgroup(cgroupMount, parent, "fumehood-"+s.id)
	}
	return s, err
}

func newClaimed(t *testing.T) *instance {
	t.Helper()
	s, err := claimed(t.TempDir())
	if err != nil {
		t.Fatal(errors.Join(err, s.close()))
	}
	return s
}

// onHost lists the sandbox's paths on the host.
func (s *instance) onHost() []string {
	return []string{s.root.Path, filepath.Join(s.root.Path, noteFile), s.dir, s.cgroup.dirs["memory"], s.cgroup.dirs["pids"]}
}

// checkHost returns an error unless everything that the sandbox has exists (there), or
// nothing does.
func (s *instance) checkHost(there bool) error {
	var errs []error
	for _, path := range s.onHost() {
		if _, err := os.Lstat(path); (err == nil) != there {
			errs = append(errs, errors.New(path+" is there: "+strconv.FormatBool(err == nil)))
		}
	}
	return errors.Join(errs...)
}

// reapUntil reaps until check succeeds. Another process on this host may be reaping the
// same directory, so one attempt is not enough.
func reapUntil(t *testing.T, check func() error) {
	t.Helper()
	var err error
	for range 6000 {
		removeDeadSandboxes()
		if err = check(); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(err)
}

func (s *instance) checkGone() error { return s.checkHost(false) }

// What a killed fumehood left is removed by the next one; what a running one uses is not.
func TestReap(t *testing.T) {
	r := testRunner(t, testOptions(t))
	runText(t, r, "true")
	ours, other := r.current, newClaimed(t)
	removeDeadSandboxes()
	if err := other.checkHost(true); err != nil {
		t.Errorf("what a living process has was removed: %v", err)
	}
	other.root.Close()
	reapUntil(t, other.checkGone)
	if result := runText(t, r, "true"); !result.Succeeded() || r.current != ours {
		t.Error("the living sandbox was hurt")
	}
}

// The lock of a killed fumehood is released a moment before its sandbox is gone. What the
// sandbox uses is kept until then, and so is its note.
func TestReapWhileSandboxEnds(t *testing.T) {
	lanetest.SkipShort(t)
	s := newClaimed(t)
	ending := exec.Command("sleep", "1000")
	if err := ending.Start(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range s.cgroup.dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(ending.Process.Pid)), 0); err != nil {
			t.Error(err)
		}
	}
	s.root.Close()
	removeDeadSandboxes()
	if err := s.checkHost(true); err != nil {
		t.Errorf("while a process of the sandbox lives: %v", err)
	}
	if err := ending.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = ending.Wait()
	reapUntil(t, s.checkGone)
}

// Wherever fumehood is killed, nothing is left that the next run cannot find: the lease
// comes first, then the note, then what the note lists.
func TestReapHalfMade(t *testing.T) {
	for name, text := range map[string]string{
		"no note": "", "half a note": `{"id": "0123456789abcdef", "di`, "a note of nothing": `{"id": "0123456789abcdef", "dir": "/nowhere/fumehood-0123456789abcdef"}`,
	} {
		d, err := leaseRoot()
		if err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(filepath.Join(d.Path, noteFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d.Close()
		reapUntil(t, func() error {
			if _, err := os.Lstat(d.Path); !os.IsNotExist(err) {
				return fmt.Errorf("%s: the directory is left: %v", name, err)
			}
			return nil
		})
	}
	s := &instance{o: Options{StateDir: filepath.Join(t.TempDir(), "none")}}
	if err := s.createStateDirs(); proposal.FailureOf(err).Code != "sandbox.state" {
		t.Errorf("claimed a directory in none: %v", err)
	}
	if n, ok := readNote(s.root); !ok || n != (sandboxNote{ID: s.id, Dir: s.dir}) {
		t.Errorf("the note is %+v, want one of %s, before the directory is made", n, s.dir)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(s.root.Path); !os.IsNotExist(err) {
		t.Errorf("the leased directory is left: %v", err)
	}
}

// A note that fumehood did not write causes nothing to be removed.
func TestNoteOfSomethingElse(t *testing.T) {
	precious := t.TempDir()
	for _, n := range []sandboxNote{
		{"0123456789abcdef", precious, ""}, {"../../../fumehood", precious, ""}, {"", filepath.Join(precious, "fumehood-"), ""},
		{"0123456789abcdef", "fumehood-0123456789abcdef", ""},
		{"0123456789abcdef", filepath.Join(precious, "fumehood-0123456789abcdef"), "a/../.."},
	} {
		d, err := lease.Make(t.TempDir(), rootPrefix)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.writeNote(d.Path); err != nil {
			t.Fatal(err)
		}
		if got, ok := readNote(d); ok {
			t.Errorf("read %+v", got)
		}
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	}
}

// Sandboxes that many processes make, reap and remove at the same time keep what belongs
// to them, and leave nothing behind.
func TestReapTogether(t *testing.T) {
	dir := t.TempDir()
	leasetest.RunTogether(t, dir, func(turn leasetest.Turn) error {
		s, err := claimed(turn.Dir)
		if err != nil {
			return errors.Join(err, s.close())
		}
		removeDeadSandboxes()
		if err := s.checkHost(true); err != nil {
			return err
		}
		if turn.ShouldAbandon() {
			return s.root.Close()
		}
		return errors.Join(s.cgroup.remove(), s.close(), s.checkHost(false))
	})
	reapUntil(t, func() error { return checkNoneNamed(dir) })
}

// checkNoneNamed returns an error if dir contains a sandbox's directory or the note of
// one that existed.
func checkNoneNamed(dir string) error {
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		return fmt.Errorf("left %v, %v", left, err)
	}
	for _, parent := range rootParents {
		notes, _ := filepath.Glob(filepath.Join(parent, rootPrefix+"*", noteFile))
		for _, path := range notes {
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), dir) {
				return fmt.Errorf("%s is left", path)
			}
		}
	}
	return nil
}
