// SPDX-License-Identifier: Apache-2.0

//go:build node && limits

package task_test

import (
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/fumehood/fumehood/internal/agents/session/remote/certtest"
	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const podMemory = 256 << 20

// limited is a node whose pods have cgroups, as on a node of Kubernetes.
type limited struct {
	*sessions
	driver nodetest.Driver
}

// A pod's limits are those of its cgroup, in which its sandbox is. A pod that exceeds them ends, with a sealed
// log and nothing left, and no other does.
func TestLimits(t *testing.T) {
	o := newOperator(t)
	n := nodetest.Start(t, nodetest.Options{Env: []string{node.Variable + "=" + o.file}, Config: map[string]any{"runsc_config": map[string]any{"platform": "systrap"}}})
	s := &sessions{operator: o, node: n, nodes: certtest.NewAuthority(t), clients: certtest.NewAuthority(t), digest: o.bundle(noDate)}
	o.configure(n.Runsc.Path, "default = \""+s.digest+"\"\n"+o.sessions(s.nodes, s.clients))
	for _, driver := range nodetest.Drivers() {
		for name, do := range map[string]func(*testing.T, limited){"memory": memoryLimit, "processes": processLimit, "session": sessionLimit} {
			t.Run(string(driver)+"/"+name, func(t *testing.T) {
				o.t = t
				do(t, limited{s, driver})
				o.allSealed()
				if left := n.Left(); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		}
	}
}

// pod starts a pod with limits and a container.
func (l limited) pod(t *testing.T, limits *specs.LinuxResources, annotations map[string]string, o nodetest.ContainerOptions) (nodetest.PodCgroup, *nodetest.Pod, *nodetest.Container) {
	t.Helper()
	group := l.node.PodCgroup(t, l.driver, limits)
	p, err := l.node.RunPodIn(group, nodetest.Fumehood, annotations)
	check(t, err)
	c, err := p.Container(o)
	check(t, err)
	return group, p, c
}

// wantInside wants a pod that runs to have its sandbox in its cgroup, or the process that has it.
func wantInside(t *testing.T, group nodetest.PodCgroup, p *nodetest.Pod) {
	t.Helper()
	sandboxes := 0
	for _, process := range p.Processes() {
		if !strings.HasPrefix(process.Command, "runsc-") && !strings.Contains(process.Command, " session-host ") {
			continue // the shim's
		}
		sandboxes++
		if holds, err := group.Holds(process.Pid); err != nil || !holds {
			t.Errorf("in the pod's cgroup: %v, %v: %s", holds, err, process.Command)
		}
	}
	if sandboxes == 0 {
		t.Errorf("no sandbox: %+v", p.Processes())
	}
}

// exceeds wants a pod to end that exceeds its limits, and another to go on. It returns why Kubernetes
// says that the pod's container has ended.
func (l limited) exceeds(t *testing.T, limits *specs.LinuxResources, text string) string {
	t.Helper()
	group, other, beside := l.pod(t, limits, nil, forever)
	wantInside(t, group, other)
	_, p, c := l.pod(t, limits, nil, nodetest.ContainerOptions{ReadOnly: true, Command: []string{"/bin/sh", "-c", text}})
	ended, err := c.Wait()
	check(t, err)
	if _, err := c.Exec("/bin/echo", "hello"); err == nil || ended.ExitCode == 0 {
		t.Errorf("the pod runs after its end: %+v, %v", ended, err)
	}
	wantExec(t, beside, "hello\n", 0, "/bin/echo", "hello")
	_, err = beside.Exec("/bin/date")
	wantError(t, err, "there is no time")
	check(t, p.StopAndRemove())
	check(t, other.StopAndRemove())
	return ended.Reason
}

func memory(limit int64) *specs.LinuxResources {
	return &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &limit}}
}

func memoryLimit(t *testing.T, l limited) {
	if reason := l.exceeds(t, memory(podMemory), "cat /dev/zero > /tmp/zeros"); reason != "OOMKilled" {
		t.Errorf("the reason is %q", reason)
	}
}

func processLimit(t *testing.T, l limited) {
	l.exceeds(t, &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: 150}}, "b() { b | b & }; b; sleep 60")
}

// A session's command that exceeds the memory of its container is killed, and the session goes on.
func sessionLimit(t *testing.T, l limited) {
	group, p, _ := l.pod(t, memory(4*podMemory), map[string]string{"fumehood.dev/session": "true"}, nodetest.ContainerOptions{Command: session.Command, Memory: podMemory + 64<<20})
	wantInside(t, group, p)
	opened, err := l.mine(t, p).Open(t.Context(), gate.SessionOptions{})
	check(t, err)
	for _, step := range []struct {
		proposal.Proposal
		want proposal.Status
	}{
		{proposal.Proposal{ID: "program", Argv: []string{"tail", "/dev/zero"}}, proposal.OutOfMemory},
		{proposal.Proposal{ID: "after", Argv: []string{"true"}}, proposal.Exited},
	} {
		r, err := opened.Do(t.Context(), step.Proposal)
		check(t, err)
		if r.Result == nil || r.Result.Status != step.want {
			t.Errorf("%s: %+v, %+v", step.ID, r.Decision, r.Result)
		}
	}
	_, err = opened.Close()
	check(t, err)
	check(t, p.StopAndRemove())
}

// allSealed checks all logs.
func (o *operator) allSealed() {
	o.t.Helper()
	for _, file := range o.logs() {
		o.sealed(file)
	}
}
