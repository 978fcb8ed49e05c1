// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package clustertest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/k8s/internal/clustertest"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
	"github.com/fumehood/fumehood/k8s/internal/sandboxtest"
)

// An API server takes all objects. The server's pods pass the level restricted, and its service
// accounts can do what they need, and no more.
func TestChart(t *testing.T) {
	clustertest.Build(t)
	c := clustertest.StartServer(t, nodetest.StartBare(t))
	must := func(input string, args ...string) string {
		t.Helper()
		out, err := c.Kubectl(input, args...)
		check(t, err)
		return out
	}
	must("", "create", "namespace", "team-a")
	must("", "create", "namespace", "team-b")
	must(sandboxtest.CRDs(), "create", "-f", "-")
	must("", "wait", "--for=condition=Established", "--timeout=50s", "crd", "--all")
	must("", "create", "namespace", "fumehood-node")
	must("", "create", "namespace", "fumehood-serve")
	must("", "label", "namespace", "fumehood-serve", "pod-security.kubernetes.io/enforce=restricted")
	// A cluster without the Prometheus operator does not know these.
	unwatched := []string{"--set", "metrics.serviceMonitor=false,metrics.prometheusRule=false"}
	nodes, serving := append(nodes, unwatched...), append(serving, unwatched...)
	text := render(t, nodes...) + render(t, serving...)
	must(text, "apply", "--validate=strict", "-f", "-")
	must(render(t, append(nodes, "--set", "node.remove=true")...), "apply", "--validate=strict", "-f", "-")
	must(render(t, append(serving, "--set", "serve.replicas=3")...), "apply", "--validate=strict", "-f", "-")

	templates := 0
	for _, o := range objects(t, text) {
		if o["kind"] != "StatefulSet" && o["kind"] != "DaemonSet" {
			continue
		}
		templates++
		namespace := o["metadata"].(object)["namespace"].(string)
		template := o["spec"].(object)["template"].(object)
		pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "tried", "namespace": namespace}, "spec": template["spec"]}
		data, err := json.Marshal(pod)
		check(t, err)
		must(string(data), "create", "--dry-run=server", "-f", "-")
	}
	if templates != 2 {
		t.Errorf("%d templates of pods", templates)
	}
	hostile := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root", "namespace": "fumehood-serve"}, "spec": {"serviceAccountName": "serve", "containers": [{"name": "c", "image": "i"}]}}`
	if out, err := c.Kubectl(hostile, "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(out, "restricted") {
		t.Errorf("a pod that is not restricted: %s, %v", out, err)
	}
	for _, test := range []struct{ account, may, what string }{
		{"fumehood-serve:serve", "yes", "create sandboxclaims.extensions.agents.x-k8s.io -n team-a"}, {"fumehood-serve:serve", "yes", "delete sandboxclaims.extensions.agents.x-k8s.io -n team-a"},
		{"fumehood-serve:serve", "yes", "list sandboxclaims.extensions.agents.x-k8s.io -n team-a"}, {"fumehood-serve:serve", "yes", "get sandboxclaims.extensions.agents.x-k8s.io -n team-a"}, {"fumehood-serve:serve", "yes", "watch sandboxclaims.extensions.agents.x-k8s.io -n team-a"},
		{"fumehood-serve:serve", "yes", "get sandboxes.agents.x-k8s.io -n team-a"}, {"fumehood-serve:serve", "no", "create sandboxclaims.extensions.agents.x-k8s.io -n team-b"},
		{"fumehood-serve:serve", "no", "update sandboxclaims.extensions.agents.x-k8s.io -n team-a"}, {"fumehood-serve:serve", "no", "create sandboxtemplates.extensions.agents.x-k8s.io -n team-a"},
		{"fumehood-serve:serve", "no", "create pods -n team-a"}, {"fumehood-serve:serve", "no", "create pods/exec -n team-a"}, {"fumehood-serve:serve", "no", "get secrets -n team-a"},
		{"fumehood-serve:serve", "no", "get secrets -n fumehood-serve"}, {"fumehood-serve:serve", "no", "delete sandboxes.agents.x-k8s.io -n team-a"},
		{"fumehood-node:node-agent", "yes", "create events -n team-a"}, {"fumehood-node:node-agent", "yes", "patch events -n team-a"}, {"fumehood-node:node-agent", "no", "list events -n team-a"},
		{"fumehood-node:node-agent", "no", "get pods -n team-a"}, {"fumehood-node:node-agent", "no", "get secrets -n fumehood-node"}, {"fumehood-node:node-agent", "no", "get nodes"},
	} {
		args := append([]string{"auth", "can-i", "--as=system:serviceaccount:" + test.account}, strings.Fields(test.what)...)
		if out, _ := c.Kubectl("", args...); !strings.HasPrefix(lastLine(out), test.may) { // "no" is an exit code, too
			t.Errorf("%s may %s: %s", test.account, test.what, out)
		}
	}
}

// lastLine is that of what kubectl printed: warnings come first.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
