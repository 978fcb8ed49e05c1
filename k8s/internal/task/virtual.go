// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/runtime/task/v2"
	status "github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/log"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"gvisor.dev/gvisor/pkg/shim/v1/extension"

	"github.com/fumehood/fumehood/k8s/internal/node"
)

// A virtual is the task service of a container of a session. gVisor's shim has no part in it: the
// first container has no process, and the other one that of package session, which starts the
// sandbox itself.
type virtual struct {
	node    node.Config
	request *task.CreateTaskRequest
	place   place
	launch  *launch // nil for the first container

	mu      sync.Mutex
	status  status.Status
	code    uint32
	exited  time.Time
	ended   chan struct{} // closed when the two are set
	deleted bool
}

func newVirtual(config node.Config) *virtual {
	return &virtual{node: config, ended: make(chan struct{})}
}

// Create implements task.TaskService.
func (v *virtual) Create(ctx context.Context, r *task.CreateTaskRequest) (*task.CreateTaskResponse, error) {
	ns, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return nil, err
	}
	b, err := readBundle(r.Bundle)
	if err != nil {
		return nil, refused(err)
	}
	if v.place, err = placeOf(v.node.State, ns, r.ID, b.spec); err == nil {
		err = v.make(ctx, r, b)
	}
	if err != nil {
		return nil, refused(err)
	}
	v.request, v.status = r, status.Status_CREATED
	if v.launch != nil {
		go v.follow()
	}
	return &task.CreateTaskResponse{Pid: v.pid()}, nil
}

// make makes the pod's directory, or starts the session's process.
func (v *virtual) make(ctx context.Context, r *task.CreateTaskRequest, b bundle) (err error) {
	switch {
	case r.Terminal:
		return stop("session.terminal", "the container of a session has a terminal", "remove tty from the pod's spec",
			nil)
	case v.place.first:
		return v.place.hold(b.spec)
	}
	v.launch, err = launchSession(ctx, v.node, v.place, b, r)
	return err
}

// follow waits for the session's process.
func (v *virtual) follow() {
	<-v.launch.ended
	v.end(uint32(v.launch.code))
}

// pid is that of the session's process, or of the shim.
func (v *virtual) pid() uint32 {
	if v.launch != nil {
		return uint32(v.launch.cmd.Process.Pid)
	}
	return uint32(os.Getpid())
}

// Start implements task.TaskService.
func (v *virtual) Start(_ context.Context, r *task.StartRequest) (*task.StartResponse, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.ExecID != "" || v.status != status.Status_CREATED {
		return nil, fmt.Errorf("fumehood: the container was not created, or was started before: %w",
			errdefs.ErrFailedPrecondition)
	}
	v.status = status.Status_RUNNING
	(&filler{state: v.node.State}).later()
	return &task.StartResponse{Pid: v.pid()}, nil
}

func (v *virtual) end(code uint32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.status != status.Status_STOPPED {
		v.status, v.code, v.exited = status.Status_STOPPED, code, time.Now()
		close(v.ended)
	}
}

// Kill implements task.TaskService.
func (v *virtual) Kill(_ context.Context, r *task.KillRequest) (*emptypb.Empty, error) {
	if r.ExecID != "" {
		return nil, errNoExec
	}
	v.mu.Lock()
	now := v.status
	v.mu.Unlock()
	switch {
	case now == status.Status_STOPPED:
		return nil, fmt.Errorf("fumehood: the container has ended: %w", errdefs.ErrNotFound)
	case v.launch == nil:
		v.end(128 + r.Signal)
		return &emptypb.Empty{}, nil
	}
	if r.Signal == uint32(syscall.SIGKILL) {
		v.launch.end()
		return &emptypb.Empty{}, nil
	}
	return &emptypb.Empty{}, v.launch.cmd.Process.Signal(syscall.Signal(r.Signal))
}

