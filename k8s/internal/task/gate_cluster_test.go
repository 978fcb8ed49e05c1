// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package task_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/k8s/internal/clustertest"
	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
	"github.com/fumehood/fumehood/k8s/internal/spare"
	"github.com/fumehood/fumehood/pkg/audit"
)

// A kube is a Kubernetes of one node with its operator.
type kube struct {
	*clustertest.Cluster
	t    testing.TB
	o    *operator
	node *nodetest.Node
}

func newKube(t testing.TB, start func(testing.TB, *nodetest.Node) *clustertest.Cluster) kube {
	clustertest.Build(t)
	o := newOperator(t)
	n := nodetest.Start(t, nodetest.Options{Env: []string{node.Variable + "=" + o.file}})
	o.configure(n.Runsc.Path, "default = \""+o.bundle(noID, noDate)+"\"")
	k := kube{start(t, n), t, o, n}
	_, _ = k.Kubectl("", "label", "node", clustertest.NodeName, "fumehood.dev/node=true") // unless there is only a server
	k.must(clusterObjects(t), "apply", "-f", "-")
	k.must(`{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}, "handler": "gvisor"}`, "apply", "-f", "-")
	return k
}

// clusterObjects returns the chart's objects of the cluster, and no others.
func clusterObjects(t testing.TB) string {
	t.Helper()
	text, err := clustertest.Template(t.Context(), chart, "--set", "node.enabled=false")
	check(t, err)
	return text
}

// must runs kubectl, which has to succeed.
func (k kube) must(input string, args ...string) string {
	k.t.Helper()
	out, err := k.Kubectl(input, args...)
	check(k.t, err)
	return out
}

// wait runs kubectl until it prints want.
func (k kube) wait(want string, args ...string) string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	out, err := k.Wait(ctx, want, args...)
	check(k.t, err)
	return out
}

// in returns k for a test of k's.
func (k kube) in(t testing.TB) kube {
	k.t = t
	return k
}

type object = map[string]any

// pod returns a pod of a runtime class and with a policy, or without if they are empty.
func pod(name, class, policy string, command ...string) string {
	spec := object{"containers": []object{{
		"name": "c", "image": nodetest.Busybox, "imagePullPolicy": "Never", "command": command,
		"securityContext": object{"readOnlyRootFilesystem": true},
	}}, "terminationGracePeriodSeconds": 1}
	if class != "" {
		spec["runtimeClassName"] = class
	}
	annotations := object{}
	if policy != "" {
		annotations[node.Annotation] = policy
	}
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "annotations": annotations}, "spec": spec})
	if err != nil {
		panic("task_test: internal error: " + err.Error())
	}
	return string(text)
}

// running starts a pod that starts a program each second, with the policy of the node's default.
func (k kube) running(name, class string) {
	k.t.Helper()
	k.must(pod(name, class, "", forever.Command...), "create", "-f", "-")
	k.wait("Running", "get", "pod", name, "-o=jsonpath={.status.phase}")
}

func (k kube) remove(name string) {
	k.t.Helper()
	k.must("", "delete", "pod", name, "--timeout=50s")
}

// A kubelet runs pods with a gate, on one node.
func TestCluster(t *testing.T) {
	k := newKube(t, clustertest.Start)
	t.Log(k.must("", "get", "nodes", "-o", "wide"))
	for _, test := range []struct {
		name string
		do   func(kube)
	}{
		{"admission", admission}, {"pod", onePod}, {"command", refusedCommand}, {"policy", refusedPolicy}, {"later", refusedLater}, {"gate killed", gateOfPodKilled}, {"gate stalled", gateOfPodStalled},
		{"containerd killed", containerdOfNodeKilled}, {"drained", drained}, {"agent", agentOfNode},
	} {
		t.Run(test.name, func(t *testing.T) { test.do(k.in(t)) })
	}
}

// The API server accepts the objects of the page, and then only pods of the class where it is bound.
func TestClusterAdmission(t *testing.T) {
	k := newKube(t, clustertest.StartServer)
	k.must("", "create", "serviceaccount", "default")
	admission(k)
}

