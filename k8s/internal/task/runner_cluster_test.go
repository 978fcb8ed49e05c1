// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package task_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fumehood/fumehood/internal/author/doctor"
	"github.com/fumehood/fumehood/k8s/internal/clustertest"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
)

// runPlan runs a command in a workspace where the runner has it.
const runPlan = `
mkdir -p /home/runner/_work/project
cd /home/runner/_work/project
echo '{"schema": "fumehood.plan/v1", "proposals": [{"id": "kernel", "run": "uname -r", "why": "Which kernel is it?"}]}' > plan.json
exec fumehood run --plan plan.json --workspace . --json 2>/dev/null`

// A job in a pod of the Actions Runner Controller, as docs/CONTAINER.md has it, can run commands. In the
// pod without its privileges, or without one of its volumes, it cannot, and fumehood says why. The
// controller and the runner's program are not part of it.
func TestClusterRunner(t *testing.T) {
	clustertest.Build(t)
	n := nodetest.Start(t, nodetest.Options{Runc: true})
	k := kube{clustertest.Start(t, n), t, newOperator(t), n}
	k.loadProgram()
	const kernel = "4.19.0-gvisor\n"
	for _, test := range []struct {
		name   string
		change func(container object)
		doctor string // what it says that is missing
		run    string
	}{
		{"documented", func(object) {}, "", kernel},
		{"unprivileged", func(c object) { delete(c, "securityContext") }, "root: start the container with the options of docs/CONTAINER.md", "sandbox.start: run fumehood doctor"},
		{"no-work", func(c object) { without(c, "work") }, "", "sandbox.start: put it on a volume or another disk"},
		{"no-tmp", func(c object) { without(c, "tmp") }, "sandbox: put it on a volume or another disk", kernel},
	} {
		spec := runnerSpec(t)
		test.change(spec["containers"].([]any)[0].(object))
		k.runner(test.name, spec)
		if checks, result := k.examine(test.name), k.plan(test.name); checks != test.doctor || result != test.run {
			t.Errorf("%s: %q, want %q; %q, want %q", test.name, checks, test.doctor, result, test.run)
		}
	}
}

// without takes a volume from a container.
func without(container object, volume string) {
	container["volumeMounts"] = slices.DeleteFunc(container["volumeMounts"].([]any), func(m any) bool { return m.(object)["name"] == volume })
}

// examine returns the first thing that fumehood doctor misses in a pod, with how to fix it; "" if commands
// can run there.
func (k kube) examine(pod string) string {
	k.t.Helper()
	out, err := k.Kubectl("", "exec", pod, "--", "fumehood", "doctor", "--json")
	var checks []doctor.Check
	check(k.t, json.NewDecoder(strings.NewReader(out)).Decode(&checks))
	i := slices.IndexFunc(checks, func(c doctor.Check) bool { return c.State == doctor.Missing })
	if ready := i < 0; ready != (err == nil) {
		k.t.Errorf("%s: %v, %+v", pod, err, checks)
	} else if ready {
		return ""
	}
	return checks[i].Name + ": " + checks[i].Fix
}

// plan runs a plan in a pod, and returns what its command printed, or the report's error.
func (k kube) plan(pod string) string {
	k.t.Helper()
	out, _ := k.Kubectl("", "exec", pod, "--", "sh", "-c", runPlan) // 3: commands cannot run
	var report struct {
		Records []struct {
			Result struct{ Stdout struct{ Head []byte } }
		}
		Error *struct{ Code, Hint string }
	}
	check(k.t, json.NewDecoder(strings.NewReader(out)).Decode(&report))
	if report.Error != nil {
		return report.Error.Code + ": " + report.Error.Hint
	}
	return string(report.Records[0].Result.Stdout.Head)
}

// runner starts a pod that runs until it is deleted.
func (k kube) runner(name string, spec object) {
	k.t.Helper()
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name}, "spec": spec})
	check(k.t, err)
	k.must(string(text), "create", "-f", "-")
	k.wait("Running", "get", "pod", name, "-o=jsonpath={.status.phase}")
}

// runnerSpec returns the runner's pod in docs/CONTAINER.md, with the tests' image.
func runnerSpec(t *testing.T) object {
	t.Helper()
	text, err := os.ReadFile("../../../docs/CONTAINER.md")
	check(t, err)
	found := regexp.MustCompile("(?ms)^```yml\n(template:\n.*?)^```$").FindSubmatch(text)
	if found == nil {
		t.Fatal("there is no template")
	}
	var values struct{ Template struct{ Spec object } }
	check(t, utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(string(found[1])), 4096).Decode(&values))
	container := values.Template.Spec["containers"].([]any)[0].(object)
	container["image"], container["imagePullPolicy"], container["command"] = programImage, "Never", []string{"sleep", "3600"}
	values.Template.Spec["terminationGracePeriodSeconds"] = 1
	return values.Template.Spec
}
