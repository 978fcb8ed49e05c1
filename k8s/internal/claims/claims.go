// SPDX-License-Identifier: Apache-2.0

// Package claims claims pods for the sessions of fumehood serve, as SandboxClaims of
// kubernetes-sigs/agent-sandbox (extensions.agents.x-k8s.io/v1beta1). It is the part of fumehood serve
// that has credentials of the cluster, in a process of its own, and it knows nothing of what the
// sessions do.
//
// The package promises:
//
//   - A claim has what the configuration gives to its tenant: namespace and warm pool. A request
//     chooses among tenants, says a lifetime and its own ID, and nothing else.
//   - A sandbox is given to one request. Its claim ends with the request that failed, by Release and
//     Withdraw, which go on until it is deleted, when the process that requested it (its holder) has
//     been away for a minute, whatever restarted meanwhile, and at its shutdownTime in any case.
//   - What a restart makes it forget, holders request again: package claims of the main module does.
//   - The cluster is watched once for all claims of a namespace.
package claims

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/fumehood/fumehood/internal/agents/claims"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The resources of agent-sandbox that are used.
var (
	claimResource = schema.GroupVersionResource{Group: "extensions.agents.x-k8s.io", Version: "v1beta1",
		Resource: "sandboxclaims"}
	sandboxResource = schema.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxes"}
)

// Labels of a claim.
const (
	ownerLabel   = "fumehood.dev/claims-owner"
	holderLabel  = "fumehood.dev/claims-holder"
	requestLabel = "fumehood.dev/claims-request"
)

// Options configure a Service. All fields are required.
type Options struct {
	Client dynamic.Interface
	Config
	// Grace is how long a holder may be away.
	Grace time.Duration
	// Warn is called with what no request gets.
	Warn func(error)
}

// A Service claims pods. New returns one.
type Service struct {
	o    Options
	ctx  context.Context
	live map[string]cache.SharedIndexInformer // of claims, by namespace

	mu      sync.Mutex
	claims  map[key]origin        // what each claim is for
	waiting map[key]func(*claim)  // for changes
	holders map[string]*holder    // by id
	count   map[string]int        // claims by tenant
	ending  map[key]chan struct{} // claims that are being deleted; closed when they are
}

type key struct{ namespace, name string }

// An origin is what a claim is for: a request of a holder.
type origin struct{ holder, request string }

// A holder is a process that has claims.
type holder struct {
	present int         // connections
	absent  *time.Timer // releases its claims
}

// New returns a Service that knows which claims of its own there are. It ends with ctx.
func New(ctx context.Context, o Options) (*Service, error) {
	s := &Service{o: o, ctx: ctx, live: map[string]cache.SharedIndexInformer{}, claims: map[key]origin{},
		waiting: map[key]func(*claim){},
		holders: map[string]*holder{}, count: map[string]int{}, ending: map[key]chan struct{}{}}
	known := map[string]cache.InformerSynced{} // when all claims of a namespace have been added
	for namespace := range o.Tenants {
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(o.Client, 0, namespace,
			func(l *metav1.ListOptions) { l.LabelSelector = ownerLabel + "=" + o.Owner })
		informer := factory.ForResource(claimResource).Informer()
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{AddFunc: s.changed,
			UpdateFunc: func(_, now any) { s.changed(now, false) }, DeleteFunc: s.deleted})
		if err != nil {
			return nil, err
		}
		s.live[namespace], known[namespace] = informer, handler.HasSynced
		factory.Start(ctx.Done())
	}
	ready, cancel := context.WithTimeout(ctx, o.Timeout.Duration)
	defer cancel()
	for namespace, all := range known {
		if !cache.WaitForCacheSync(ready.Done(), all) {
			return nil, stop("claims.cluster", "cannot list the claims in the namespace "+namespace,
				"check that agent-sandbox is installed, and the role of this service account", nil)
		}
	}
	return s, nil
}

// A claim is what is read of a SandboxClaim.
type claim struct {
	key
	origin
	uid           string
	ready, ending bool
	why           string // the last condition's message
	sandbox       string
}

