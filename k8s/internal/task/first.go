// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/fumehood/fumehood/k8s/internal/logfile"
	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/pod"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// open makes the pod's gate, with the policy that its annotations name, and its log.
func (s *service) open(ctx context.Context, spec specs.Spec, pause pod.Process, given *anypb.Any) error {
	about := spec.Annotations
	if !slices.Equal(pause.Argv, s.node.Pause) {
		return stop("pod.pause", fmt.Sprintf("the pod's first container runs %q", pause.Argv),
			fmt.Sprintf("use a pause image whose command is %q, or change the node's configuration", s.node.Pause), nil)
	}
	digest, err := s.node.Choose(about[namespaceAnnotation], about[node.Annotation])
	if err != nil {
		return err
	}
	options, err := s.node.Policy(digest)
	if err != nil {
		return err
	}
	s.pause = pause
	if err := s.make(); err != nil {
		return stop("pod.state", "cannot make the pod's directory", "look at the node's directory for state", err)
	}
	s.made = true
	runsc, err := s.node.FindRunsc(ctx)
	if err != nil {
		return err
	}
	policy, err := policyOf(options)
	if err != nil {
		return err
	}
	s.next.bundle = digest
	s.proof = append([]string{policy.Digest(), runsc.Digest}, pause.Argv...)
	log, err := s.log(about)
	if err != nil {
		return err
	}
	s.audit = log
	s.pod, err = pod.Open(pod.Options{Run: run(about, digest, runsc.Version), Log: log, Dir: s.dir,
		Proven: s.node.Proven(s.proof...)})
	if err == nil {
		err = s.pod.Use(policy)
	}
	if err != nil {
		return err
	}
	if err := s.connect(ctx, spec); err != nil {
		return err
	}
	shim, err := s.configure(given, runsc.Path)
	if err != nil {
		return err
	}
	s.control = filepath.Join(shim.Root, s.namespace, "runsc-"+s.id+".sock")
	trace, err := s.pod.TraceConfig()
	if err == nil {
		err = os.WriteFile(s.own()["pod-init-config"], trace, 0o600)
	}
	if err == nil {
		err = s.pod.Listen(s.door())
	}
	if err == nil {
		err = os.Symlink(runsc.Init, s.init())
	}
	if err != nil {
		return err
	}
	go s.pod.Serve()
	go s.watch(about[namespaceAnnotation], about[node.Annotation], digest, log.Path())
	return nil
}

// run describes the pod in its log.
func run(about map[string]string, digest, version string) proposal.Run {
	return proposal.Run{ID: about[uidAnnotation], Workspace: about[namespaceAnnotation] + "/" + about[nameAnnotation],
		Start:    time.Now(),
		Policies: []proposal.PolicyOrigin{{Kind: "bundle", Digest: digest}}, Runsc: version,
		Rootfs: "images of the pod",
		Enforced: []string{"gVisor (systrap) around the pod",
			"policy on every process that is started in the pod, and on every program that those start", "no network except for hosts that policy grants, through a gateway that asks policy about every name and connection",
			"what containers write to their images stays in the sandbox"},
		Unenforced: []string{"limits of policy on time, processor, memory, processes and disk: those of the pod apply",
			"credentials, variables, users and capabilities are those of the pod's spec"}}
}

// log creates the pod's log, in a directory of its own.
func (s *service) log(about map[string]string) (*audit.Log, error) {
	path, err := logPath(s.node, about, s.id)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, stop("pod.log", "cannot make the directory of the pod's log",
			"make room in the directory of the logs", err)
	}
	signer, err := s.node.Signer()
	if err != nil {
		return nil, err
	}
	log, err := audit.Create(path, audit.Options{Origin: "fumehood/pod/" + s.id, Signer: signer})
	if err == nil {
		s.writing, err = logfile.Lock(log.Path())
	}
	return log, err
}

// confirm makes sure that the kernel asks the gate, and ends the pod if it ever stops.
func (s *service) confirm(ctx context.Context) error {
	if err := s.pod.Confirm(s.control); err != nil {
		return err
	}
	s.gate = s.pod
	if err := s.admit(ctx, "", s.pause); err != nil {
		return err
	}
	go func() {
		<-s.pod.Failed()
		s.kill(namespaces.WithNamespace(context.Background(), s.namespace)) // all containers are in its sandbox
	}()
	return nil
}

// watch ends the pod when its policy is revoked, or its log is larger than it may be: what a pod
// does must not fill the node's disk.
func (s *service) watch(namespace, named, digest, log string) {
	tick := time.NewTicker(node.Interval)
	defer tick.Stop()
	for {
		select {
		case <-s.pod.Failed():
			return
		case <-tick.C:
			if err := cmp.Or(node.Revoked(namespace, named, digest), s.full(log)); err != nil {
				s.pod.Fail(err)
			}
		}
	}
}

func (s *service) full(log string) error {
	info, err := os.Stat(log)
	switch {
	case err != nil:
		return stop("pod.log", "cannot read the pod's log", "look at the node's directory for logs", err)
	case info.Size() > s.node.LogLimit:
		return stop("pod.log-full", fmt.Sprintf("the pod's log is larger than %d bytes", s.node.LogLimit),
			"start the pod again, or raise log_limit in the node's configuration", nil)
	}
	return nil
}

// close seals the log of the pod, and removes its directory.
func (s *service) close(why error) error {
	if !s.made {
		return nil
	}
	var err error
	s.closing.Do(func() {
		if s.pod != nil {
			err = s.pod.Close(why)
		}
		err = errors.Join(err, os.RemoveAll(s.dir))
	})
	return err
}
