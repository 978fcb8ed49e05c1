// SPDX-License-Identifier: Apache-2.0

//go:build node

package nodetest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/fumehood/fumehood/k8s/internal/nodetest"
)

const pods = 10

// times are how long each step took, for each pod.
type times map[string][]time.Duration

func (m times) step(name string, f func() error) error {
	begun := time.Now()
	err := f()
	m[name] = append(m[name], time.Since(begun))
	return err
}

func (m times) log(t *testing.T) {
	for _, name := range []string{"pod up", "container start", "exec", "stop"} {
		all := slices.Sorted(slices.Values(m[name]))
		ms := func(d time.Duration) int64 { return d.Milliseconds() }
		t.Logf("%-16s p50 %4d ms, min %4d, max %4d (%d samples)", name, ms(all[len(all)/2]), ms(all[0]), ms(all[len(all)-1]), len(all))
	}
}

// A node runs pods with gVisor's shim, as a kubelet would ask for them.
func TestNode(t *testing.T) {
	begun := time.Now()
	n := nodetest.Start(t, nodetest.Options{Env: []string{"NODETEST=1"}})
	t.Logf("the node was up after %s", time.Since(begun))
	t.Run("pods", func(t *testing.T) { runPods(t, n, nodetest.GVisor) })
	t.Run("options", func(t *testing.T) { containerOptions(t, n) })
	t.Run("refusals", func(t *testing.T) { refusals(t, n) })
	t.Run("containerd killed", func(t *testing.T) { containerdKilled(t, n) })
}

// Pods come up, run two containers and commands in both, and are removed with nothing
// left.
func runPods(t *testing.T, n *nodetest.Node, handler string) {
	m := times{}
	for range pods {
		onePod(t, n, handler, m)
	}
	m.log(t)
	if left := n.Left(); len(left) > 0 {
		t.Errorf("left after the last pod: %q", left)
	}
}

func onePod(t *testing.T, n *nodetest.Node, handler string, m times) {
	t.Helper()
	var p *nodetest.Pod
	check(t, m.step("pod up", func() (err error) { p, err = n.RunPod(handler, nil); return err }))
	for _, name := range []string{"one", "two"} {
		c := start(t, p, m, name)
		var r nodetest.ExecResult
		check(t, m.step("exec", func() (err error) { r, err = c.Exec("/bin/sh", "-c", "echo $NAME; exit 3"); return err }))
		if want := (nodetest.ExecResult{Stdout: name + "\n", Code: 3}); r != want {
			t.Errorf("exec in %s: %+v, want %+v", name, r, want)
		}
		wantLogs(t, c, name+" begins\n")
	}
	wantLeft(t, p)
	check(t, m.step("stop", p.StopAndRemove))
}

func start(t *testing.T, p *nodetest.Pod, m times, name string) (c *nodetest.Container) {
	t.Helper()
	check(t, m.step("container start", func() (err error) {
		c, err = p.Container(nodetest.ContainerOptions{Command: []string{"/bin/sh", "-c", "echo $NAME begins; sleep 1000"}, Env: map[string]string{"NAME": name}})
		return err
	}))
	return c
}

// wantLeft checks that Left shows everything there is of a running pod. Otherwise an
// empty Left would prove nothing.
func wantLeft(t *testing.T, p *nodetest.Pod) {
	t.Helper()
	left := strings.Join(p.Left(), "\n")
	for _, want := range []string{"containerd-shim-", "runsc-sandbox", "runsc-gofer", "/rootfs", p.Netns, "/run/containerd/s/", "/sys/fs/cgroup/", p.ID + "_sandbox", "io.containerd.grpc.v1.cri"} {
		if !strings.Contains(left, want) {
			t.Errorf("no %q is left of a running pod:\n%s", want, left)
		}
	}
}

