// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package task_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/fumehood/fumehood/internal/agents/claims"
	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/internal/agents/session/remote/certtest"
	"github.com/fumehood/fumehood/k8s/internal/clustertest"
	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
	"github.com/fumehood/fumehood/k8s/internal/sandboxtest"
)

const claimsRole = `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "fumehood-claims"}, "rules": [
{"apiGroups": ["extensions.agents.x-k8s.io"], "resources": ["sandboxclaims"], "verbs": ["create", "delete", "get", "list", "watch"]},
{"apiGroups": ["agents.x-k8s.io"], "resources": ["sandboxes"], "verbs": ["get"]}]}
---
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "fumehood-claims"},
"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "fumehood-claims"}, "subjects": [{"kind": "User", "name": "fumehood-claims", "apiGroup": "rbac.authorization.k8s.io"}]}`

const sessionPool = `{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate", "metadata": {"name": "session"}, "spec": {"podTemplate": {
"metadata": {"annotations": {"fumehood.dev/session": "true"}}, "spec": {"runtimeClassName": "fumehood", "automountServiceAccountToken": false, "restartPolicy": "Never", "terminationGracePeriodSeconds": 15,
"containers": [{"name": "session", "image": "` + nodetest.Tools + `", "imagePullPolicy": "Never", "command": ["session"]}]}}}}
---
{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "metadata": {"name": "session"}, "spec": {"replicas": 3, "sandboxTemplateRef": {"name": "session"}}}`

const e2bKey = "0123456789abcdef0123456789abcdef"

// A service is fumehood serve in a Kubernetes of one node, beside fumehood-claims.
type service struct {
	kube
	socket, address, state string
}

// newService starts everything. The controller of sandboxes is the tests' own.
func newService(t *testing.T) service {
	k, nodes, clients := newSessions(t, nodetest.Options{})
	k.must(clusterObjects(t), "apply", "-f", "-")
	k.must(claimsRole, "create", "-f", "-")
	s := service{kube: k, address: "127.0.0.1:8932", state: t.TempDir()}
	s.serve(nodes, clients)
	s.pool()
	return s
}

// newSessions starts a Kubernetes whose node accepts sessions of the clients.
func newSessions(t *testing.T, options nodetest.Options) (k kube, nodes, clients certtest.Authority) {
	o := newOperator(t)
	clustertest.Build(t)
	options.Env = []string{node.Variable + "=" + o.file}
	n := nodetest.Start(t, options)
	check(t, n.LoadTools(t.Context()))
	nodes, clients = certtest.NewAuthority(t), certtest.NewAuthority(t)
	o.configure(n.Runsc.Path, "default = \""+o.bundle(conformanceRules()...)+"\"\n"+o.sessions(nodes, clients))
	k = kube{clustertest.Start(t, n), t, o, n}
	k.must("", "label", "node", clustertest.NodeName, "fumehood.dev/node=true")
	k.must(sandboxtest.CRDs(), "create", "-f", "-")
	k.must("", "wait", "--for=condition=Established", "--timeout=50s", "crd", "--all")
	return k, nodes, clients
}

// pool runs the controller until the test ends, and waits until it has filled a pool of sessions.
func (k kube) pool() {
	k.t.Helper()
	k.must(sessionPool, "create", "-f", "-")
	k.control()
	k.wait("node node node", "get", "sandboxes", "-o=jsonpath={.items[*].status.nodeName}")
}

// control runs the controller until the test ends.
func (k kube) control() {
	config, err := k.Client()
	check(k.t, err)
	client, err := dynamic.NewForConfig(config)
	check(k.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sandboxtest.Run(ctx, client, "default") }()
	k.t.Cleanup(func() { cancel(); <-done })
}

// serve starts both programs.
func (s *service) serve(nodes, clients certtest.Authority) {
	dir := s.t.TempDir()
	clients.Write(s.t, dir, remote.ClientName("default"), nodes)
	s.socket = filepath.Join(dir, "claims.sock")
	check(s.t, os.WriteFile(filepath.Join(dir, "claims.toml"), []byte("owner = \"fumehood-0\"\n[tenants.default]\npool = \"session\"\nclaims = 20\n"), 0o600))
	check(s.t, os.WriteFile(filepath.Join(dir, "keys"), []byte(e2bKey+" tenant=default\n"), 0o600))
	identity, err := s.Identity("claims", "fumehood-claims")
	check(s.t, err)
	for name, source := range map[string][2]string{"fumehood-claims": {".", "../../cmd/fumehood-claims"}, "fumehood": {"../../..", "./cmd/fumehood"}} {
		check(s.t, nodetest.Run(s.t.Context(), source[0], nil, "go", "build", "-buildvcs=false", "-o", filepath.Join(dir, name), source[1]))
	}
	check(s.t, s.Run("fumehood-claims", filepath.Join(dir, "fumehood-claims"), "-config", filepath.Join(dir, "claims.toml"), "-socket", s.socket, "-kubeconfig", identity))
	check(s.t, s.Run("serve", "env", "XDG_STATE_HOME="+s.state, filepath.Join(dir, "fumehood"), "serve", "--backend", "kubernetes", "--e2b", s.address, "--keys-file", filepath.Join(dir, "keys"), "--claims", s.socket, "--certificates", dir))
}

