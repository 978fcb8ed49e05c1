// SPDX-License-Identifier: Apache-2.0

// Package sandboxtest has a controller for tests, which does with SandboxTemplates, SandboxWarmPools,
// SandboxClaims and Sandboxes (v1beta1) what kubernetes-sigs/agent-sandbox documents: it keeps pools of
// sandboxes with pods, gives each claim a sandbox that is ready, makes that the claim's, and deletes
// claims at their shutdownTime. It is not that controller, which cannot be had as a module: names,
// labels, times and errors differ, and what fumehood does not use is missing.
//
// Sandboxes of claims that were deleted, and their pods, are left to Kubernetes's garbage collector.
package sandboxtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const (
	extensions = "extensions.agents.x-k8s.io"
	core       = "agents.x-k8s.io"
	version    = "v1beta1"
)

// The resources, of which CRDs returns definitions without schemas.
var (
	Templates = schema.GroupVersionResource{Group: extensions, Version: version, Resource: "sandboxtemplates"}
	Pools     = schema.GroupVersionResource{Group: extensions, Version: version, Resource: "sandboxwarmpools"}
	Claims    = schema.GroupVersionResource{Group: extensions, Version: version, Resource: "sandboxclaims"}
	Sandboxes = schema.GroupVersionResource{Group: core, Version: version, Resource: "sandboxes"}
	pods      = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// poolLabel is on sandboxes that no claim has.
const poolLabel = "sandboxtest/pool"

// CRDs returns the CustomResourceDefinitions, for kubectl.
func CRDs() string {
	var all []string
	for kind, r := range map[string]schema.GroupVersionResource{"SandboxTemplate": Templates, "SandboxWarmPool": Pools,
		"SandboxClaim": Claims, "Sandbox": Sandboxes} {
		all = append(all, fmt.Sprintf(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "%s.%s"}, "spec": {
"group": %q, "scope": "Namespaced", "names": {"kind": %q, "listKind": "%sList", "plural": %q, "singular": %q},
"versions": [{"name": %q, "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`,
			r.Resource, r.Group, r.Group, kind, kind, r.Resource, strings.ToLower(kind), r.Version))
	}
	return strings.Join(all, "\n---\n")
}

// A Controller is one of a namespace. Run returns when its context ends.
type Controller struct {
	client    dynamic.Interface
	namespace string
	listers   map[schema.GroupVersionResource]cache.GenericLister
	wake      chan struct{}

	mu   sync.Mutex
	busy map[string]time.Time // names that were written, and that the caches may not show yet
}

// settle is how long a name is left alone after it was written.
const settle = 2 * time.Second

// writers is how many requests run at a time.
const writers = 16

// Run controls a namespace until ctx ends. Errors of single requests are tried again.
func Run(ctx context.Context, client dynamic.Interface, namespace string) error {
	c := &Controller{client: client, namespace: namespace,
		listers: map[schema.GroupVersionResource]cache.GenericLister{}, wake: make(chan struct{}, 1),
		busy: map[string]time.Time{}}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	wake := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { c.woken() }, UpdateFunc: func(any, any) { c.woken() },
		DeleteFunc: func(any) { c.woken() }}
	for _, r := range []schema.GroupVersionResource{Templates, Pools, Claims, Sandboxes, pods} {
		informer := factory.ForResource(r)
		if _, err := informer.Informer().AddEventHandler(wake); err != nil {
			return err
		}
		c.listers[r] = informer.Lister()
	}
	factory.Start(ctx.Done())
	for r, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("cannot list %s: %w", r.Resource, context.Cause(ctx))
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-time.After(settle):
		}
		c.pass(ctx)
	}
}

func (c *Controller) woken() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Controller) list(r schema.GroupVersionResource) (all []*unstructured.Unstructured) {
	objects, err := c.listers[r].ByNamespace(c.namespace).List(labels.Everything())
	if err != nil {
		return nil
	}
	for _, o := range objects {
		if u := o.(*unstructured.Unstructured); u.GetDeletionTimestamp() == nil {
			all = append(all, u)
		}
	}
	return all
}

