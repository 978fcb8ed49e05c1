// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/k8s/internal/pod"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// newGate returns a pod whose kernel has not connected, and its door.
func newGate(t *testing.T) (*pod.Pod, pod.Door) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pod")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	log, err := audit.Create(filepath.Join(dir, "audit.jsonl"), audit.Options{Origin: "pod/test"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pod.Open(pod.Options{Run: proposal.Run{ID: "test"}, Log: log, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(nil) })
	if _, err := p.Admit(t.Context(), pod.Process{Argv: []string{"echo"}}); code(err) != "pod.options" {
		t.Errorf("a pod without a policy admits: %v", err)
	}
	if err := p.Confirm("control"); code(err) != "pod.options" {
		t.Errorf("a pod without a policy is confirmed: %v", err)
	}
	use(t, p, policy.Options{})
	door := filepath.Join(dir, "door")
	if err := p.Listen(door); err != nil {
		t.Fatal(err)
	}
	return p, pod.Door(door)
}

func code(err error) string {
	var stopped *proposal.StopError
	if errors.As(err, &stopped) {
		return stopped.Code
	}
	return fmt.Sprint(err)
}

// What policy refuses, and what cannot be decided, is refused through a door as in the pod's own
// process.
func TestAdmit(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	p, door := newGate(t)
	for _, test := range []struct {
		argv []string
		env  []string
		want string
	}{
		{[]string{"echo", "hello"}, nil, "<nil>"},
		{[]string{"curl", "https://example.com"}, nil, "pod.denied"},
		{[]string{"sh", "-c", "curl https://example.com"}, nil, "pod.denied"},
		{[]string{"sh", "-c", "echo $("}, nil, "pod.denied"},
		{[]string{"echo"}, []string{"LD_PRELOAD=/tmp/x.so"}, "pod.denied"},
		{[]string{"gh", "auth", "token"}, nil, "pod.denied"},
		{nil, nil, "pod.process"},
		{[]string{"echo", "a\x00b"}, nil, "pod.process"},
		{[]string{"echo", strings.Repeat("x", 3<<20)}, nil, "pod.process"},
	} {
		for name, a := range map[string]pod.Admitter{"pod": p, "door": door} {
			admission, err := a.Admit(t.Context(), pod.Process{Container: "c", Argv: test.argv, Env: test.env})
			if code(err) != test.want {
				t.Errorf("%s: %.60q: %v, want %s", name, test.argv, err, test.want)
			}
			if err == nil {
				admission.Drop()
				if err := admission.Start(func(pod.Ender) error { t.Error("launched"); return nil }); code(err) != "pod.start" {
					t.Errorf("%s: started after it was dropped: %v", name, err)
				}
			}
		}
	}
}

// The command of the first container is the node's choice, but only in its own process.
func TestPauseThroughDoor(t *testing.T) {
	t.Parallel()
	_, door := newGate(t)
	if _, err := door.Admit(t.Context(), pod.Process{Argv: []string{"curl", "x"}, Pause: true}); code(err) != "pod.denied" {
		t.Errorf("%v", err)
	}
}

// Without the kernel nothing is launched, and the pod has failed.
func TestNoKernel(t *testing.T) {
	t.Parallel()
	p, door := newGate(t)
	a, err := door.Admit(t.Context(), pod.Process{Argv: []string{"echo"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(func(pod.Ender) error { t.Error("launched"); return nil }); err == nil || p.Err() == nil {
		t.Errorf("%v, %v", err, p.Err())
	}
	if _, err := p.Admit(t.Context(), pod.Process{Argv: []string{"echo"}}); err == nil {
		t.Error("a pod that has failed admits")
	}
	if _, err := door.Admit(t.Context(), pod.Process{Argv: []string{"echo"}}); err == nil {
		t.Error("the door of a pod that has failed is open")
	}
}

// There is room for a bounded number of processes, and what is not started gives its room back.
func TestFull(t *testing.T) {
	t.Parallel()
	p, door := newGate(t)
	var all []pod.Admission
	for range pod.MaxRunning {
		a, err := door.Admit(t.Context(), pod.Process{Argv: []string{"echo"}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	if _, err := p.Admit(t.Context(), pod.Process{Argv: []string{"echo"}}); code(err) != "pod.full" {
		t.Errorf("%v", err)
	}
	for _, a := range all {
		a.Drop()
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		a, err := p.Admit(t.Context(), pod.Process{Argv: []string{"echo"}})
		if err == nil {
			a.Drop()
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// Whatever comes through the door in place of a process, the pod goes on.
func TestHostileDoor(t *testing.T) {
	t.Parallel()
	p, door := newGate(t)
	for _, text := range []string{"", "\n", "null\n", "{}\n", "[1]\n", `{"start":true}` + "\n", `{"process":null}` + "\n", "{\"process\":{}}\n{}\n", strings.Repeat("x", 5<<20),
		`{"process":{"Argv":["echo"]}}` + "\n" + `{"launched":true}` + "\n", `{"process":{"Argv":["echo"]}}` + "\n" + `{"status":0}` + "\n"} {
		conn, err := net.Dial("unix", string(door))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(text)) // the other end may have closed
		_ = conn.Close()
	}
	a, err := door.Admit(t.Context(), pod.Process{Argv: []string{"echo"}})
	if err != nil || p.Err() != nil {
		t.Fatalf("%v, %v", err, p.Err())
	}
	a.Drop()
}