// e2b sends a request of E2B's SDK to the server, and returns the answer.
func (s service) e2b(method, path, body string, header map[string]string) (status int, text string) {
	s.t.Helper()
	near := s.node.Forward(s.t, s.address)
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+near+path, strings.NewReader(body))
	check(s.t, err)
	r.Host = s.address
	r.Header.Set("X-API-KEY", e2bKey)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil && time.Now().Before(end) { // the server starts
			r.Body = io.NopCloser(strings.NewReader(body))
			continue
		}
		check(s.t, err)
		defer answer.Body.Close()
		data, err := io.ReadAll(answer.Body)
		check(s.t, err)
		return answer.StatusCode, string(data)
	}
}

// sandbox creates one, and returns its ID and the headers for its code.
func (s service) sandbox() (id string, header map[string]string) {
	s.t.Helper()
	status, text := s.e2b("POST", "/sandboxes", `{"templateID": "base", "timeout": 120}`, nil)
	var made struct {
		ID      string `json:"sandboxID"`
		Traffic string `json:"trafficAccessToken"`
	}
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusCreated {
		s.t.Fatalf("%d, %s, %v", status, text, err)
	}
	return made.ID, map[string]string{"E2b-Sandbox-Id": made.ID, "E2b-Sandbox-Port": "49999", "E2B-Traffic-Access-Token": made.Traffic}
}

// end ends a sandbox.
func (s service) end(id string) {
	s.t.Helper()
	if status, text := s.e2b("DELETE", "/sandboxes/"+id, "", nil); status != http.StatusNoContent {
		s.t.Errorf("%d, %s", status, text)
	}
}

// decides runs code in a sandbox, where policy refuses a program.
func (s service) decides(header map[string]string) {
	s.t.Helper()
	if status, text := s.e2b("POST", "/execute", `{"code": "print(6 * 7)"}`, header); status != http.StatusOK || !strings.Contains(text, `"42\n"`) {
		s.t.Errorf("%d, %s", status, text)
	}
	if _, text := s.e2b("POST", "/execute", `{"code": "import subprocess\nsubprocess.run(['factor', '6'])"}`, header); !strings.Contains(text, "PermissionError") {
		s.t.Errorf("a program that policy refuses: %s", text)
	}
}

// A program that uses E2B's wire has its code run in a pod that fumehood-claims has claimed; policy
// decides it there, the log comes back, and the pod goes.
func TestClusterSessions(t *testing.T) {
	s := newService(t)
	begin := time.Now()
	id, header := s.sandbox()
	t.Logf("a sandbox after %v", time.Since(begin).Round(time.Millisecond))
	s.decides(header)
	var events bytes.Buffer
	claimed := s.must("", "get", "sandboxclaims", "-o=jsonpath={.items[0].status.sandbox.name}")
	if err := s.Stream(t.Context(), "", &events, "exec", claimed, "--", "id"); err == nil || !strings.Contains(events.String(), "session.exec") {
		t.Errorf("exec: %s, %v", events.String(), err)
	}
	s.end(id)
	logs, err := filepath.Glob(s.state + "/fumehood/pods/*.jsonl")
	if err != nil || len(logs) != 1 {
		t.Errorf("logs of the server: %q, %v", logs, err)
	}
	s.o.verify(`"totals":`)
	s.empty()
	s.measured()
	s.restarted()
}

// empty waits until there is no claim.
func (s service) empty() {
	s.t.Helper()
	s.wait("No resources found", "get", "sandboxclaims")
}

// measured says how long claims take, of pods that wait.
func (s service) measured() {
	client := claims.New(s.t.Context(), s.socket)
	var took []time.Duration
	for range 10 {
		time.Sleep(4 * time.Second) // the pool is filled again
		begin := time.Now()
		claim, err := client.Claim(s.t.Context(), claims.Request{Tenant: "default", Lifetime: time.Minute})
		check(s.t, err)
		took = append(took, time.Since(begin))
		check(s.t, client.Release(s.t.Context(), claim))
	}
	slices.Sort(took)
	s.t.Logf("claims of waiting pods: median %v, longest %v", took[5].Round(time.Millisecond), took[9].Round(time.Millisecond))
	s.empty()
}

// restarted kills fumehood-claims while a sandbox is open, which goes on, and then the server, whose
// claims end.
func (s service) restarted() {
	s.t.Helper()
	_, header := s.sandbox()
	check(s.t, s.Kill("fumehood-claims"))
	if _, text := s.e2b("POST", "/execute", `{"code": "print(1)"}`, header); !strings.Contains(text, `"1\n"`) {
		s.t.Errorf("without fumehood-claims: %s", text)
	}
	second, _ := s.sandbox()
	s.end(second)
	check(s.t, s.Kill("serve"))
	s.orphaned()
}

// orphaned waits until the claims of a server that was killed end, and verifies the log of the last one.
func (s service) orphaned() {
	s.t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	_, err := s.Wait(ctx, "No resources found", "get", "sandboxclaims")
	check(s.t, err)
	s.t.Logf("the claims of a server that was killed ended after %v", time.Since(begin).Round(time.Second))
	s.o.verify(`"totals":`)
}
