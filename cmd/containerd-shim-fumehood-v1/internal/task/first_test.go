// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// The sandbox is known by its ancestors, also if one of them ends meanwhile.
func TestDescends(t *testing.T) {
	const shim, runsc, sandbox, other = 10, 20, 30, 40
	parents := map[int]int{runsc: shim, sandbox: runsc, shim: 1, other: 1}
	parent := func(pid int) (int, error) {
		if of, found := parents[pid]; found {
			return of, nil
		}
		return 0, errors.New("there is none")
	}
	ending := func(pid int) (int, error) { // runsc ends after the sandbox was looked up
		of, err := parent(pid)
		if pid == sandbox {
			delete(parents, runsc)
			parents[sandbox] = shim
		}
		return of, err
	}
	for _, test := range []struct {
		pid    int
		parent func(int) (int, error)
		want   bool
	}{{sandbox, parent, true}, {runsc, parent, true}, {sandbox, ending, true}, {other, parent, false}, {shim, parent, false}, {50, parent, false}} {
		if descends(test.pid, shim, test.parent) != test.want {
			t.Errorf("%d: want %v", test.pid, test.want)
		}
	}
}

// A child of this process descends from it, and its parent does not.
func TestParentOf(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	if !descends(child.Process.Pid, os.Getpid(), parentOf) || descends(os.Getppid(), os.Getpid(), parentOf) {
		t.Error("want the child, and not the parent")
	}
}
