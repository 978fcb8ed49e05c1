// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
)

const (
	programImage = "local.test/fumehood:1"
	claimsImage  = "local.test/fumehood-claims:1"
	serveSpace   = "--namespace=fumehood-serve"
)

// loadProgram loads an image with the CLI and its installation, as the Dockerfile makes it, and returns its
// reference.
func (k kube) loadProgram() string {
	k.t.Helper()
	dir := k.installation()
	k.build("../../..", dir, "./cmd/fumehood")
	image, err := k.node.LoadInstalled(k.t.Context(), programImage, dir)
	check(k.t, err)
	return image
}

// The chart's StatefulSet serves E2B's wire: code of a client runs in a claimed pod, only the container
// of fumehood-claims can reach the API server, and the pod comes back after it was killed or deleted.
func TestClusterServe(t *testing.T) {
	s := installServe(t)
	id, header := s.sandbox()
	s.decides(header)
	s.end(id)
	if out := s.must("", "exec", serveSpace, "serve-0", "--container=serve", "--", "sh", "-c", "fumehood verify --untrusted-key /tmp/.local/state/fumehood/pods/*.jsonl"); !strings.Contains(out, "consistent and sealed") {
		t.Errorf("the server's log: %s", out)
	}
	s.o.verify(`"totals":`)
	s.empty()
	for container, want := range map[string]error{"serve": os.ErrNotExist, "claims": nil} {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/root/var/run/secrets/kubernetes.io/serviceaccount/token", s.pid(container))); !errors.Is(err, want) {
			t.Errorf("the token of %s: %v, want %v", container, err, want)
		}
	}

	s.sandbox()
	check(t, errors.Join(syscall.Kill(s.pid("claims"), syscall.SIGKILL), syscall.Kill(s.pid("serve"), syscall.SIGKILL)))
	s.serving("1 1")
	s.orphaned()
	s.sandbox()
	s.must("", "delete", "pod", serveSpace, "serve-0", "--timeout=50s")
	if out := s.must("", "get", "sandboxclaims"); !strings.Contains(out, "No resources found") {
		t.Errorf("claims of a pod that was deleted: %s", out)
	}
	s.serving("0 0")
	_, header = s.sandbox()
	s.decides(header)
}

// installServe installs the chart with a server for the namespace default, and waits until it serves.
func installServe(t *testing.T) service {
	k, nodes, clients := newSessions(t, nodetest.Options{Runc: true})
	s := service{kube: k, address: "127.0.0.1:8932"}
	t.Cleanup(s.explain)
	program := k.loadProgram()
	dir := t.TempDir()
	k.build("", dir, "../../cmd/fumehood-claims")
	claims, err := k.node.LoadDirectory(t.Context(), claimsImage, "", dir)
	check(t, err)
	k.must("", "create", "namespace", "fumehood-serve")
	k.must("", "label", "namespace", "fumehood-serve", "pod-security.kubernetes.io/enforce=restricted")
	k.helm("install", serveSpace, "--set", "node.enabled=false,serve.enabled=true,serve.image="+program+",serve.claimsImage="+claims+",serve.tenants.default.pool=session,serve.tenants.default.claims=20")
	secrets := t.TempDir()
	clients.Write(t, secrets, remote.ClientName("default"), nodes)
	check(t, os.WriteFile(secrets+"/keys", []byte(e2bKey+" tenant=default\n"), 0o600))
	k.must("", "create", "secret", "generic", "fumehood-serve-tls", serveSpace, "--type=kubernetes.io/tls", "--from-file="+secrets+"/tls.crt", "--from-file="+secrets+"/tls.key", "--from-file="+secrets+"/ca.crt")
	k.must("", "create", "secret", "generic", "fumehood-serve-keys", serveSpace, "--from-file="+secrets+"/keys")
	s.serving("0 0")
	s.pool()
	s.portForward()
	return s
}

// explain logs what the server's pod says, if the test failed.
func (s service) explain() {
	if !s.t.Failed() {
		return
	}
	for _, args := range [][]string{{"describe", "pods"}, {"logs", "statefulset/serve", "--all-containers", "--prefix"}} {
		out, _ := s.Kubectl("", append(args, serveSpace)...)
		s.t.Log(out)
	}
}

// of is a field of the status of a container or sidecar of the server's pod, for kubectl.
func of(container, field string) string {
	const one = "{.status.%sontainerStatuses[?(@.name==%q)].%s}"
	return fmt.Sprintf(one+one, "c", container, field, "initC", container, field)
}

// serving waits until both programs of the pod are ready, after so many restarts.
func (s service) serving(restarts string) {
	s.t.Helper()
	s.wait("true true "+restarts, "get", "pod", serveSpace, "serve-0",
		"-o=jsonpath="+of("serve", "ready")+" "+of("claims", "ready")+" "+of("serve", "restartCount")+" "+of("claims", "restartCount"))
}

// portForward passes connections to the address in the node's network on to the pod, until the test ends.
func (s service) portForward() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil { // it ends with the pod
			_ = s.Stream(ctx, "", io.Discard, "port-forward", serveSpace, "pod/serve-0", "8932")
			time.Sleep(200 * time.Millisecond)
		}
	}()
	s.t.Cleanup(func() { cancel(); <-done })
}

// pid returns the process of a container of the server's pod.
func (s service) pid(container string) int {
	s.t.Helper()
	id := s.must("", "get", "pod", serveSpace, "serve-0", "-o=jsonpath="+of(container, "containerID"))
	out, err := exec.Command("runc", "--root", s.node.Dir+"/runc/k8s.io", "state", strings.TrimPrefix(id, "containerd://")).Output()
	check(s.t, err)
	var state struct{ Pid int }
	check(s.t, json.Unmarshal(out, &state))
	return state.Pid
}
