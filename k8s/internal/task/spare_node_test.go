// SPDX-License-Identifier: Apache-2.0

//go:build node

package task_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
	"github.com/fumehood/fumehood/k8s/internal/spare"
)

// waiting returns the processes that wait for containers.
func waiting(n *nodetest.Node) (pids []int) {
	for _, p := range n.Processes() {
		if spare.Is(p.Command) {
			pids = append(pids, p.Pid)
		}
	}
	return pids
}

// settled waits until so many processes wait.
func settled(t *testing.T, n *nodetest.Node, want int) (pids []int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if pids = waiting(n); len(pids) == want {
			return pids
		}
	}
	t.Fatalf("%d processes wait, want %d", len(pids), want)
	return nil
}

// A pod whose shims are processes that waited is like any other.
func TestSpare(t *testing.T) {
	o := newOperator(t)
	n := nodetest.Start(t, nodetest.Options{Env: []string{node.Variable + "=" + o.file}})
	first, other := o.bundle(noID, noDate), o.bundle(noDate)
	o.configure(n.Runsc.Path, "default = \""+first+"\"")
	// run starts a pod and returns how many of its shims are among those that waited.
	run := func(t *testing.T, waited []int, id string) (taken int) {
		t.Helper()
		p, err := n.RunPod(nodetest.Fumehood, nil)
		check(t, err)
		c, err := p.Container(forever)
		check(t, err)
		for _, id := range []string{p.ID, c.ID} {
			if slices.Contains(waited, shim(t, p, id)) {
				taken++
			}
		}
		wantExec(t, c, "hello\n", 0, "/bin/echo", "hello")
		_, err = c.Exec("/bin/date")
		wantError(t, err, "there is no time")
		if _, err = c.Exec("/bin/id"); (err == nil) != (id == "") || err != nil && !strings.Contains(err.Error(), id) {
			t.Errorf("%v, want %q", err, id)
		}
		check(t, p.StopAndRemove())
		o.verify(`{"error":null,"totals":`)
		return taken
	}
	want := func(t *testing.T, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%d shims are processes that waited, want %d", got, want)
		}
	}
	want(t, run(t, waiting(n), "id is not for pods"), 0)
	want(t, run(t, settled(t, n, 2), "id is not for pods"), 2)

	t.Run("another policy meanwhile", func(t *testing.T) {
		waited := settled(t, n, 2)
		o.configure(n.Runsc.Path, "default = \""+other+"\"")
		want(t, run(t, waited, ""), 2)
		o.configure(n.Runsc.Path, "default = \""+first+"\"")
		want(t, run(t, settled(t, n, 2), "id is not for pods"), 2)
	})
	t.Run("its policy revoked meanwhile", func(t *testing.T) {
		settled(t, n, 2)
		check(t, os.Rename(o.place(first), o.place(first)+".away"))
		_, err := n.RunPod(nodetest.Fumehood, nil)
		wantError(t, err, "policy.missing")
		check(t, os.Rename(o.place(first)+".away", o.place(first)))
		run(t, nil, "id is not for pods") // starts others
	})
	t.Run("stopped", func(t *testing.T) {
		waited := settled(t, n, 2)
		for _, pid := range waited {
			check(t, syscall.Kill(pid, syscall.SIGSTOP))
		}
		want(t, run(t, waited, "id is not for pods"), 0)
		for _, pid := range waited {
			if err := syscall.Kill(pid, 0); err == nil && !zombie(t, pid) {
				t.Errorf("the process %d, which did not answer, still runs", pid)
			}
		}
	})
	t.Run("killed", func(t *testing.T) {
		run(t, nil, "id is not for pods") // the last one may have found the stopped processes waiting
		for _, pid := range settled(t, n, 2) {
			check(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		settled(t, n, 0)
		want(t, run(t, nil, "id is not for pods"), 0)
	})
	t.Run("no containerd", func(t *testing.T) {
		settled(t, n, 2)
		check(t, n.Kill(syscall.SIGTERM))
		settled(t, n, 0)
		check(t, n.Serve(t.Context()))
	})
}

func zombie(t *testing.T, pid int) bool {
	t.Helper()
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err != nil || len(command) == 0
}
