// SPDX-License-Identifier: Apache-2.0

//go:build node

package clustertest_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fumehood/fumehood/k8s/internal/clustertest"
)

const digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// find returns the one object of a kind.
func find(t *testing.T, list []object, kind string) (found object) {
	t.Helper()
	for _, o := range list {
		if o["kind"] == kind {
			if found != nil {
				t.Fatalf("two objects are a %s", kind)
			}
			found = o
		}
	}
	if found == nil {
		t.Fatalf("no object is a %s", kind)
	}
	return found
}

// The chart passes helm lint, and all its objects are valid for Kubernetes' own types, without unknown
// or doubled fields, and in the release's namespace or a tenant's.
func TestChartObjects(t *testing.T) {
	helm, err := clustertest.Helm(t.Context())
	check(t, err)
	if out, err := exec.Command(helm, "lint", "--strict", deploy+"chart").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for namespace, args := range map[string][]string{"fumehood-node": nodes, "fumehood-serve": serving} {
		for _, o := range objects(t, render(t, args...)) {
			text, err := json.Marshal(o)
			check(t, err)
			if !strings.HasPrefix(o["apiVersion"].(string), "monitoring.coreos.com/") {
				if _, _, err := strict.Decode(text, nil, nil); err != nil {
					t.Errorf("%v: %s", err, text)
				}
			}
			metadata := o["metadata"].(object)
			if in := metadata["namespace"]; in != nil && in != namespace && in != "team-a" {
				t.Errorf("%s %s is in the namespace %s", o["kind"], metadata["name"], in)
			}
		}
	}
}

// Without values, and with those that are invalid, there is nothing, and the reason names the value.
func TestChartRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"node.image is required":        nil,
		"serve.claimsImage is required": append(serving, "--set", "serve.claimsImage="),
		"Install two releases":          append(serving, "--set", "node.enabled=true"),
		"'imgae' not allowed":           append(nodes, "--set", "node.imgae=x"),
		"at '': additional":             append(nodes, "--set", "nodes.image=x"),
		"at '/node/image'":              {"--set", "node.image=registry.example/node:1.0.0"},
		"at '/serve/port'":              append(serving, "--set", "serve.port=0,serve.clients[0].podSelector.x=y"),
		"at '/serve/tenants/team-b'":    append(serving, "--set", "serve.tenants.team-b.pool=p"),
		"at '/serve/extraContainers/0'": append(serving, "--set", "serve.extraContainers[0].name=proxy"),
	} {
		if out, err := clustertest.Template(t.Context(), deploy+"chart", args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\n%s", want, err, out)
		}
	}
}

// Any text as any value or name is refused, or is text: the objects are those of harmless values.
func TestChartHostileValues(t *testing.T) {
	const hostile = "x'\"\\}]\n---\nkind: Pod # {{ .Release.Name }}\n- a: &b"
	text, err := os.ReadFile(deploy + "chart/values.yaml")
	check(t, err)
	var trials []object // values with one hostile text each
	var visit func(v any, in func(any) object)
	visit = func(v any, in func(any) object) {
		switch v := v.(type) {
		case object:
			trials = append(trials, in(object{hostile: "x"}), in(object{"more": hostile}))
			for name, inner := range v {
				visit(inner, func(v any) object { return in(object{name: v}) })
			}
		case []any:
			trials = append(trials, in([]any{hostile}), in([]any{object{"more": hostile}}))
		default:
			trials = append(trials, in(hostile))
		}
	}
	values := objects(t, string(text))[0]
	values["serve"].(object)["tenants"] = object{"team-a": object{"pool": "session", "claims": 5}}
	visit(values, func(v any) object { return v.(object) })
	want := map[string]map[string]int{}
	accepted := 0
	for i, trial := range trials {
		args := nodes
		if trial["serve"] != nil {
			args = serving
		}
		if want[args[0]] == nil {
			want[args[0]] = names(objects(t, render(t, args...)))
		}
		data, err := json.Marshal(trial)
		check(t, err)
		file := filepath.Join(t.TempDir(), "values.yaml")
		check(t, os.WriteFile(file, data, 0o600))
		out, err := clustertest.Template(t.Context(), deploy+"chart", append(args, "--values", file)...)
		if err != nil {
			continue
		}
		accepted++
		if got := names(objects(t, out)); !reflect.DeepEqual(got, want[args[0]]) {
			t.Errorf("%d: %s: objects %v, want %v", i, data, got, want[args[0]])
		}
	}
	if t.Logf("%d of %d accepted", accepted, len(trials)); accepted == 0 {
		t.Error("every text is refused, also arguments")
	}
}

