// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/containerd/log"

	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/pod"
	"github.com/fumehood/fumehood/k8s/internal/spare"
)

// bundleVariable names, to a process that waits for a pod, the bundle whose policy it compiles.
const bundleVariable = "FUMEHOOD_SHIM_BUNDLE"

// prepared is the policy that was compiled while this process waited, or nil. The pod has it if it is
// the pod's.
var prepared *pod.Policy

// compileDelay is how long a process waits before it compiles: until then, the pod that ends when it is
// started would be slower.
const compileDelay = 500 * time.Millisecond

// Wait has this process wait for a container, if it was started for that. With an error, it must end.
func Wait() error {
	switch spare.Waits() {
	case "":
		return nil
	case spare.Container:
		return spare.Wait()
	}
	config, err := node.Read()
	if err != nil {
		return err
	}
	options, err := config.Policy(os.Getenv(bundleVariable))
	if err != nil {
		return err
	}
	compiling := make(chan struct{})
	timer := time.AfterFunc(compileDelay, func() {
		prepared, _ = pod.Compile(options) // without it the pod compiles, and has the error
		close(compiling)
	})
	err = spare.Wait()
	if !timer.Stop() {
		<-compiling
	}
	return err
}

// Waiting returns the socket of a process that waits for such a container as that of the working
// directory, or "".
func Waiting() string {
	config, err := node.Read()
	if err != nil {
		return ""
	}
	b, err := readBundle(".")
	if err != nil {
		return ""
	}
	kind := spare.Container
	if b.spec.Annotations[kindAnnotation] == "sandbox" && !b.isSession() {
		kind = spare.Pod
	}
	return spare.Socket(config.State, kind)
}

// fillDelay is how long after a start the processes for the next one are started: until then, they
// would take time from what starts.
const fillDelay = time.Second

// A filler starts processes that wait for the next containers, once: fillDelay after the start of its
// own, or at the end.
type filler struct {
	state  string
	bundle string // of a first container: what the next pod will probably have
	once   sync.Once
}

func (f *filler) later() { time.AfterFunc(fillDelay, f.now) }

func (f *filler) now() {
	f.once.Do(func() {
		err := spare.Fill(f.state, spare.Container)
		if f.bundle != "" && err == nil {
			err = spare.Fill(f.state, spare.Pod, bundleVariable+"="+f.bundle)
		}
		if err != nil {
			log.G(context.Background()).WithError(err).Warn("no process waits for the next container")
		}
	})
}

// policyOf returns the policy of a pod, which is being compiled.
func policyOf(o policy.Options) (*pod.Policy, error) {
	digest, err := o.Digest()
	if err != nil {
		return nil, err
	}
	waited := prepared
	prepared = nil // another policy is of no use any more
	if waited != nil && waited.Digest() == digest {
		return waited, nil
	}
	usual := process.CollectLess() // containerd's library lets shims have little
	p, err := pod.Compile(o)
	if err != nil {
		usual()
		return nil, err
	}
	go func() {
		<-p.Ready()
		usual()
	}()
	return p, nil
}