func read(object any) *claim {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	u, is := object.(*unstructured.Unstructured)
	if !is {
		return nil
	}
	c := &claim{key: key{u.GetNamespace(), u.GetName()},
		origin: origin{u.GetLabels()[holderLabel], u.GetLabels()[requestLabel]}, uid: string(u.GetUID()),
		ending: u.GetDeletionTimestamp() != nil}
	c.sandbox, _, _ = unstructured.NestedString(u.Object, "status", "sandbox", "name")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range conditions {
		if condition, is := one.(map[string]any); is && condition["type"] == "Ready" {
			c.ready = condition["status"] == "True"
			c.why, _ = condition["message"].(string)
		}
	}
	return c
}

// changed learns of a claim. One that is not known is of a process before this one, if it was there
// first; otherwise its request has failed, and its creation took longer than its deletion.
func (s *Service) changed(object any, first bool) {
	c := read(object)
	if c == nil {
		return
	}
	s.mu.Lock()
	if _, known := s.claims[c.key]; !known && !c.ending {
		s.add(c.key, c.origin)
		if !first {
			s.release(c.key)
		}
	}
	tell := s.waiting[c.key]
	s.mu.Unlock()
	if tell != nil {
		tell(c)
	}
}

// add counts a claim, and the absence of a holder that is not here. The lock is held.
func (s *Service) add(k key, from origin) {
	id := from.holder
	s.claims[k] = from
	s.count[k.namespace]++
	h := s.holders[id]
	if h == nil {
		h = &holder{}
		s.holders[id] = h
	}
	if h.present == 0 && h.absent == nil {
		h.absent = time.AfterFunc(s.o.Grace, func() { s.abandon(id) })
	}
}

func (s *Service) deleted(object any) {
	c := read(object)
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.claims[c.key]; known {
		delete(s.claims, c.key)
		s.count[c.namespace]--
	}
	if tell := s.waiting[c.key]; tell != nil {
		go tell(nil)
	}
}

// Hold says that a holder is there until ctx ends.
func (s *Service) Hold(ctx context.Context, id string) {
	s.mu.Lock()
	h := s.holders[id]
	if h == nil {
		h = &holder{}
		s.holders[id] = h
	}
	h.present++
	if h.absent != nil {
		h.absent.Stop()
		h.absent = nil
	}
	s.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.present--; h.present == 0 {
		h.absent = time.AfterFunc(s.o.Grace, func() { s.abandon(id) })
	}
}

// abandon releases the claims of a holder that is away.
func (s *Service) abandon(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.holders[id]; h == nil || h.present > 0 {
		return
	}
	delete(s.holders, id)
	for k, from := range s.claims {
		if from.holder == id {
			s.release(k)
		}
	}
}

// Claim returns a pod for a holder, which must be there. The request's ID is the holder's, for
// Withdraw. Its error is a *proposal.StopError.
func (s *Service) Claim(ctx context.Context, holder, id string, r claims.Request) (out claims.Claim, err error) {
	tenant, known := s.o.Tenants[r.Tenant]
	if !known {
		return out, stop("claims.tenant", fmt.Sprintf("there is no tenant %q", r.Tenant),
			"add it to the configuration of fumehood-claims", nil)
	}
	if r.Lifetime <= 0 || r.Lifetime > s.o.Longest.Duration {
		return out, stop("claims.lifetime",
			fmt.Sprintf("a lifetime of %v is not between 0 and %v", r.Lifetime, s.o.Longest),
			"raise longest in the configuration of fumehood-claims", nil)
	}
	k := key{r.Tenant, "fumehood-" + strings.ToLower(rand.Text())}
	if err := s.reserve(k, origin{holder, id}, tenant); err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout.Duration)
	defer cancel()
	if out, err = s.claim(ctx, k, origin{holder, id}, tenant, r.Lifetime); err != nil {
		s.Release(k.namespace, k.name)
	}
	return out, err
}