// names returns the objects by kind and name, with how many they are.
func names(list []object) map[string]int {
	found := map[string]int{}
	for _, o := range list {
		metadata, _ := o["metadata"].(object)
		name, _ := metadata["name"].(string)
		kind, _ := o["kind"].(string)
		found[kind+" "+name]++
	}
	return found
}

// Images are those of the values, probes reach an address that has nothing but health, and only pods that
// were named may connect.
func TestChartParts(t *testing.T) {
	for namespace, args := range map[string][]string{"fumehood-node": nodes, "fumehood-serve": serving} {
		list := objects(t, render(t, args...))
		kind, name := "DaemonSet", "agent"
		if namespace == "fumehood-serve" {
			kind, name = "StatefulSet", "serve"
		}
		pod := find(t, list, kind)["spec"].(object)["template"].(object)["spec"].(object)
		for _, c := range append(pod["containers"].([]any), pod["initContainers"].([]any)...) {
			c := c.(object)
			if !strings.HasSuffix(c["image"].(string), digest) {
				t.Errorf("image %s", c["image"])
			}
			probe, _ := json.Marshal(c["readinessProbe"])
			if (c["name"] == name) != (string(probe) == `{"httpGet":{"path":"/healthz","port":"metrics"}}`) {
				t.Errorf("%s: probe %s", c["name"], probe)
			}
		}
		policy := find(t, list, "NetworkPolicy")["spec"].(object)
		if policy["ingress"] != nil || !reflect.DeepEqual(policy["policyTypes"], []any{"Ingress", "Egress"}) {
			t.Errorf("%s: %v", namespace, policy)
		}
		open := objects(t, render(t, append(args, "--set", "metrics.clients[0].podSelector.matchLabels.app=prometheus")...))
		text, err := json.Marshal(find(t, open, "NetworkPolicy")["spec"].(object)["ingress"])
		if err != nil || string(text) != `[{"from":[{"podSelector":{"matchLabels":{"app":"prometheus"}}}],"ports":[{"port":9464,"protocol":"TCP"}]}]` {
			t.Errorf("%s: %s, %v", namespace, text, err)
		}
		monitor := find(t, list, "ServiceMonitor")
		if labels := monitor["metadata"].(object)["labels"].(object); labels["release"] != "prometheus" {
			t.Errorf("labels %v", labels)
		}
		found := 0
		for _, o := range list {
			if o["kind"] == "Service" && containsAll(o["metadata"].(object)["labels"], monitor["spec"].(object)["selector"].(object)["matchLabels"]) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: the ServiceMonitor selects %d Services", namespace, found)
		}
		rules, err := os.ReadFile(deploy + "chart/files/alerts.yaml")
		check(t, err)
		if got := find(t, list, "PrometheusRule")["spec"]; !reflect.DeepEqual(got, objects(t, string(rules))[0]) {
			t.Errorf("rules %v", got)
		}
	}
}

func containsAll(labels, want any) bool {
	all := labels.(object)
	for name, value := range want.(object) {
		if all[name] != value {
			return false
		}
	}
	return true
}

// The objects in docs/KUBERNETES.md are the chart's, without what Helm and its releases need.
func TestChartDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/KUBERNETES.md")
	check(t, err)
	found := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(page, -1)
	if len(found) != 1 {
		t.Fatalf("%d blocks of objects", len(found))
	}
	made := map[string]object{}
	for _, o := range objects(t, render(t, nodes...)) {
		metadata := o["metadata"].(object)
		maps.DeleteFunc(metadata, func(name string, _ any) bool { return name == "labels" || name == "annotations" })
		made[o["kind"].(string)] = o
	}
	for _, o := range objects(t, string(found[0][1])) {
		if kind := o["kind"].(string); !reflect.DeepEqual(o, made[kind]) {
			t.Errorf("the page's %s is %v, and the chart's %v", kind, o, made[kind])
		}
	}
}
