// SPDX-License-Identifier: Apache-2.0

// Package task puts fumehood's gate into gVisor's containerd shim. There is one shim for each
// container. That of a pod's first container, the pause container, has the pod's gate and log
// (package pod); those of the others ask it through a socket. So the gate lives as long as the
// pod, and one that fails takes no other pod with it.
//
// A container's spec is changed before gVisor's shim reads it: its command is started through
// fumehood-init, so that the kernel asks about it, and annotations for gVisor are removed. Every
// start, of a container or in it, waits for the gate's answer; without one it fails with the
// reason, which the pod's events show. Checkpoints are refused: what is restored has no gate.
package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/containerd/containerd/api/runtime/task/v2"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/log"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"gvisor.dev/gvisor/pkg/shim/v1/extension"

	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/pod"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Register makes gVisor's shim use the gate for every container.
func Register() {
	extension.NewExtension = newService
	extension.NewPodExtension = func(context.Context, extension.TaskServiceExt,
		*task.CreateTaskRequest) (extension.TaskServiceExt, error) {
		return nil, errors.New("fumehood: grouping is on in gVisor's configuration: remove it from /etc/containerd/runsc/config.toml")
	}
}

// A service is gVisor's task service for one container, with the gate before it.
type service struct {
	extension.TaskServiceExt
	node node.Config
	place
	gate    pod.Admitter
	pod     *pod.Pod    // of the first container; nil for others
	control string      // the control socket of its sandbox
	made    bool        // its directory is this shim's
	root    string      // of the container, on the host
	pause   pod.Process // the command of the first container
	next    *filler     // for the next container, or pod
	proof   []string    // what the pod's start proves
	audit   *audit.Log  // of the pod
	writing *os.File    // the log, locked
	closing sync.Once

	mu       sync.Mutex
	admitted map[string]pod.Admission // what is to be started, by exec id; "" is the container
}

func newService(
	ctx context.Context, next extension.TaskServiceExt, r *task.CreateTaskRequest,
) (extension.TaskServiceExt, error) {
	config, err := node.Read()
	if err != nil {
		return nil, refused(err)
	}
	if b, err := readBundle(r.Bundle); err == nil && b.isSession() {
		return newVirtual(config), nil
	}
	return &service{TaskServiceExt: next, node: config, next: &filler{state: config.State},
		admitted: map[string]pod.Admission{}}, nil
}

// refused returns err as containerd shows it.
func refused(err error) error {
	f := proposal.FailureOf(err)
	if f == nil {
		return nil
	}
	text := "fumehood: " + f.Code + ": " + f.Message
	var stopped *proposal.StopError
	if errors.As(err, &stopped) && stopped.Err != nil {
		text += ": " + stopped.Err.Error()
	}
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	if f.Code == "pod.denied" {
		return fmt.Errorf("%s: %w", text, errdefs.ErrPermissionDenied)
	}
	return fmt.Errorf("%s: %w", text, errdefs.ErrFailedPrecondition)
}

// Create implements task.TaskService.
func (s *service) Create(ctx context.Context, r *task.CreateTaskRequest) (*task.CreateTaskResponse, error) {
	ns, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return nil, err
	}
	b, err := readBundle(r.Bundle)
	s.root = b.root()
	if err == nil {
		s.place, err = placeOf(s.node.State, ns, r.ID, b.spec)
	}
	if err == nil {
		err = s.prepare(ctx, r, b)
	}
	if err != nil {
		return nil, refused(errors.Join(err, s.close(err)))
	}
	response, err := s.TaskServiceExt.Create(ctx, r)
	if err != nil && s.pod != nil && s.pod.Err() != nil {
		err = refused(s.pod.Err()) // which is why no sandbox could start
	}
	if err == nil && s.first {
		if err = s.confirm(ctx); err != nil {
			s.kill(ctx)
			_, deleteErr := s.TaskServiceExt.Delete(ctx, &task.DeleteRequest{ID: s.id})
			err = refused(errors.Join(err, deleteErr))
		}
	}
	if err != nil {
		s.drop("")
		return nil, errors.Join(err, s.close(err))
	}
	return response, nil
}

// prepare changes the bundle and the request, and makes the gate or connects to it.
func (s *service) prepare(ctx context.Context, r *task.CreateTaskRequest, b bundle) error {
	process := b.process(s.container)
	for _, source := range b.shows() {
		if err := s.node.Hidden(source); err != nil {
			return err
		}
	}
	var err error
	if s.first {
		process.Pause = true
		err = s.open(ctx, b.spec, process, r.Options)
	} else {
		// Decided now, because gVisor's shim cannot delete what was created and never started.
		s.gate = pod.Door(s.door())
		err = s.admit(ctx, "", process)
	}
	if err != nil {
		return err
	}
	if r.Options, err = s.options(); err != nil {
		return err
	}
	init, err := os.Readlink(s.init())
	if err != nil {
		return err
	}
	if err := s.online(&b.spec); err != nil {
		return err
	}
	return b.change(init)
}

