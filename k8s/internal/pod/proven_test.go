// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/k8s/internal/pod"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// noSleep refuses the program of the pause container.
const noSleep = `package fumehood.exec

deny contains {"rule": "test.sleep", "message": "nothing sleeps", "suggestion": "use another"} if endswith(input.path, "/sleep")
`

// noPolicy cannot be compiled.
const noPolicy = `package fumehood.command

deny contains missing(input)
`

// A pod that is proven does not wait for policy, and everything that starts in it does.
func TestProven(t *testing.T) {
	t.Parallel()
	k := openKube(t, true, noID, noDate)
	if err := k.begin(); err != nil {
		t.Fatal(err)
	}
	k.create("web", "read-only", "sh", "-c", "sleep 1000")
	if err := k.start(pod.Door(filepath.Join(k.dir, "door")), "web", pod.Process{Argv: []string{"sh", "-c", "sleep 1000"}, Env: []string{"PATH=/usr/bin:/bin"}}); err != nil {
		t.Fatal(err)
	}
	if text, status, err := k.exec(k.pod, "web", "echo", "on"); text != "on\n" || status != 0 || err != nil {
		t.Errorf("%q, %d, %v", text, status, err)
	}
	if _, _, err := k.exec(k.pod, "web", "id"); err == nil || !strings.Contains(err.Error(), "id is not for pods") {
		t.Errorf("a program that policy refuses: %v", err)
	}
	if k.pod.Err() != nil {
		t.Error(k.pod.Err())
	}
}

// A pod whose pause container policy refuses fails with that reason, also if it did not wait.
func TestRefusedPause(t *testing.T) {
	t.Parallel()
	for _, proven := range []bool{false, true} {
		t.Run(fmt.Sprintf("proven %t", proven), func(t *testing.T) {
			k := openKube(t, proven, noSleep)
			if err := k.begin(); !proven && code(err) != "pod.denied" || proven && err != nil {
				t.Errorf("error %v", err)
			}
			k.wantFailed("pod.denied")
		})
	}
}

// A policy that cannot be compiled fails the pod, and whatever waits for it.
func TestBadPolicy(t *testing.T) {
	t.Parallel()
	k := openKube(t, true, noPolicy)
	k.wantFailed("policy.compile")
	if err := k.pod.Close(nil); err != nil || !strings.Contains(k.entries(), `"code":"policy.compile"`) {
		t.Errorf("%v, %s", err, k.entries())
	}
}

func (k *kube) wantFailed(want string) {
	k.t.Helper()
	select {
	case <-k.pod.Failed():
	case <-time.After(time.Minute):
		k.t.Fatal("the pod has not failed")
	}
	if code(k.pod.Err()) != want {
		k.t.Errorf("the pod failed with %v", k.pod.Err())
	}
	if _, err := k.pod.Admit(k.t.Context(), pod.Process{Argv: []string{"echo"}}); code(err) != want {
		k.t.Errorf("a failed pod admits: %v", err)
	}
}

// What a failed pod closes is not why it failed.
func TestFirstReason(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	for range 20 {
		p, _ := newGate(t)
		go p.Fail(&proposal.StopError{Code: "pod.revoked", Message: "it was revoked"})
		if err := p.Confirm("control"); code(err) != "pod.revoked" {
			t.Errorf("error %v", err)
		}
	}
}