func admission(k kube) {
	dry := []string{"create", "--namespace=bound", "--dry-run=server", "-f", "-"}
	k.must("", "create", "namespace", "bound")
	_, _ = k.Kubectl("", "create", "serviceaccount", "default", "--namespace=bound") // unless the controller manager does
	k.must("", "label", "namespace", "bound", "fumehood.dev/gate=required")
	for _, class := range []string{"", "gvisor"} {
		k.refused("pods of this namespace run with the RuntimeClass fumehood", pod("other", class, "", "/bin/true"), dry...)
		k.must(pod("other", class, "", "/bin/true"), "create", "--namespace=default", "--dry-run=server", "-f", "-")
	}
	k.must(pod("gated", "fumehood", "", "/bin/true"), dry...)
}

// refused runs kubectl until it fails for the reason want: policies of the API server take effect
// after a while.
func (k kube) refused(want, input string, args ...string) {
	k.t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if _, err = k.Kubectl(input, args...); err != nil && strings.Contains(err.Error(), want) {
			return
		}
	}
	wantError(k.t, err, want)
}

// A pod runs, kubectl exec asks policy, and with the pod its log ends.
func onePod(k kube) {
	k.running("one", "fumehood")
	if out := k.must("", "exec", "one", "--", "/bin/echo", "hello"); out != "hello\n" {
		k.t.Errorf("exec: %q", out)
	}
	for command, want := range map[string]string{"/bin/date": "there is no time", "/bin/id": "id is not for pods"} {
		_, err := k.Kubectl("", "exec", "one", "--", command)
		wantError(k.t, err, want)
	}
	k.wait("on\n", "logs", "one")
	k.remove("one")
	k.o.verify("end")
}

// A pod whose command policy refuses says so in its events.
func refusedCommand(k kube) {
	k.must(pod("command", "fumehood", "", "/bin/date"), "create", "-f", "-")
	k.wait("there is no time", "describe", "pod", "command")
	k.remove("command")
}

// A pod that names a policy which its namespace may not have does not run.
func refusedPolicy(k kube) {
	k.must(pod("policy", "fumehood", "sha256:"+strings.Repeat("1", 64), forever.Command...), "create", "-f", "-")
	k.wait(`pods of the namespace "default" may not have the policy`, "describe", "pod", "policy")
	if phase := k.must("", "get", "pod", "policy", "-o=jsonpath={.status.phase}"); phase != "Pending" {
		k.t.Errorf("phase %q", phase)
	}
	k.remove("policy")
}

// What a kubelet starts later in a pod that runs is refused, too: a probe, and a container for debugging.
func refusedLater(k kube) {
	const probe = `{"spec": {"containers": [{"name": "c", "readinessProbe": {"periodSeconds": 1, "exec": {"command": ["/bin/id"]}}}]}}`
	merged := k.must(pod("later", "fumehood", "", forever.Command...), "patch", "--local", "-f", "-", "--patch="+probe, "-o=json")
	k.must(merged, "create", "-f", "-")
	k.wait("id is not for pods", "describe", "pod", "later")
	k.must("", "debug", "later", "--image="+nodetest.Busybox, "--image-pull-policy=Never", "--container=debug", "--", "/bin/date")
	k.wait("there is no time", "describe", "pod", "later")
	if ready := k.must("", "get", "pod", "later", "-o=jsonpath={.status.containerStatuses[0].ready}"); ready != "false" {
		k.t.Errorf("ready: %s", ready)
	}
	k.remove("later")
}

// A pod whose gate is killed is started again by the kubelet, with a gate.
func gateOfPodKilled(k kube) {
	k.running("killed", "fumehood")
	check(k.t, syscall.Kill(k.gate("killed"), syscall.SIGKILL))
	k.wait("1 true", "get", "pod", "killed", "-o=jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}")
	_, err := k.Kubectl("", "exec", "killed", "--", "/bin/date")
	wantError(k.t, err, "there is no time")
	if len(k.logs("killed")) != 2 {
		k.t.Errorf("logs %q", k.logs("killed"))
	}
	k.remove("killed")
}