// Wait implements task.TaskService.
func (v *virtual) Wait(ctx context.Context, r *task.WaitRequest) (*task.WaitResponse, error) {
	if r.ExecID != "" {
		return nil, errNoExec
	}
	select {
	case <-v.ended:
		return &task.WaitResponse{ExitStatus: v.code, ExitedAt: timestamppb.New(v.exited)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// State implements task.TaskService.
func (v *virtual) State(_ context.Context, r *task.StateRequest) (*task.StateResponse, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.ExecID != "" || v.request == nil {
		return nil, errNoExec
	}
	o := v.request
	s := &task.StateResponse{ID: o.ID, Bundle: o.Bundle, Pid: v.pid(), Status: v.status, Stdin: o.Stdin,
		Stdout: o.Stdout, Stderr: o.Stderr, ExitStatus: v.code}
	if v.status == status.Status_STOPPED {
		s.ExitedAt = timestamppb.New(v.exited)
	}
	return s, nil
}

// Delete implements task.TaskService.
func (v *virtual) Delete(ctx context.Context, r *task.DeleteRequest) (*task.DeleteResponse, error) {
	if r.ExecID != "" {
		return nil, errNoExec
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.status == status.Status_RUNNING {
		return nil, fmt.Errorf("fumehood: the container runs: %w", errdefs.ErrFailedPrecondition)
	}
	pid := v.pid()
	if !v.deleted {
		if err := v.remove(); err != nil {
			log.G(ctx).WithError(err).Error("cannot remove all of the session")
		}
	}
	v.deleted = true
	return &task.DeleteResponse{Pid: pid, ExitStatus: v.code, ExitedAt: timestamppb.New(v.exited)}, nil
}

func (v *virtual) remove() error {
	switch {
	case v.place.first:
		return os.RemoveAll(v.place.dir)
	case v.launch == nil: // it could not be made
		return nil
	}
	return v.launch.remove()
}

// Shutdown implements task.TaskService.
func (v *virtual) Shutdown(context.Context, *task.ShutdownRequest) (*emptypb.Empty, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.request != nil && !v.deleted {
		return nil, errors.New("the container was not deleted")
	}
	return &emptypb.Empty{}, nil
}

// Pids implements task.TaskService.
func (v *virtual) Pids(context.Context, *task.PidsRequest) (*task.PidsResponse, error) {
	return &task.PidsResponse{Processes: []*status.ProcessInfo{{Pid: v.pid()}}}, nil
}

// Connect implements task.TaskService.
func (v *virtual) Connect(context.Context, *task.ConnectRequest) (*task.ConnectResponse, error) {
	return &task.ConnectResponse{ShimPid: uint32(os.Getpid()), TaskPid: v.pid()}, nil
}

// Stats implements task.TaskService.
func (v *virtual) Stats(context.Context, *task.StatsRequest) (*task.StatsResponse, error) {
	if v.launch == nil {
		return nil, errNone
	}
	stats, err := v.launch.cgroup.stats()
	if err != nil {
		return nil, err
	}
	return &task.StatsResponse{Stats: stats}, nil
}

// CloseIO implements task.TaskService.
func (v *virtual) CloseIO(context.Context, *task.CloseIORequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

var (
	errNoExec = fmt.Errorf("fumehood: session.exec: nothing can be started in the pod of a session but by its client (use fumehood serve): %w", errdefs.ErrPermissionDenied)
	errNone   = fmt.Errorf("fumehood: the container of a session does not have that: %w", errdefs.ErrNotImplemented)
)

// Exec implements task.TaskService.
func (v *virtual) Exec(context.Context, *task.ExecProcessRequest) (*emptypb.Empty, error) {
	return nil, errNoExec
}

// ResizePty implements task.TaskService.
func (v *virtual) ResizePty(context.Context, *task.ResizePtyRequest) (*emptypb.Empty, error) {
	return nil, errNone
}

// Pause implements task.TaskService.
func (v *virtual) Pause(context.Context, *task.PauseRequest) (*emptypb.Empty, error) {
	return nil, errNone
}

// Resume implements task.TaskService.
func (v *virtual) Resume(context.Context, *task.ResumeRequest) (*emptypb.Empty, error) {
	return nil, errNone
}

// Checkpoint implements task.TaskService.
func (v *virtual) Checkpoint(context.Context, *task.CheckpointTaskRequest) (*emptypb.Empty, error) {
	return nil, errNone
}

// Update implements task.TaskService.
func (v *virtual) Update(context.Context, *task.UpdateTaskRequest) (*emptypb.Empty, error) {
	return nil, errNone
}

// CreateWithFSRestore implements extension.TaskServiceExt.
func (v *virtual) CreateWithFSRestore(
	context.Context, *extension.CreateWithFSRestoreRequest,
) (*task.CreateTaskResponse, error) {
	return nil, errNone
}

// Restore implements extension.TaskServiceExt.
func (v *virtual) Restore(context.Context, *extension.RestoreRequest) (*task.StartResponse, error) {
	return nil, errNone
}
