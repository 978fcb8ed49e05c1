// SPDX-License-Identifier: Apache-2.0

//go:build nightly && cluster

package main

import (
	"path/filepath"
	"testing"
	"time"
)

// podChecks are tests of the shim's module, on the host of most clusters: cgroup v2, with and without systemd
// as the driver. The emulator needs minutes for them.
var podChecks = []check{
	{step: podStep("cgroupfs"), want: []string{"--- PASS: TestLimits/cgroupfs/memory ", "--- PASS: TestLimits/cgroupfs/processes ", "--- PASS: TestLimits/cgroupfs/session "}},
	{step: podStep("systemd"), want: []string{"--- PASS: TestLimits/systemd/memory ", "--- PASS: TestLimits/systemd/processes ", "--- PASS: TestLimits/systemd/session "}},
}

func podStep(driver string) step {
	return step{driver, []string{"env", "HOME=/root", "FUMEHOOD_TEST_NODE=/opt/node", "/opt/fumehood/task.test", "-test.v", "-test.run", "^TestLimits$/^" + driver + "$"}}
}

// TestNightlyGuestPods runs pods with limits where TestNightlyGuest runs commands.
func TestNightlyGuestPods(t *testing.T) {
	var steps []step
	for _, c := range podChecks {
		steps = append(steps, c.step)
	}
	g := newGuest(t, "amd64")
	g.more = g.node
	outcomes := g.boot(20*time.Minute, steps)
	for _, c := range podChecks {
		t.Run(c.Name, func(t *testing.T) { c.verify(t, outcomes[c.Name]) })
	}
}

// node adds what a node of Kubernetes needs, and a program that has its tests.
func (g *guest) node(tree string) {
	g.Helper()
	const shim = "../../k8s"
	links := g.TempDir()
	g.do("go", "-C", shim, "run", "./internal/nodetest/programs", links)
	g.do("cp", "-rL", links, filepath.Join(tree, "node"))
	g.do("env", "CGO_ENABLED=0", "GOARCH="+g.arch, "go", "-C", shim, "test", "-c", "-tags", "node limits", "-o", filepath.Join(tree, "fumehood", "task.test"), "./internal/task")
}
