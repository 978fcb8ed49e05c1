// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	core "k8s.io/client-go/testing"

	"github.com/fumehood/fumehood/internal/agents/claims"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A cluster is client-go's fake API server, with a controller that gives each new claim a sandbox.
type cluster struct {
	t      testing.TB
	client *fake.FakeDynamicClient
	made   atomic.Int64
	// change changes a sandbox before it exists, and condition a claim's Ready condition; nil for no
	// change. Both may be called from another goroutine.
	change    func(sandbox *unstructured.Unstructured)
	condition func() (status, message string)
}

func newCluster(t testing.TB) *cluster {
	c := &cluster{t: t, client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{claimResource: "SandboxClaimList", sandboxResource: "SandboxList"})}
	c.client.PrependReactor("create", "sandboxclaims", func(a core.Action) (bool, runtime.Object, error) {
		u := a.(core.CreateAction).GetObject().(*unstructured.Unstructured)
		u.SetUID(types.UID("uid-of-" + u.GetName()))
		go c.control(u.DeepCopy())
		return false, nil, nil
	})
	return c
}

// control does with a claim what agent-sandbox's controller does.
func (c *cluster) control(claim *unstructured.Unstructured) {
	ctx := context.Background()
	n, controller := c.made.Add(1), true
	sandbox := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": sandboxResource.GroupVersion().String(), "kind": "Sandbox", "metadata": map[string]any{"name": fmt.Sprintf("sandbox-%d", n), "namespace": claim.GetNamespace()},
		"status": map[string]any{"podIPs": []any{fmt.Sprintf("10.0.0.%d", n)}, "nodeName": "node-1"},
	}}
	sandbox.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: claimResource.GroupVersion().String(), Kind: "SandboxClaim", Name: claim.GetName(), UID: claim.GetUID(), Controller: &controller}})
	if c.change != nil {
		c.change(sandbox)
	}
	status, message := "True", ""
	if c.condition != nil {
		status, message = c.condition()
	}
	if _, err := c.client.Resource(sandboxResource).Namespace(claim.GetNamespace()).Create(ctx, sandbox, metav1.CreateOptions{}); err != nil {
		c.t.Error(err)
	}
	claim.Object["status"] = map[string]any{"sandbox": map[string]any{"name": sandbox.GetName()}, "conditions": []any{map[string]any{"type": "Ready", "status": status, "message": message}}}
	for range 100 { // until the claim that is being created exists
		if _, err := c.client.Resource(claimResource).Namespace(claim.GetNamespace()).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// left returns the names of the claims that there are.
func (c *cluster) left() (names []string) {
	list, err := c.client.Resource(claimResource).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, u := range list.Items {
		names = append(names, u.GetName())
	}
	return names
}

// wants waits until there are n claims.
func (c *cluster) wants(n int) {
	c.t.Helper()
	for range 500 {
		if len(c.left()) == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Errorf("claims %q, want %d", c.left(), n)
}

// service returns a service with a holder.
func (c *cluster) service(ctx context.Context, grace time.Duration, holder string) *Service {
	c.t.Helper()
	s, err := New(ctx, Options{Client: c.client, Grace: grace, Warn: func(err error) { c.t.Error(err) }, Config: Config{
		Owner: "fumehood-0", Timeout: Duration{2 * time.Second}, Longest: Duration{time.Hour}, Tenants: map[string]Tenant{"team-a": {"pool", 2}, "team-b": {"pool", 1}}}})
	if err != nil {
		c.t.Fatal(err)
	}
	if holder != "" {
		go s.Hold(ctx, holder)
		for range 500 {
			s.mu.Lock()
			there := s.holders[holder] != nil && s.holders[holder].present > 0
			s.mu.Unlock()
			if there {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return s
}

var request = claims.Request{Tenant: "team-a", Lifetime: time.Minute}

func wantCode(t testing.TB, err error, code, text string) {
	t.Helper()
	if f := proposal.FailureOf(err); f == nil || f.Code != code || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want %s with %q", err, code, text)
	}
}

// Each claim has a sandbox of its own, and is what the configuration says.
func TestClaim(t *testing.T) {
	c := newCluster(t)
	s := c.service(t.Context(), time.Minute, "h")
	one, err := s.Claim(t.Context(), "h", "r", request)
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Claim(t.Context(), "h", "r", claims.Request{Tenant: "team-b", Lifetime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if one.Address == two.Address || one.Name == two.Name || one.Namespace != "team-a" || two.Namespace != "team-b" || one.Node != "node-1" {
		t.Errorf("%+v and %+v", one, two)
	}
	u, err := c.client.Resource(claimResource).Namespace("team-a").Get(t.Context(), one.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pool, _, _ := unstructured.NestedString(u.Object, "spec", "warmPoolRef", "name")
	text, _, _ := unstructured.NestedString(u.Object, "spec", "lifecycle", "shutdownTime")
	policy, _, _ := unstructured.NestedString(u.Object, "spec", "lifecycle", "shutdownPolicy")
	until, err := time.Parse(time.RFC3339, text)
	if pool != "pool" || policy != "Delete" || err != nil || time.Until(until) > time.Minute || time.Until(until) < 50*time.Second {
		t.Errorf("the claim is %v, %v", u.Object["spec"], err)
	}
	for range 2 {
		s.Release(one.Namespace, one.Name)
	}
	c.wants(1)
}

// After an outage the watch of client-go may be away for a minute when everything else is back.
func TestNoWatch(t *testing.T) {
	for name, test := range map[string]struct {
		control func(*cluster)
		code    string
	}{
		"ready": {func(*cluster) {}, ""},
		"deleted": {func(c *cluster) {
			c.condition = func() (string, string) { return "False", "no node has room" }
			c.change = func(u *unstructured.Unstructured) {
				go func() {
					time.Sleep(300 * time.Millisecond)
					_ = c.client.Resource(claimResource).Namespace(u.GetNamespace()).Delete(context.Background(), u.GetOwnerReferences()[0].Name, metav1.DeleteOptions{})
				}()
			}
		}, "claims.deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.client.PrependWatchReactor("sandboxclaims", func(core.Action) (bool, watch.Interface, error) { return true, watch.NewFake(), nil })
			test.control(c)
			_, err := c.service(t.Context(), time.Minute, "h").Claim(t.Context(), "h", "r", request)
			if test.code != "" {
				wantCode(t, err, test.code, "")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// An API server that starts refuses what it allows a moment later.
func TestStarting(t *testing.T) {
	c := newCluster(t)
	var refused atomic.Int64
	c.client.PrependReactor("create", "sandboxclaims", func(core.Action) (bool, runtime.Object, error) {
		err := apierrors.NewForbidden(claimResource.GroupResource(), "x", errors.New("cannot create resource"))
		return refused.Add(1) <= 3, nil, err
	})
	if _, err := c.service(t.Context(), time.Minute, "h").Claim(t.Context(), "h", "r", request); err != nil || refused.Load() != 4 {
		t.Errorf("%v after %d requests", err, refused.Load())
	}
}

// What is refused leaves no claim.
func TestRefused(t *testing.T) {
	forbidden := func(core.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(claimResource.GroupResource(), "x", errors.New("exceeded quota: sessions"))
	}
	for code, test := range map[string]struct {
		text    string
		cluster func(*cluster)
		request func(*claims.Request)
	}{
		"claims.tenant":   {text: `"team-c"`, request: func(r *claims.Request) { r.Tenant = "team-c" }},
		"claims.lifetime": {text: "2h", request: func(r *claims.Request) { r.Lifetime = 2 * time.Hour }},
		"claims.timeout":  {text: "no node has room", cluster: func(c *cluster) { c.condition = func() (string, string) { return "False", "no node has room" } }},
		"claims.cluster":  {text: "exceeded quota", cluster: func(c *cluster) { c.client.PrependReactor("create", "sandboxclaims", forbidden) }},
		"claims.sandbox": {text: "not the claim's", cluster: func(c *cluster) {
			c.change = func(u *unstructured.Unstructured) {
				owners := u.GetOwnerReferences()
				owners[0].UID = "another"
				u.SetOwnerReferences(owners)
			}
		}},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			c, r := newCluster(t), request
			if test.cluster != nil {
				test.cluster(c)
			}
			if test.request != nil {
				test.request(&r)
			}
			_, err := c.service(t.Context(), time.Minute, "h").Claim(t.Context(), "h", "r", r)
			wantCode(t, err, code, test.text)
			c.wants(0)
		})
	}
}

// A sandbox without an address or a node is none.
func TestHalfSandbox(t *testing.T) {
	for _, field := range []string{"podIPs", "nodeName"} {
		c := newCluster(t)
		c.change = func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "status", field) }
		_, err := c.service(t.Context(), time.Minute, "h").Claim(t.Context(), "h", "r", request)
		wantCode(t, err, "claims.sandbox", "no address or no node")
		c.wants(0)
	}
}

// A tenant has no more than its claims at a time, and each that ends makes room.
func TestQuota(t *testing.T) {
	c := newCluster(t)
	s := c.service(t.Context(), time.Minute, "h")
	var mu sync.Mutex
	var got []claims.Claim
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			claim, err := s.Claim(t.Context(), "h", "r", request)
			if err != nil {
				wantCode(t, err, "claims.quota", "maximum of 2")
				return
			}
			mu.Lock()
			got = append(got, claim)
			mu.Unlock()
		})
	}
	wait.Wait()
	if len(got) != 2 {
		t.Fatalf("%d claims, want 2", len(got))
	}
	s.Release(got[0].Namespace, got[0].Name)
	c.wants(1)
	for range 500 {
		if _, err := s.Claim(t.Context(), "h", "r", request); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a claim that has ended makes no room")
}

// A request whose client goes away leaves no claim, nor does one without a holder.
func TestGone(t *testing.T) {
	c := newCluster(t)
	c.condition = func() (string, string) { return "False", "pulling the image" }
	s := c.service(t.Context(), time.Minute, "h")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Claim(ctx, "h", "r", request)
	wantCode(t, err, "claims.timeout", "")
	c.wants(0)
	_, err = s.Claim(t.Context(), "another", "r", request)
	wantCode(t, err, "claims.holder", "")
	c.wants(0)
}

// An answer that was lost makes no second claim.
func TestLostAnswer(t *testing.T) {
	c := newCluster(t)
	var tries atomic.Int64
	c.client.PrependReactor("create", "sandboxclaims", func(a core.Action) (bool, runtime.Object, error) {
		if tries.Add(1) > 1 {
			return false, nil, nil
		}
		u := a.(core.CreateAction).GetObject().(*unstructured.Unstructured).DeepCopy()
		u.SetUID(types.UID("uid-of-" + u.GetName()))
		if err := c.client.Tracker().Create(claimResource, u, u.GetNamespace()); err != nil {
			t.Error(err)
		}
		go c.control(u)
		return true, nil, errors.New("connection reset by peer")
	})
	s := c.service(t.Context(), time.Minute, "h")
	if _, err := s.Claim(t.Context(), "h", "r", request); err != nil {
		t.Fatal(err)
	}
	if tries.Load() != 2 {
		t.Errorf("%d tries", tries.Load())
	}
	c.wants(1)
}

// A deletion that fails is tried until it succeeds, also if it is refused: an API server that starts
// does not know the roles yet.
func TestReleaseAgain(t *testing.T) {
	c := newCluster(t)
	s := c.service(t.Context(), time.Minute, "h")
	var warnings atomic.Int64
	s.o.Warn = func(error) { warnings.Add(1) }
	claim, err := s.Claim(t.Context(), "h", "r", request)
	if err != nil {
		t.Fatal(err)
	}
	failures := []error{apierrors.NewServiceUnavailable("starting"), apierrors.NewForbidden(claimResource.GroupResource(), claim.Name, nil), apierrors.NewForbidden(claimResource.GroupResource(), claim.Name, nil), apierrors.NewNotFound(claimResource.GroupResource(), claim.Name)}
	var tries atomic.Int64
	c.client.PrependReactor("delete", "sandboxclaims", func(core.Action) (bool, runtime.Object, error) {
		if n := tries.Add(1); n <= int64(len(failures)) {
			return true, nil, failures[n-1]
		}
		return false, nil, nil
	})
	<-s.Release(claim.Namespace, claim.Name)
	c.wants(0)
	if tries.Load() != 5 || warnings.Load() != 1 {
		t.Errorf("%d tries, %d warnings", tries.Load(), warnings.Load())
	}
}

// A claim whose creation takes longer than its deletion is deleted when it appears.
func TestLateClaim(t *testing.T) {
	c := newCluster(t)
	var late *unstructured.Unstructured
	c.client.PrependReactor("create", "sandboxclaims", func(a core.Action) (bool, runtime.Object, error) {
		late = a.(core.CreateAction).GetObject().(*unstructured.Unstructured).DeepCopy()
		return true, nil, apierrors.NewForbidden(claimResource.GroupResource(), late.GetName(), errors.New("too slow"))
	})
	s := c.service(t.Context(), time.Minute, "h")
	_, err := s.Claim(t.Context(), "h", "r", request)
	wantCode(t, err, "claims.cluster", "too slow")
	<-s.Withdraw("h", "r")
	if err := c.client.Tracker().Create(claimResource, late, late.GetNamespace()); err != nil {
		t.Fatal(err)
	}
	c.wants(0)
}

// Claims outlive this process. Those whose holder does not come back are deleted, and no others.
func TestRestart(t *testing.T) {
	c := newCluster(t)
	first, end := context.WithCancel(t.Context())
	s := c.service(first, time.Minute, "stays")
	go s.Hold(first, "goes")
	kept, err := s.Claim(first, "stays", "r", request)
	if err != nil {
		t.Fatal(err)
	}
	for range 500 { // the second holder may not be there yet
		if _, err = s.Claim(first, "goes", "r", request); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	end()
	c.wants(2)
	again := c.service(t.Context(), 300*time.Millisecond, "stays")
	c.wants(1)
	if left := c.left(); left[0] != kept.Name {
		t.Errorf("left %q, want %s", left, kept.Name)
	}
	again.Release(kept.Namespace, kept.Name)
	c.wants(0)
}

// Claims of another owner are left alone.
func TestOtherOwner(t *testing.T) {
	c := newCluster(t)
	s := c.service(t.Context(), time.Minute, "h")
	claim, err := s.Claim(t.Context(), "h", "r", request)
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(t.Context(), Options{Client: c.client, Grace: time.Millisecond, Warn: func(err error) { t.Error(err) },
		Config: Config{Owner: "fumehood-1", Timeout: Duration{time.Second}, Longest: Duration{time.Hour}, Tenants: map[string]Tenant{"team-a": {"pool", 2}}}})
	if err != nil {
		t.Fatal(err)
	}
	other.Release(claim.Namespace, claim.Name)
	time.Sleep(200 * time.Millisecond)
	c.wants(1)
}

// Through the socket it is the same, and the socket is this user's.
func TestSocket(t *testing.T) {
	c := newCluster(t)
	s := c.service(t.Context(), 300*time.Millisecond, "")
	socket := filepath.Join(t.TempDir(), "claims.sock")
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, socket) }()
	holding, away := context.WithCancel(t.Context())
	client := claims.New(holding, socket)
	claim, err := client.Claim(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := client.Claim(t.Context(), claims.Request{Tenant: "team-c", Lifetime: time.Minute}); proposal.FailureOf(err).Code != "claims.tenant" {
		t.Errorf("error %v", err)
	}
	if err := client.Release(t.Context(), claim); err != nil {
		t.Error(err)
	}
	c.wants(0)
	if _, err = client.Claim(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	away() // its claims are released
	c.wants(0)
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	_, err = client.Claim(t.Context(), request)
	wantCode(t, err, "claims.socket", "")
}

// A request that a killed process has not answered leaves nothing, nor does a release that it has not
// finished.
func TestKilled(t *testing.T) {
	c := newCluster(t)
	socket := filepath.Join(t.TempDir(), "claims.sock")
	serve := func(ctx context.Context) (ended chan error) {
		s := c.service(ctx, time.Minute, "")
		ended = make(chan error, 1)
		go func() { ended <- s.Serve(ctx, socket) }()
		return ended
	}
	var ready, killed atomic.Bool
	c.client.PrependReactor("delete", "sandboxclaims", func(core.Action) (bool, runtime.Object, error) {
		return killed.Load(), nil, apierrors.NewServiceUnavailable("the process is gone")
	})
	c.condition = func() (string, string) { return map[bool]string{true: "True", false: "False"}[ready.Load()], "" }
	// kill ends a process, which deletes nothing any more.
	kill := func(end context.CancelFunc, ended chan error) {
		killed.Store(true)
		end()
		<-ended
		time.Sleep(100 * time.Millisecond)
		killed.Store(false)
	}
	first, end := context.WithCancel(t.Context())
	ended := serve(first)
	client := claims.New(t.Context(), socket)
	got := make(chan claims.Claim)
	go func() {
		claim, err := client.Claim(t.Context(), request)
		if err != nil {
			t.Error(err)
		}
		got <- claim
	}()
	c.wants(1)
	kill(end, ended)
	ready.Store(true)
	second, end := context.WithCancel(t.Context())
	ended = serve(second)
	claim := <-got
	c.wants(1)
	if left := c.left(); len(left) == 1 && left[0] != claim.Name {
		t.Errorf("left %q, want %s", left, claim.Name)
	}
	kill(end, ended)
	wantCode(t, client.Release(t.Context(), claim), "claims.socket", "")
	serve(t.Context())
	c.wants(0)
}

func TestReadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claims.toml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const whole = "timeout = \"5s\"\n[tenants.team-a]\npool = \"p\"\nclaims = 3\n"
	write(whole)
	c, err := ReadConfig(path, "fumehood-0")
	if err != nil || c.Owner != "fumehood-0" || c.Timeout.Duration != 5*time.Second || c.Tenants["team-a"] != (Tenant{"p", 3}) {
		t.Errorf("%+v, %v", c, err)
	}
	for want, text := range map[string]string{
		"tenants: there is none": "", "unknown key": "x = 1\n" + whole, "claims of at least 1": "[tenants.a]\npool = \"p\"\n", "it needs a pool": "[tenants.a]\nclaims = 1\n",
		"must be positive": "timeout = \"0s\"\n[tenants.a]\npool = \"p\"\nclaims = 3\n", "label": "owner = \"a b\"\n" + whole,
	} {
		write(text)
		_, err := ReadConfig(path, "fumehood-0")
		wantCode(t, err, "claims.config", want)
	}
	write(whole)
	_, err = ReadConfig(path, "")
	wantCode(t, err, "claims.config", "owner")
}