// While a gate does not answer, nothing starts in its pod, from inside or outside.
func gateOfPodStalled(k kube) {
	k.running("stalled", "fumehood")
	pid := k.gate("stalled")
	check(k.t, syscall.Kill(pid, syscall.SIGSTOP))
	time.Sleep(3 * time.Second)
	before := k.must("", "logs", "stalled")
	ctx, cancel := context.WithTimeout(k.t.Context(), 3*time.Second)
	defer cancel()
	var out bytes.Buffer
	if err := k.Stream(ctx, "", &out, "exec", "stalled", "--", "/bin/echo", "started"); err == nil || strings.Contains(out.String(), "started") {
		k.t.Errorf("a command starts: %v, %s", err, &out)
	}
	if after := k.must("", "logs", "stalled"); before != after {
		k.t.Errorf("a program starts: %q, %q", before, after)
	}
	check(k.t, syscall.Kill(pid, syscall.SIGCONT))
	k.remove("stalled")
}

// A pod and its gate do not end with containerd.
func containerdOfNodeKilled(k kube) {
	k.running("on", "fumehood")
	check(k.t, k.node.Kill(syscall.SIGKILL))
	check(k.t, k.node.Serve(k.t.Context()))
	k.wait("hello\n", "exec", "on", "--", "/bin/echo", "hello")
	_, err := k.Kubectl("", "exec", "on", "--", "/bin/date")
	wantError(k.t, err, "there is no time")
	if count := k.must("", "get", "pod", "on", "-o=jsonpath={.status.containerStatuses[0].restartCount}"); count != "0" {
		k.t.Errorf("%s restarts", count)
	}
	k.remove("on")
	k.o.verify(`{"error":null,"totals":`)
}

// The pods of a node that is drained end, with sealed logs, and leave nothing.
func drained(k kube) {
	for _, name := range []string{"first", "second"} {
		k.running(name, "fumehood")
	}
	k.must("", "drain", clustertest.NodeName, "--force", "--ignore-daemonsets", "--timeout=50s")
	k.must("", "uncordon", clustertest.NodeName)
	for _, name := range []string{"first", "second"} {
		for _, log := range k.logs(name) {
			f, err := audit.OpenFile(log)
			check(k.t, err)
			found, err := audit.Verify(f, audit.Trust{})
			f.Close()
			if err != nil || found.State != audit.Sealed {
				k.t.Errorf("%s: %+v, %v", log, found, err)
			}
		}
	}
	left := []nodetest.Process{}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		left = slices.DeleteFunc(k.node.Processes(), func(p nodetest.Process) bool {
			return spare.Is(p.Command) || !strings.Contains(p.Command, "/containerd-shim-") && !strings.Contains(p.Command, "runsc")
		})
		if len(left) == 0 {
			return
		}
	}
	k.t.Errorf("left: %+v", left)
}

// The agent shows in events of a pod what was refused in it, and what became of its log, with no
// right but to create events.
func agentOfNode(k kube) {
	agent, err := clustertest.Template(k.t.Context(), chart, nodeSpace, "--set", "cluster.enabled=false,node.image=registry.example/node@sha256:"+strings.Repeat("0", 64))
	check(k.t, err)
	k.must("", "create", "namespace", "fumehood-node")
	k.must(agent, "apply", "-f", "-") // no node has its label
	const user = "system:serviceaccount:fumehood-node:node-agent"
	for right, want := range map[string]string{"create events": "yes", "patch events": "yes", "list events": "no", "get secrets": "no", "get pods": "no", "create pods": "no"} {
		out, _ := k.Kubectl("", append(append([]string{"auth", "can-i"}, strings.Fields(right)...), "--as="+user, "--all-namespaces")...)
		if strings.TrimSpace(out) != want && !strings.HasPrefix(out, want+"\n") {
			k.t.Errorf("%s: %q", right, out)
		}
	}
	program, at := k.o.dir+"/fumehood-node-agent", nodetest.Address+":9464"
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../../cmd/fumehood-node-agent").CombinedOutput()
	if err != nil {
		k.t.Fatalf("%v: %s", err, out)
	}
	config, err := k.Identity("agent", user)
	check(k.t, err)
	check(k.t, k.Run("agent", program, "-kubeconfig", config, "-logs", k.o.dir+"/logs", "-node", clustertest.NodeName, "-listen", at))
	k.running("watched", "fumehood")
	if _, err := k.Kubectl("", "exec", "watched", "--", "/bin/sh", "-c", "env -i /bin/id"); err == nil {
		k.t.Error("a refused program runs")
	}
	k.wait(`ProgramRefused fumehood policy refused a program that "/bin/busybox" started: "/bin/id": id is not for pods (test.id)`,
		"get", "events", "--field-selector=involvedObject.name=watched", `-o=jsonpath={range .items[*]}{.reason} {.source.component} {.message}{"\n"}{end}`)
	k.wait("ProgramRefused", "describe", "pod", "watched")
	shows := func(page string) bool {
		return strings.Contains(page, "fumehood_refusals_total{kind=\"program\"} 1\n") && strings.Contains(page, "\nfumehood_sandboxes 1\n")
	}
	page := k.fetch("http://" + at + "/metrics")
	for end := time.Now().Add(30 * time.Second); !shows(page) && time.Now().Before(end); page = k.fetch("http://" + at + "/metrics") {
		time.Sleep(200 * time.Millisecond) // pods of other tests count until their logs are settled
	}
	if !shows(page) {
		k.t.Error(page)
	}
	check(k.t, syscall.Kill(k.gate("watched"), syscall.SIGKILL))
	k.wait("LogIncomplete", "describe", "pod", "watched")
	k.remove("watched")
}

