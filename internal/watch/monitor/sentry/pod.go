// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"errors"
	"sync"

	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"
	"gvisor.dev/gvisor/pkg/sentry/vfs"
)

// containerHomes are the containers of a sandbox that has several, each with its own mounts and root
// file system. What differs from a sandbox that init made:
//
//   - The root is an overlay over the image unless the container has a read-only root. Then
//     the image's files are wire.LayerWorkspace: they are what came with the container, and a
//     process that may write to one can change it between the check and its first use. With a
//     read-only root they are wire.LayerRootfs. Volumes are wire.LayerWritten, also where they
//     are read-only.
//   - The first process of the sandbox is one like all others: it belongs to a generation.
type containerHomes struct {
	mu    sync.Mutex
	homes map[string]containerHome // by the container's id
}

// A containerHome is what a container's first process began with, before it ran. The references are
// kept, so that no other object gets the same address.
type containerHome struct {
	mounts *vfs.MountNamespace
	root   vfs.VirtualDentry
}

// init reports whether t is of the sandbox's own first process, which belongs to no command.
func (g *execGate) init(t *kernel.Task) bool {
	return g.pod == nil && t.ThreadGroup() == t.Kernel().GlobalInit()
}

// ContainerStart implements seccheck.Sink. It is called before a container's first process
// runs.
func (g *execGate) ContainerStart(_ context.Context, _ seccheck.FieldSet, info *pb.Start) error {
	k := g.capacity.kernel.Load()
	if g.pod == nil || k == nil || info.ContextData == nil {
		return nil // the first container is known at its first Clone
	}
	first := k.RootPIDNamespace().ThreadGroupWithID(kernel.ThreadID(info.ContextData.ThreadGroupId))
	if first == nil || first.Leader() == nil {
		return errors.New("the container has no process")
	}
	return g.pod.addContainer(k, first.Leader())
}

// addContainer keeps the home of t's container, and forgets those of containers that have ended.
func (p *containerHomes) addContainer(k *kernel.Kernel, t *kernel.Task) error {
	h := containerHome{t.MountNamespace(), t.FSContext().RootDirectory()} // which takes a reference
	h.mounts.IncRef()
	left, err := p.putHome(k, t.ContainerID(), h)
	for _, h := range left {
		h.root.DecRef(k.SupervisorContext())
		h.mounts.DecRef(k.SupervisorContext())
	}
	return err
}

// putHome returns the homes that are no longer kept.
func (p *containerHomes) putHome(k *kernel.Kernel, id string, h containerHome) (left []containerHome, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := listContainers(k) // with the lock: what was put before has its processes
	if _, known := p.homes[id]; known {
		return []containerHome{h}, errors.New("the container has started before")
	}
	for old := range p.homes {
		if !running[old] {
			left = append(left, p.homes[old])
			delete(p.homes, old)
		}
	}
	p.homes[id] = h
	return left, nil
}

// listContainers returns those that have processes.
func listContainers(k *kernel.Kernel) map[string]bool {
	ids := map[string]bool{}
	for _, tg := range k.RootPIDNamespace().ThreadGroups() {
		if leader := tg.Leader(); leader != nil {
			ids[leader.ContainerID()] = true
		}
	}
	return ids
}

// homeOf returns the home of t's container. Without one, everything is outside: a container that
// was not seen to start runs no program.
func (p *containerHomes) homeOf(t *kernel.Task) (containerHome, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.homes[t.ContainerID()]
	return h, ok
}

func (p *containerHomes) hasOwnFileTree(t *kernel.Task) bool {
	h, ok := p.homeOf(t)
	if !ok || t.MountNamespace() != h.mounts {
		return true
	}
	got := t.FSContext().RootDirectory()
	defer got.DecRef(t)
	return got != h.root
}

// isRoot reports whether m is the root of t's container.
func (p *containerHomes) isRoot(t *kernel.Task, m *vfs.Mount) bool {
	h, ok := p.homeOf(t)
	return ok && h.root.Mount() == m
}

// rootFS returns the root file system of t's container.
func (p *containerHomes) rootFS(t *kernel.Task) *vfs.Filesystem {
	if h, ok := p.homeOf(t); ok {
		return h.root.Mount().Filesystem()
	}
	return nil
}
