// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package clustertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fumehood/fumehood/internal/agents/claims"
	"github.com/fumehood/fumehood/k8s/internal/clustertest"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
	"github.com/fumehood/fumehood/k8s/internal/sandboxtest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The sizes of TestClusterScale. Those with "each" are multiplied by the number in sizeVariable.
const (
	sizeVariable = "FUMEHOOD_TEST_SCALE"
	eachNodes    = 100
	eachClaims   = 1000 // at least, that succeed
	eachPool     = 4    // replicas of a tenant's pool
	eachQuota    = 30   // claims of a tenant at a time, all of which are made at once
	eachLeaving  = 3    // claims of the holder that goes away

	tenants     = 5
	holders     = 4
	workers     = 100 // that claim at the same time
	perNode     = 2   // pods
	warmRounds  = 5   // in which the pools are emptied
	killRounds  = 2   // in which each program is killed
	longestHold = 500 * time.Millisecond
	phaseTime   = 10 * time.Minute // for a phase, on a busy machine
)

// programs are those that are killed, in this order. kwok is the last one: it leaves pods pending whose
// status the API server could not write while etcd was away, until it starts again.
var programs = []string{"fumehood-claims", controllerName, "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd", "kwok"}

// controllerName is that of this test's binary when it runs the controller of sandboxes, with the
// configuration that controllerVariable names.
const (
	controllerName     = "sandboxtest"
	controllerVariable = "SANDBOXTEST_KUBECONFIG"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(controllerVariable); path != "" {
		fmt.Fprintln(os.Stderr, control(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// control runs the controllers of all tenants.
func control(path string) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	ended := make(chan error)
	for i := range tenants {
		go func() { ended <- sandboxtest.Run(context.Background(), client, tenant(i)) }()
	}
	return <-ended
}

func tenant(i int) string { return fmt.Sprintf("team-%d", i%tenants) }

// A trial is a cluster of simulated nodes, and what the claims in it came to.
type trial struct {
	*clustertest.Cluster
	t        *testing.T
	size     int
	socket   string
	clients  []*claims.Client // holders
	objects  metadata.Interface
	dynamics dynamic.Interface

	mu      sync.Mutex
	held    map[string]string          // addresses of the pods of live claims, by the claim's name
	given   map[string]string          // names of claims by address, of all time
	took    map[string][]time.Duration // by phase
	failed  map[string]int             // by code
	checked int                        // comparisons of held with the cluster
	memory  map[string]int             // KiB at most, by program
}

// TestClusterScale makes claims in a cluster of simulated nodes while each program is killed. No pod
// is given to two claims, none is lost, and nothing is left.
func TestClusterScale(t *testing.T) {
	r := newTrial(t)
	r.log("started")
	stop := r.watch()
	for range warmRounds {
		r.full()
		r.many(tenants*eachPool*r.size, 20, "warm", nil)
	}
	r.log("warm")
	r.alive()
	r.log("alive")
	r.churn()
	r.log("churn")
	stop()
	r.drained()
	r.log("drained")
	r.report()
}

func newTrial(t *testing.T) *trial {
	r := &trial{t: t, size: 1, held: map[string]string{}, given: map[string]string{}, took: map[string][]time.Duration{}, failed: map[string]int{}, memory: map[string]int{}}
	if text := os.Getenv(sizeVariable); text != "" {
		size, err := strconv.Atoi(text)
		check(t, err)
		r.size = size
	}
	clustertest.Build(t)
	r.Cluster = clustertest.StartServerWith(t, nodetest.StartBare(t), clustertest.Flags{
		"kube-apiserver":          {"--feature-gates=WatchList=false"}, // which the distribution's etcd cannot serve, and kwok does without only if it is off
		"kube-scheduler":          {"--kube-api-qps=500", "--kube-api-burst=1000"},
		"kube-controller-manager": {"--kube-api-qps=500", "--kube-api-burst=1000", "--node-monitor-grace-period=10m"},
	})
	config, err := r.Client()
	check(t, err)
	config.QPS = -1
	r.objects, err = metadata.NewForConfig(config)
	check(t, err)
	r.dynamics, err = dynamic.NewForConfig(config)
	check(t, err)
	r.start()
	return r
}

// must runs kubectl.
func (r *trial) must(input string, args ...string) {
	r.t.Helper()
	_, err := r.Kubectl(input, args...)
	check(r.t, err)
}

// pool is a tenant's.
const pool = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %[1]q}}
---
{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate", "metadata": {"name": "session", "namespace": %[1]q}, "spec": {"podTemplate": {
"spec": {"automountServiceAccountToken": false, "restartPolicy": "Never", "containers": [{"name": "session", "image": "none.test/none:1", "resources": {"requests": {"cpu": "1"}}}]}}}}
---
{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "metadata": {"name": "session", "namespace": %[1]q}, "spec": {"replicas": %[2]d, "sandboxTemplateRef": {"name": "session"}}}
---
`

// start starts everything that is not yet running, with the roles and the configuration of the chart.
func (r *trial) start() {
	ctx, cancel := context.WithTimeout(r.t.Context(), phaseTime)
	defer cancel()
	r.must(sandboxtest.CRDs(), "create", "-f", "-")
	r.must("", "wait", "--for=condition=Established", "--timeout=50s", "crd", "--all")
	args, pools := append(serving, "--set", "serve.tenants.team-a=null"), ""
	for i := range tenants {
		args = append(args, "--set", fmt.Sprintf("serve.tenants.%[1]s.pool=session,serve.tenants.%[1]s.claims=%[2]d", tenant(i), eachQuota*r.size))
		pools += fmt.Sprintf(pool, tenant(i), eachPool*r.size)
	}
	r.must(pools, "create", "-f", "-")
	check(r.t, r.StartControl(ctx))
	check(r.t, r.Simulate(ctx, eachNodes*r.size, perNode))
	identity, err := r.Identity("controller", "controller", "system:masters")
	check(r.t, err)
	check(r.t, r.Run(controllerName, "env", controllerVariable+"="+identity, os.Args[0]))
	r.serve(ctx, objects(r.t, render(r.t, args...)))
}

// serve starts fumehood-claims with the chart's configuration and as its service account, which has
// the roles of the chart.
func (r *trial) serve(ctx context.Context, chart []object) {
	dir := r.t.TempDir()
	for _, o := range chart {
		name, _ := o["metadata"].(object)["name"].(string)
		switch {
		case o["kind"] == "Role" || o["kind"] == "RoleBinding":
			text, err := json.Marshal(o)
			check(r.t, err)
			r.must(string(text), "create", "-f", "-")
		case o["kind"] == "ConfigMap" && name == "claims":
			check(r.t, os.WriteFile(filepath.Join(dir, "claims.toml"), []byte(o["data"].(object)["claims.toml"].(string)), 0o600))
		}
	}
	identity, err := r.Identity("claims", "system:serviceaccount:fumehood-serve:serve", "system:serviceaccounts", "system:serviceaccounts:fumehood-serve")
	check(r.t, err)
	check(r.t, nodetest.Run(ctx, "../..", nil, "go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "fumehood-claims"), "./cmd/fumehood-claims"))
	r.socket = filepath.Join(dir, "claims.sock")
	check(r.t, r.Run("fumehood-claims", filepath.Join(dir, "fumehood-claims"), "-config", filepath.Join(dir, "claims.toml"), "-socket", r.socket, "-kubeconfig", identity, "-owner", "serve-0"))
	for range holders {
		r.clients = append(r.clients, claims.New(r.t.Context(), r.socket))
	}
}

// claim claims a pod of a tenant and compares it with all others.
func (r *trial) claim(client *claims.Client, tenant, phase string) (c claims.Claim, err error) {
	begin := time.Now()
	c, err = client.Claim(r.t.Context(), claims.Request{Tenant: tenant, Lifetime: time.Hour})
	took := time.Since(begin)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.refused(err)
		return c, err
	}
	if other := r.given[c.Address]; other != "" {
		r.t.Errorf("the pod %s is given to the claims %s and %s", c.Address, other, c.Name)
	}
	r.given[c.Address], r.held[c.Name] = c.Name, c.Address
	r.took[phase] = append(r.took[phase], took)
	return c, nil
}

// refused counts a claim without a pod. The lock is held.
func (r *trial) refused(err error) {
	f := proposal.FailureOf(err)
	if f == nil || f.Code == "" {
		r.t.Errorf("an error without a code: %v", err)
		return
	}
	if r.failed[f.Code]++; r.failed[f.Code] == 1 {
		r.t.Logf("the first %s: %v", f.Code, err)
	}
}

// release releases a claim. It is not held from now on.
func (r *trial) release(client *claims.Client, c claims.Claim) {
	r.mu.Lock()
	delete(r.held, c.Name)
	r.mu.Unlock()
	if err := client.Release(r.t.Context(), c); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused(fmt.Errorf("release: %w", err))
	}
}

// many makes n claims, some of them at the same time. Those that fail are made again. Each is held
// until done is closed; nil releases each at once.
func (r *trial) many(n, parallel int, phase string, done chan struct{}) (released *sync.WaitGroup) {
	end := time.Now().Add(phaseTime)
	slots, released := make(chan struct{}, parallel), &sync.WaitGroup{}
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			client := r.clients[i%holders]
			c, err := r.claim(client, tenant(i), phase)
			for ; err != nil; c, err = r.claim(client, tenant(i), phase) {
				if time.Now().After(end) {
					r.t.Errorf("no claim after %v: %v", phaseTime, err)
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			released.Go(func() {
				if done != nil {
					<-done
				}
				r.release(client, c)
			})
		})
	}
	all.Wait()
	return released
}

// alive has all claims of all tenants at the same time: one more is refused.
func (r *trial) alive() {
	done := make(chan struct{})
	released := r.many(tenants*eachQuota*r.size, workers, "alive", done)
	nodes := map[string]bool{}
	list, err := r.dynamics.Resource(pods).List(r.t.Context(), metav1.ListOptions{})
	check(r.t, err)
	for _, p := range list.Items {
		if node, has, _ := unstructured.NestedString(p.Object, "spec", "nodeName"); has {
			nodes[node] = true
		}
	}
	r.t.Logf("%d claims are alive; %d pods are on %d nodes", len(r.held), len(list.Items), len(nodes))
	for i := range tenants {
		if _, err := r.claim(r.clients[0], tenant(i), "over"); err == nil || proposal.FailureOf(err).Code != "claims.quota" {
			r.t.Errorf("a claim over the quota: %v", err)
		}
	}
	close(done)
	released.Wait()
}

// churn makes claims, and kills each program meanwhile. It ends when there have been enough.
func (r *trial) churn() {
	ctx, cancel := context.WithCancel(r.t.Context())
	r.leave()
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := r.claim(r.clients[i%holders], tenant(rand.IntN(tenants)), "churn")
				time.Sleep(rand.N(longestHold))
				if err == nil {
					r.release(r.clients[i%holders], c)
				}
			}
		})
	}
	kills := slices.Repeat(programs, killRounds)
	for i, name := range kills {
		if !r.t.Failed() {
			r.kill(name, (eachClaims*r.size-r.made())/(len(kills)-i+1))
		}
	}
	r.until("churn", func() string {
		return missing(eachClaims*r.size, r.made())
	})
	cancel()
	all.Wait()
}

// leave has claims of a holder that goes away without a word.
func (r *trial) leave() {
	ctx, cancel := context.WithCancel(r.t.Context())
	client := claims.New(ctx, r.socket)
	for i := range eachLeaving * r.size {
		if c, err := r.claim(client, tenant(i), "leaving"); err == nil {
			r.mu.Lock()
			delete(r.held, c.Name)
			r.mu.Unlock()
		}
	}
	cancel()
}

// made is how many claims have succeeded.
func (r *trial) made() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.given)
}

func missing(want, got int) string {
	if got >= want {
		return ""
	}
	return fmt.Sprintf("%d of %d", got, want)
}

// kill waits for some claims, kills a program and waits until claims succeed again.
func (r *trial) kill(name string, claims int) {
	want := r.made() + max(claims, workers/2)
	r.until("claims before "+name+" is killed", func() string { return missing(want, r.made()) })
	r.sample()
	check(r.t, r.Kill(name))
	begin, before := time.Now(), r.made()
	ctx, cancel := context.WithTimeout(r.t.Context(), phaseTime)
	defer cancel()
	_, err := r.Wait(ctx, "ok", "get", "--raw", "/readyz")
	check(r.t, err)
	// Those that were on their way may still be answered: the pools' are not enough.
	want = before + workers + tenants*eachPool*r.size
	r.until("claims after "+name+" is killed", func() string { return missing(want, r.made()) })
	r.t.Logf("%s was killed after %d claims; %d later ones took %v", name, before, r.made()-before, time.Since(begin).Round(time.Second))
}

// until waits until f returns an empty text.
func (r *trial) until(what string, f func() string) {
	r.t.Helper()
	for end := time.Now().Add(phaseTime); ; time.Sleep(100 * time.Millisecond) {
		text := f()
		if text == "" {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s: %s after %v", what, text, phaseTime)
		}
	}
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// list returns the metadata of all objects of a kind, by UID.
func (r *trial) list(resource schema.GroupVersionResource) (map[string]*metav1.PartialObjectMetadata, error) {
	list, err := r.objects.Resource(resource).List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]*metav1.PartialObjectMetadata{}
	for i := range list.Items {
		all[string(list.Items[i].UID)] = &list.Items[i]
	}
	return all, nil
}

// full waits until all pods of all pools are ready, and nothing else exists.
func (r *trial) full() {
	r.t.Helper()
	want := tenants * eachPool * r.size
	r.until("full pools", func() string {
		list, err := r.dynamics.Resource(sandboxtest.Sandboxes).List(r.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		ready := 0
		for _, s := range list.Items {
			if _, is, _ := unstructured.NestedString(s.Object, "status", "nodeName"); is && len(s.GetOwnerReferences()) == 0 {
				ready++
			}
		}
		if ready != want || len(list.Items) != want {
			return fmt.Sprintf("%d sandboxes, %d of %d are ready", len(list.Items), ready, want)
		}
		return ""
	})
}

// watch compares what is held with the cluster until it is stopped.
func (r *trial) watch() (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil {
			r.compare()
			select {
			case <-ctx.Done():
			case <-time.After(3 * time.Second):
			}
		}
	})
	return func() { cancel(); ended.Wait() }
}

// compare fails the test if a claim that is held does not have its pod, or a tenant has more claims
// than its quota. It does nothing while the API server does not answer.
func (r *trial) compare() {
	before := r.holding()
	found, errClaims := r.list(sandboxtest.Claims)
	sandboxes, errSandboxes := r.list(sandboxtest.Sandboxes)
	running, errPods := r.list(pods)
	after := r.holding()
	if errClaims != nil || errSandboxes != nil || errPods != nil {
		return
	}
	for name, address := range before {
		if _, still := after[name]; !still {
			continue
		}
		pod := running[uid(address)]
		sandbox := sandboxes[owner(pod)]
		if claim := found[owner(sandbox)]; claim == nil || claim.Name != name {
			r.t.Errorf("the claim %s has lost its pod %s: pod %v, sandbox %v, claim %v", name, address, pod != nil, sandbox != nil, claim != nil)
		}
	}
	r.quotas(found)
	r.mu.Lock()
	r.checked++
	r.mu.Unlock()
}

func (r *trial) holding() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.held)
}

// uid is that of the pod with an address.
func uid(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	b := a.As16()
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func owner(o *metav1.PartialObjectMetadata) string {
	if o == nil {
		return ""
	}
	if ref := metav1.GetControllerOf(o); ref != nil {
		return string(ref.UID)
	}
	return ""
}

func (r *trial) quotas(found map[string]*metav1.PartialObjectMetadata) {
	count := map[string]int{}
	for _, c := range found {
		if count[c.Namespace]++; count[c.Namespace] == eachQuota*r.size+1 {
			r.t.Errorf("the tenant %s has more than %d claims", c.Namespace, eachQuota*r.size)
		}
	}
}

// drained waits until nothing is left but the pools, whose pods all have an owner.
func (r *trial) drained() {
	r.until("claims that are left", func() string {
		found, err := r.list(sandboxtest.Claims)
		if err != nil || len(found) > 0 {
			return fmt.Sprint(slices.Collect(maps.Keys(found)), err)
		}
		return ""
	})
	r.full()
	sandboxes, err := r.list(sandboxtest.Sandboxes)
	check(r.t, err)
	r.until("pods that are left", func() string {
		running, err := r.list(pods)
		for _, p := range running {
			if sandboxes[owner(p)] == nil {
				return fmt.Sprintf("%s/%s of no sandbox", p.Namespace, p.Name)
			}
		}
		if err != nil || len(running) != len(sandboxes) {
			return fmt.Sprintf("%d pods of %d sandboxes, %v", len(running), len(sandboxes), err)
		}
		return ""
	})
}

// sample reads the memory of all programs.
func (r *trial) sample() {
	for _, name := range programs {
		kib, err := r.Memory(name)
		check(r.t, err)
		r.memory[name] = max(r.memory[name], kib)
	}
}

func (r *trial) log(phase string) {
	r.sample()
	load, _ := os.ReadFile("/proc/loadavg")
	r.t.Logf("%s %s: %d claims, load %s", time.Now().Format(time.TimeOnly), phase, r.made(), strings.Fields(string(load))[0])
}

// report logs the figures.
func (r *trial) report() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []time.Duration
	for _, phase := range slices.Sorted(maps.Keys(r.took)) {
		r.times(phase, r.took[phase])
		all = append(all, r.took[phase]...)
	}
	r.times("all", all)
	r.t.Logf("refused: %v; compared %d times", r.failed, r.checked)
	for _, name := range programs {
		r.t.Logf("memory of %s: %d MiB at most", name, r.memory[name]/1024)
	}
}

func (r *trial) times(phase string, took []time.Duration) {
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(time.Millisecond)
	}
	r.t.Logf("%s: %d claims, p50 %v, p99 %v, max %v", phase, len(took), at(0.5), at(0.99), at(1))
}