// Start implements task.TaskService.
func (s *service) Start(ctx context.Context, r *task.StartRequest) (response *task.StartResponse, err error) {
	s.mu.Lock()
	a, known := s.admitted[r.ExecID]
	delete(s.admitted, r.ExecID)
	s.mu.Unlock()
	if !known {
		return nil, fmt.Errorf("fumehood: %q was not created, or was started before: %w", r.ExecID,
			errdefs.ErrFailedPrecondition)
	}
	launched := false
	err = a.Start(func(e pod.Ender) (err error) {
		launched = true
		if response, err = s.TaskServiceExt.Start(ctx, r); err == nil {
			go s.await(r, e)
		}
		return err
	})
	if err != nil && !launched && r.ExecID == "" {
		// no program starts in a pod that has failed, but this can be deleted then
		_, _ = s.TaskServiceExt.Start(ctx, r)
	}
	if err != nil {
		return nil, refused(err)
	}
	if s.first && r.ExecID == "" {
		s.prove(ctx)
	}
	if r.ExecID == "" {
		s.next.later()
	}
	return response, nil
}

// prove remembers that the pod has started, so that the next one starts sooner.
func (s *service) prove(ctx context.Context) {
	if s.node.Proven(s.proof...) {
		return
	}
	if err := s.node.Prove(s.proof...); err != nil {
		log.G(ctx).WithError(err).Warn("cannot remember that the pod has started")
	}
}

func (s *service) admit(ctx context.Context, id string, x pod.Process) error {
	if s.gate == nil {
		return stop("pod.ungated", "the container has no gate", "create it first", nil)
	}
	a, err := s.gate.Admit(ctx, x)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admitted[id] != nil {
		a.Drop()
		return stop("pod.process", fmt.Sprintf("the process %q exists", id), "use another id", nil)
	}
	s.admitted[id] = a
	return nil
}

// drop forgets what was admitted and not started.
func (s *service) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.admitted[id]; a != nil {
		a.Drop()
		delete(s.admitted, id)
	}
}

// await reports to the gate that a process has ended.
func (s *service) await(r *task.StartRequest, e pod.Ender) {
	ctx := namespaces.WithNamespace(context.Background(), s.namespace)
	status := pod.Unknown
	if ended, err := s.TaskServiceExt.Wait(ctx, &task.WaitRequest{ID: r.ID, ExecID: r.ExecID}); err == nil {
		status = int(ended.ExitStatus)
	}
	e.End(status)
}

// kill ends the container. It tries again, because it is called once when the gate has failed:
// until then nothing starts, but what runs goes on.
func (s *service) kill(ctx context.Context) {
	for range killAttempts {
		_, err := s.TaskServiceExt.Kill(ctx, &task.KillRequest{ID: s.id, Signal: 9, All: true})
		if err == nil || errdefs.IsNotFound(err) || status.Code(err) == codes.NotFound {
			return
		}
		log.G(ctx).WithError(err).Warn("cannot kill the container")
		time.Sleep(time.Second)
	}
}

const killAttempts = 10

// Kill implements task.TaskService.
func (s *service) Kill(ctx context.Context, r *task.KillRequest) (*emptypb.Empty, error) {
	if s.pod != nil && r.ExecID == "" {
		s.pod.Stopping()
	}
	return s.TaskServiceExt.Kill(ctx, r)
}

// Exec implements task.TaskService.
func (s *service) Exec(ctx context.Context, r *task.ExecProcessRequest) (*emptypb.Empty, error) {
	var process specs.Process
	if err := json.Unmarshal(r.Spec.GetValue(), &process); err != nil {
		return nil, fmt.Errorf("fumehood: cannot read the process: %w: %w", err, errdefs.ErrInvalidArgument)
	}
	x := pod.Process{Container: s.container, Exec: true, Argv: process.Args, Env: process.Env, Root: s.root}
	process.Args = pod.Through(process.Args)
	data, err := json.Marshal(process)
	if err != nil {
		return nil, err
	}
	if err := s.admit(ctx, r.ExecID, x); err != nil {
		return nil, refused(err)
	}
	r.Spec.Value = data
	response, err := s.TaskServiceExt.Exec(ctx, r)
	if err != nil {
		s.drop(r.ExecID)
	}
	return response, err
}

// Delete implements task.TaskService.
func (s *service) Delete(ctx context.Context, r *task.DeleteRequest) (*task.DeleteResponse, error) {
	response, err := s.TaskServiceExt.Delete(ctx, r)
	s.drop(r.ExecID)
	if err == nil && r.ExecID == "" {
		s.end(ctx)
	}
	return response, err
}

// end closes the pod whose container has ended.
func (s *service) end(ctx context.Context) {
	s.next.now()
	if err := s.close(nil); err != nil {
		log.G(ctx).WithError(err).Error("cannot close the pod's log")
	}
}

// Shutdown implements task.TaskService.
func (s *service) Shutdown(ctx context.Context, r *task.ShutdownRequest) (*emptypb.Empty, error) {
	response, err := s.TaskServiceExt.Shutdown(ctx, r)
	if err == nil {
		s.end(ctx)
	}
	return response, err
}

// Checkpoint implements task.TaskService.
func (s *service) Checkpoint(context.Context, *task.CheckpointTaskRequest) (*emptypb.Empty, error) {
	return nil, errNoCheckpoint
}

// CreateWithFSRestore implements extension.TaskServiceExt.
func (s *service) CreateWithFSRestore(
	context.Context, *extension.CreateWithFSRestoreRequest,
) (*task.CreateTaskResponse, error) {
	return nil, errNoCheckpoint
}

// Restore implements extension.TaskServiceExt.
func (s *service) Restore(context.Context, *extension.RestoreRequest) (*task.StartResponse, error) {
	return nil, errNoCheckpoint
}

var errNoCheckpoint = fmt.Errorf("fumehood: a pod with a gate has no checkpoints: %w", errdefs.ErrNotImplemented)