// reserve counts a claim that is about to be made.
func (s *Service) reserve(k key, from origin, t Tenant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.holders[from.holder]; h == nil || h.present == 0 {
		return stop("claims.holder", "the process that requests a pod is not connected", "connect again", nil)
	}
	if s.count[k.namespace] >= t.Claims {
		return stop("claims.quota", fmt.Sprintf("the tenant %q has its maximum of %d sessions", k.namespace, t.Claims),
			"end one, or raise claims in the configuration of fumehood-claims", nil)
	}
	s.add(k, from)
	return nil
}

// claim creates a claim, and waits until it has a sandbox.
func (s *Service) claim(
	ctx context.Context, k key, from origin, t Tenant, lifetime time.Duration,
) (out claims.Claim, err error) {
	changes := make(chan *claim, 1)
	tell := func(c *claim) {
		select {
		case <-changes: // an older one
		default:
		}
		select {
		case changes <- c:
		default:
		}
	}
	s.await(k, tell)
	defer s.await(k, nil)
	if err := s.create(ctx, k, from, t, lifetime); err != nil {
		return out, err
	}
	go s.ask(ctx, k, tell)
	why := "it has no condition"
	for {
		select {
		case c := <-changes:
			switch {
			case c == nil:
				return out, stop("claims.deleted", "the claim was deleted while it waited for a pod",
					"look at the events of the namespace "+k.namespace, nil)
			case c.ready && c.sandbox != "":
				return s.sandbox(ctx, c)
			case c.why != "":
				why = c.why
			}
		case <-ctx.Done():
			return out, stop("claims.timeout", fmt.Sprintf("no pod is ready after %v: %.300s", s.o.Timeout, why),
				"look at the warm pool "+t.Pool+" in the namespace "+k.namespace, context.Cause(ctx))
		}
	}
}

// ask calls tell with a claim that has waited, at intervals that grow, until ctx ends. After an outage
// of the API server the watch of client-go is back only after up to a minute.
func (s *Service) ask(ctx context.Context, k key, tell func(*claim)) {
	pause := wait.Backoff{Duration: time.Second, Factor: 1.5, Jitter: 0.5, Steps: 20, Cap: 10 * time.Second}
	var warn sync.Once
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause.Step()):
		}
		u, err := s.o.Client.Resource(claimResource).Namespace(k.namespace).Get(ctx, k.name, metav1.GetOptions{})
		switch {
		case err == nil:
			tell(read(u))
		case apierrors.IsNotFound(err):
			tell(nil)
		case !passes(err): // an old role, or an API server that starts
			warn.Do(func() {
				s.o.Warn(fmt.Errorf("cannot read the claim %s/%s, trying again: %w", k.namespace, k.name, err))
			})
		}
	}
}

// await calls f with each change of a claim; nil ends that.
func (s *Service) await(k key, f func(*claim)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == nil {
		delete(s.waiting, k)
		return
	}
	s.waiting[k] = f
}

// create creates a claim. It tries again when the answer may be lost: the name is ours alone.
func (s *Service) create(ctx context.Context, k key, from origin, t Tenant, lifetime time.Duration) error {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": claimResource.GroupVersion().String(), "kind": "SandboxClaim",
		"metadata": map[string]any{"name": k.name, "namespace": k.namespace, "labels": map[string]any{ownerLabel: s.o.Owner, holderLabel: from.holder, requestLabel: from.request}},
		"spec": map[string]any{
			"warmPoolRef": map[string]any{"name": t.Pool},
			"lifecycle":   map[string]any{"shutdownTime": time.Now().Add(lifetime).UTC().Format(time.RFC3339), "shutdownPolicy": "Delete"},
		},
	}}
	err := s.again(ctx, passesAtStart(), func() error {
		_, err := s.o.Client.Resource(claimResource).Namespace(k.namespace).Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return stop("claims.cluster", "Kubernetes refuses the claim",
			"look at the quotas and roles of the namespace "+k.namespace, err)
	}
	return nil
}

// again calls f until its error is not one of those that pass, or ctx ends.
func (s *Service) again(ctx context.Context, passes func(error) bool, f func() error) error {
	pause := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 20, Cap: 5 * time.Second}
	for {
		err := f()
		if err == nil || !passes(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(pause.Step()):
		}
	}
}