// What a container is created with is what it has.
func containerOptions(t *testing.T, n *nodetest.Node) {
	p, err := n.RunPod(nodetest.GVisor, map[string]string{"fumehood.dev/pod": "passed on", "other.dev/pod": "not passed on"})
	check(t, err)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "file"), []byte("mounted\n"), 0o644))
	check(t, os.Chmod(dir, 0o755))
	c, err := p.Container(nodetest.ContainerOptions{
		Command:  []string{"/bin/sh", "-c", "exec 2>&1; id -u; pwd; touch /home/file || echo $ERROR; cat /mnt/file; exit 7"},
		Env:      map[string]string{"ERROR": "read-only"},
		Dir:      "/tmp",
		ReadOnly: true,
		User:     1000,
		Mounts:   []*cri.Mount{{HostPath: dir, ContainerPath: "/mnt", Readonly: true}},
	})
	check(t, err)
	status, err := c.Wait()
	check(t, err)
	if status.ExitCode != 7 {
		t.Errorf("status %v", status)
	}
	wantLogs(t, c, "1000\n/tmp\ntouch: /home/file: Read-only file system\nread-only\nmounted\n")
	check(t, c.StopAndRemove())
	c, err = p.Container(nodetest.ContainerOptions{Command: []string{"/bin/sleep", "1000"}, Annotations: map[string]string{"fumehood.dev/container": "passed on", "other.dev/container": "not passed on"}})
	check(t, err)
	wantAnnotations(t, n, p.ID, "fumehood.dev/pod")
	wantAnnotations(t, n, c.ID, "fumehood.dev/container", "fumehood.dev/pod")
	wantEnv(t, p, "NODETEST=1")
	check(t, p.StopAndRemove())
}

// wantAnnotations checks which of our annotations reached the shim.
func wantAnnotations(t *testing.T, n *nodetest.Node, id string, want ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Dir, "state/io.containerd.runtime.v2.task/k8s.io", id, "config.json"))
	check(t, err)
	var spec specs.Spec
	check(t, json.Unmarshal(text, &spec))
	got := slices.DeleteFunc(slices.Sorted(maps.Keys(spec.Annotations)), func(key string) bool {
		return !strings.HasPrefix(key, "fumehood.dev/") && !strings.HasPrefix(key, "other.dev/")
	})
	if !slices.Equal(got, want) {
		t.Errorf("annotations %q, want %q", got, want)
	}
}

// wantEnv checks that every shim of the pod has a variable.
func wantEnv(t *testing.T, p *nodetest.Pod, assignment string) {
	t.Helper()
	shims := 0
	for _, process := range p.Processes() {
		if strings.Contains(process.Command, "/containerd-shim-") {
			shims++
			env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", process.Pid))
			if check(t, err); !slices.Contains(strings.Split(string(env), "\x00"), assignment) {
				t.Errorf("a shim has no %s: %q", assignment, env)
			}
		}
	}
	if shims != 2 {
		t.Errorf("%d shims for a pod with one container, want 2", shims)
	}
}

// What cannot be started is an error, and leaves nothing.
func refusals(t *testing.T, n *nodetest.Node) {
	_, err := n.RunPod("unknown", nil)
	wantError(t, err, `no runtime for "unknown" is configured`)
	p, err := n.RunPod(nodetest.GVisor, nil)
	check(t, err)
	_, err = p.Container(nodetest.ContainerOptions{Image: "local.test/unknown:1", Command: []string{"/bin/true"}})
	wantError(t, err, "not found")
	missing, err := p.Container(nodetest.ContainerOptions{Command: []string{"/bin/missing"}})
	wantError(t, err, "/bin/missing")
	check(t, missing.StopAndRemove())
	c, err := p.Container(nodetest.ContainerOptions{Command: []string{"/bin/sleep", "1000"}})
	check(t, err)
	_, err = c.Exec("/bin/missing")
	wantError(t, err, "/bin/missing")
	check(t, p.StopAndRemove())
}

// Pods outlive a containerd that is killed, and the next one removes them.
func containerdKilled(t *testing.T, n *nodetest.Node) {
	p, err := n.RunPod(nodetest.GVisor, nil)
	check(t, err)
	c, err := p.Container(nodetest.ContainerOptions{Command: []string{"/bin/sleep", "1000"}})
	check(t, err)
	check(t, n.Kill(syscall.SIGKILL))
	wantLeft(t, p)
	check(t, n.Serve(t.Context()))
	r, err := c.Exec("/bin/echo", "still here")
	check(t, err)
	if want := (nodetest.ExecResult{Stdout: "still here\n"}); r != want {
		t.Errorf("exec after containerd was killed: %+v", r)
	}
	check(t, p.StopAndRemove())
}

// wantLogs waits for what the container prints.
func wantLogs(t *testing.T, c *nodetest.Container, want string) {
	t.Helper()
	var got string
	var err error
	for end := time.Now().Add(10 * time.Second); got != want && err == nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		got, err = c.Logs()
	}
	if err != nil || got != want {
		t.Errorf("log %q (%v), want %q", got, err, want)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