// fetch returns what is at an address of the node.
func (k kube) fetch(url string) string {
	k.t.Helper()
	var page bytes.Buffer
	curl := exec.Command("curl", "-sS", url)
	curl.Stdout, curl.Stderr = &page, &page
	ended, err := k.node.StartIn(curl)
	check(k.t, err)
	check(k.t, <-ended)
	return page.String()
}

// logs returns the files of a pod's logs, which have the names of its sandboxes.
func (k kube) logs(pod string) []string {
	files, err := filepath.Glob(k.o.dir + "/logs/default_" + pod + "_*/*.jsonl")
	check(k.t, err)
	return files
}

// gate returns the shim that has a pod's gate.
func (k kube) gate(pod string) int {
	k.t.Helper()
	for _, log := range k.logs(pod) {
		for _, p := range k.node.Processes() {
			if strings.Contains(p.Command, "/containerd-shim-") && strings.Contains(p.Command, "-id "+strings.TrimSuffix(filepath.Base(log), ".jsonl")) {
				return p.Pid
			}
		}
	}
	k.t.Fatalf("no gate: %q", k.logs(pod))
	return 0
}

// BenchmarkCluster starts pods with gVisor's shim and with the gate, one after the other: the time
// from a pod's creation, as a client of the API server sees it, until it runs.
func BenchmarkCluster(b *testing.B) {
	k := newKube(b, clustertest.Start)
	phases := k.phases(b)
	spent, rounds := map[string]time.Duration{}, 0
	for b.Loop() {
		rounds++
		for _, class := range []string{nodetest.GVisor, nodetest.Fumehood} {
			name := fmt.Sprint(class, rounds)
			k.must(pod(name, class, "", forever.Command...), "create", "-f", "-")
			created := seen(b, phases, name+" Pending")
			spent[class] += seen(b, phases, name+" Running").Sub(created)
			k.remove(name)
		}
	}
	for class, total := range spent {
		b.ReportMetric(float64(total.Milliseconds())/float64(rounds), class+"-ms")
	}
}

// An event is that a pod is in a phase.
type event struct {
	line string // NAME PHASE
	at   time.Time
}

// phases returns what a watch of all pods prints.
func (k kube) phases(b *testing.B) chan event {
	r, w := io.Pipe()
	go func() {
		err := k.Stream(b.Context(), "", w, "get", "pods", "--watch", `-o=jsonpath={.metadata.name} {.status.phase}{"\n"}`)
		w.CloseWithError(err)
	}()
	events := make(chan event, 1000)
	go func() {
		defer close(events)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			events <- event{lines.Text(), time.Now()}
		}
	}()
	return events
}

// seen returns when line came.
func seen(b *testing.B, events chan event, line string) time.Time {
	b.Helper()
	for e := range events {
		if e.line == line {
			return e.at
		}
	}
	b.Fatalf("%q does not come", line)
	return time.Time{}
}