// passes reports whether the same request may succeed later.
func passes(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // there was no answer
	}
	return apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err)
}

// starting is how long Forbidden may be the answer of an API server that has not read the roles yet.
const starting = 5 * time.Second

// passesAtStart returns passes for a request that begins now, with which Forbidden passes for starting.
func passesAtStart() func(error) bool {
	begin := time.Now()
	return func(err error) bool {
		return passes(err) || apierrors.IsForbidden(err) && time.Since(begin) < starting
	}
}

// sandbox returns the pod of a claim that is ready.
func (s *Service) sandbox(ctx context.Context, c *claim) (out claims.Claim, err error) {
	var u *unstructured.Unstructured
	err = s.again(ctx, passesAtStart(), func() (err error) {
		u, err = s.o.Client.Resource(sandboxResource).Namespace(c.namespace).Get(ctx, c.sandbox, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return out, stop("claims.cluster", "cannot read the claim's sandbox",
			"look at the role of this service account", err)
	}
	owner := metav1.GetControllerOf(u)
	if owner == nil || string(owner.UID) != c.uid {
		return out, stop("claims.sandbox", fmt.Sprintf("the sandbox %q is not the claim's", c.sandbox),
			"look at who else writes to claims in the namespace "+c.namespace, nil)
	}
	addresses, _, _ := unstructured.NestedStringSlice(u.Object, "status", "podIPs")
	node, _, _ := unstructured.NestedString(u.Object, "status", "nodeName")
	if len(addresses) == 0 || node == "" {
		return out, stop("claims.sandbox",
			fmt.Sprintf("the sandbox %q is ready, and has no address or no node", c.sandbox), "update agent-sandbox",
			nil)
	}
	return claims.Claim{Name: c.name, Namespace: c.namespace, Address: addresses[0], Node: node}, nil
}

// Release deletes a claim, and goes on until that has succeeded: then the channel is closed.
func (s *Service) Release(namespace, name string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.release(key{namespace, name})
}

// Withdraw is Release for the claim of a request whose answer its holder has not got. There may be
// none.
func (s *Service) Withdraw(holder, id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, from := range s.claims {
		if from == (origin{holder, id}) {
			return s.release(k)
		}
	}
	return s.release(key{})
}

// release is Release with the lock held. Claims that are not known are nothing to it.
func (s *Service) release(k key) <-chan struct{} {
	if done, begun := s.ending[k]; begun {
		return done
	}
	done := make(chan struct{})
	if _, known := s.claims[k]; !known {
		close(done)
		return done
	}
	s.ending[k] = done
	go func() {
		if s.delete(k) == nil {
			close(done)
		}
	}()
	return done
}

// delete deletes a claim. No error but the end of this process is final.
func (s *Service) delete(k key) error {
	policy := metav1.DeletePropagationBackground
	var warn sync.Once
	again := func(err error) bool {
		if !passes(err) && !apierrors.IsNotFound(err) {
			warn.Do(func() {
				s.o.Warn(fmt.Errorf("cannot delete the claim %s/%s, trying again: %w", k.namespace, k.name, err))
			})
		}
		return true
	}
	return s.again(s.ctx, again, func() error {
		err := s.o.Client.Resource(claimResource).Namespace(k.namespace).Delete(s.ctx, k.name,
			metav1.DeleteOptions{PropagationPolicy: &policy})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return s.forget(k, err)
	})
}

// forget stops counting a claim that is deleted. It returns missing, the error of a deletion that
// found no claim, if there is one: it was made meanwhile. What is made later is not known to changed.
func (s *Service) forget(k key, missing error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists, _ := s.live[k.namespace].GetStore().GetByKey(k.namespace + "/" + k.name); exists && missing != nil {
		return missing
	}
	delete(s.ending, k)
	if _, known := s.claims[k]; known {
		delete(s.claims, k)
		s.count[k.namespace]--
	}
	return nil
}

func stop(code, message, hint string, err error) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}