// take reports whether a name may be written now, and notes that it is.
func (c *Controller) take(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.busy[name]) < settle {
		return false
	}
	c.busy[name] = time.Now()
	return true
}

// free lets a name be written again at once: a request has failed.
func (c *Controller) free(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, name)
}

// pass does everything that is due.
func (c *Controller) pass(ctx context.Context) {
	slots := make(chan struct{}, writers)
	var all sync.WaitGroup
	do := func(f func(context.Context)) {
		slots <- struct{}{}
		all.Go(func() { defer func() { <-slots }(); f(ctx) })
	}
	sandboxes := c.list(Sandboxes)
	c.report(sandboxes, do)
	c.assign(sandboxes, do)
	c.fill(sandboxes, do)
	c.expire(do)
	all.Wait()
}

// fill makes the sandboxes that pools lack.
func (c *Controller) fill(sandboxes []*unstructured.Unstructured, do func(func(context.Context))) {
	have := map[string]int64{}
	for _, s := range sandboxes {
		have[s.GetLabels()[poolLabel]]++
	}
	for _, pool := range c.list(Pools) {
		want, _, _ := unstructured.NestedInt64(pool.Object, "spec", "replicas")
		name, _, _ := unstructured.NestedString(pool.Object, "spec", "sandboxTemplateRef", "name")
		template, err := c.listers[Templates].ByNamespace(c.namespace).Get(name)
		if err != nil || want <= have[pool.GetName()] || !c.take("pool/"+pool.GetName()) {
			continue
		}
		var made sync.WaitGroup
		for range want - have[pool.GetName()] {
			made.Add(1)
			do(func(ctx context.Context) {
				defer made.Done()
				_ = c.make(ctx, pool.GetName(), template)
			})
		}
		go func() { made.Wait(); time.Sleep(settle / 10); c.free("pool/" + pool.GetName()); c.woken() }()
	}
}

// make makes a sandbox and its pod.
func (c *Controller) make(ctx context.Context, pool string, template runtime.Object) error {
	blueprint, _, err := unstructured.NestedMap(template.(*unstructured.Unstructured).Object, "spec", "podTemplate")
	if err != nil {
		return err
	}
	name := pool + "-" + strings.ToLower(rand.Text()[:12])
	sandbox := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Sandboxes.GroupVersion().String(), "kind": "Sandbox",
		"metadata": map[string]any{"name": name, "labels": map[string]any{poolLabel: pool}}, "spec": map[string]any{"podTemplate": blueprint},
	}}
	made, err := c.client.Resource(Sandboxes).Namespace(c.namespace).Create(ctx, sandbox, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return c.pod(ctx, made)
}

// pod makes the pod of a sandbox.
func (c *Controller) pod(ctx context.Context, sandbox *unstructured.Unstructured) error {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	template, _, _ := unstructured.NestedMap(sandbox.Object, "spec", "podTemplate")
	spec, _, _ := unstructured.NestedMap(template, "spec")
	annotations, _, _ := unstructured.NestedStringMap(template, "metadata", "annotations")
	pod.Object["spec"] = spec
	pod.SetName(sandbox.GetName())
	pod.SetAnnotations(annotations)
	pod.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(sandbox,
		Sandboxes.GroupVersion().WithKind("Sandbox"))})
	_, err := c.client.Resource(pods).Namespace(c.namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func isReady(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, one := range list {
		if condition, is := one.(map[string]any); is && condition["type"] == "Ready" {
			return condition["status"] == "True"
		}
	}
	return false
}

func ready() []any { return []any{map[string]any{"type": "Ready", "status": "True"}} }

// report writes the address of pods that are ready into their sandboxes, and makes pods that are
// missing.
func (c *Controller) report(sandboxes []*unstructured.Unstructured, do func(func(context.Context))) {
	for _, s := range sandboxes {
		if isReady(s) {
			continue
		}
		object, err := c.listers[pods].ByNamespace(c.namespace).Get(s.GetName())
		if err != nil {
			if time.Since(s.GetCreationTimestamp().Time) > settle && c.take(s.GetName()) {
				do(func(ctx context.Context) { _ = c.pod(ctx, s) })
			}
			continue
		}
		pod := object.(*unstructured.Unstructured)
		address, _, _ := unstructured.NestedString(pod.Object, "status", "podIP")
		node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		if !isReady(pod) || address == "" || !c.take(s.GetName()) {
			continue
		}
		s = s.DeepCopy()
		s.Object["status"] = map[string]any{"podIPs": []any{address}, "nodeName": node, "conditions": ready()}
		do(func(ctx context.Context) {
			_, _ = c.client.Resource(Sandboxes).Namespace(c.namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{})
			c.free(s.GetName())
		})
	}
}

// assign gives claims without a sandbox one that is ready, the oldest claim first: others would wait
// for ever while there are more claims than sandboxes.
func (c *Controller) assign(sandboxes []*unstructured.Unstructured, do func(func(context.Context))) {
	owned, free := map[string]*unstructured.Unstructured{}, map[string][]*unstructured.Unstructured{}
	for _, s := range sandboxes {
		if owner := metav1.GetControllerOf(s); owner != nil {
			owned[string(owner.UID)] = s
		} else if isReady(s) {
			free[s.GetLabels()[poolLabel]] = append(free[s.GetLabels()[poolLabel]], s)
		}
	}
	waiting := c.list(Claims)
	slices.SortFunc(waiting, func(a, b *unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	for _, claim := range waiting {
		if isReady(claim) || !c.take(claim.GetName()) {
			continue
		}
		s := owned[string(claim.GetUID())]
		if s == nil {
			pool, _, _ := unstructured.NestedString(claim.Object, "spec", "warmPoolRef", "name")
			for s == nil && len(free[pool]) > 0 {
				if one := free[pool][0]; c.take(one.GetName()) {
					s = one
				}
				free[pool] = free[pool][1:]
			}
		}
		if s == nil {
			c.free(claim.GetName())
			continue
		}
		do(func(ctx context.Context) {
			if err := c.give(ctx, claim.DeepCopy(), s.DeepCopy()); err != nil {
				c.free(claim.GetName())
			}
		})
	}
}

// give makes a sandbox the claim's, which fails if it has been changed meanwhile.
func (c *Controller) give(ctx context.Context, claim, s *unstructured.Unstructured) error {
	if metav1.GetControllerOf(s) == nil {
		s.SetLabels(nil)
		s.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(claim,
			Claims.GroupVersion().WithKind("SandboxClaim"))})
		if _, err := c.client.Resource(Sandboxes).Namespace(c.namespace).Update(ctx, s,
			metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	addresses, _, _ := unstructured.NestedSlice(s.Object, "status", "podIPs")
	claim.Object["status"] = map[string]any{"sandbox": map[string]any{"name": s.GetName(), "podIPs": addresses},
		"conditions": ready()}
	_, err := c.client.Resource(Claims).Namespace(c.namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

// expire deletes claims at their shutdownTime.
func (c *Controller) expire(do func(func(context.Context))) {
	for _, claim := range c.list(Claims) {
		text, _, _ := unstructured.NestedString(claim.Object, "spec", "lifecycle", "shutdownTime")
		if end, err := time.Parse(time.RFC3339, text); err == nil && time.Now().After(end) {
			do(func(ctx context.Context) {
				_ = c.client.Resource(Claims).Namespace(c.namespace).Delete(ctx, claim.GetName(),
					metav1.DeleteOptions{})
			})
		}
	}
}
