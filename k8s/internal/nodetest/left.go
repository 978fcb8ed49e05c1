// SPDX-License-Identifier: Apache-2.0

package nodetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/fumehood/fumehood/k8s/internal/spare"
)

// Left returns what there is of the pod: processes, mounts, cgroups, namespaces, sockets
// and directories. After StopAndRemove it is empty.
func (p *Pod) Left() []string {
	left := describe(p.Processes())
	paths := []string{p.Netns}
	for _, id := range p.ids() {
		left = append(left, p.node.mounts(id)...)
		left = append(left, p.node.cgroups(id)...)
		paths = append(paths, p.node.shimSocket(id), p.node.path("r", "*", "*"+id+"*"),
			p.node.path("state", "*", "*", id), p.node.path("root", "*", "*", id))
	}
	for _, pattern := range paths {
		found, _ := filepath.Glob(pattern)
		left = append(left, found...)
	}
	return left
}

// Left returns the processes and mounts that belong to this node, except containerd, processes that
// wait for containers, and the empty network namespace that runsc keeps in Root for the gofers of all
// sandboxes.
func (n *Node) Left() []string {
	mounts := slices.DeleteFunc(n.mounts(""), func(point string) bool {
		return point == filepath.Join(n.Root, namespace, "null-netns")
	})
	processes := slices.DeleteFunc(n.Processes(), func(p Process) bool { return spare.Is(p.Command) })
	return append(describe(processes), mounts...)
}

// gone waits until nothing is left: containerd does not wait for shims to end.
func gone(name string, left func() []string) error {
	return poll(context.Background(), endTime, func(context.Context) error {
		if left := left(); len(left) > 0 {
			return fmt.Errorf("left of %s: %q", name, left)
		}
		return nil
	})
}

// A Process is a process of a node other than containerd.
type Process struct {
	Pid     int
	Command string // its arguments, joined by spaces
}

// Processes returns the pod's shims, gofers, sentries with their stubs, and runscs.
func (p *Pod) Processes() []Process {
	return slices.DeleteFunc(p.node.Processes(), func(q Process) bool {
		return !slices.ContainsFunc(p.ids(), func(id string) bool { return strings.Contains(q.Command, id) })
	})
}

// ids are those of the pod and of its containers, including removed ones.
func (p *Pod) ids() []string {
	ids := []string{p.ID}
	for _, c := range p.containers {
		ids = append(ids, c.ID)
	}
	return ids
}

// Processes returns the processes, except containerd, whose command line names the node's
// directory. All of a node's do: they get the path of a socket, of runsc's root or of a bundle.
// Zombies have no command line.
func (n *Node) Processes() []Process {
	var found []Process
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, err := os.ReadFile(path)
		command := string(bytes.ReplaceAll(text, []byte{0}, []byte{' '}))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && !n.isContainerd(pid) && strings.Contains(command, n.Dir+"/") {
			found = append(found, Process{pid, command})
		}
	}
	return found
}

func (n *Node) isContainerd(pid int) bool { return n.containerd != nil && pid == n.Pid() }

func describe(processes []Process) []string {
	var lines []string
	for _, p := range processes {
		lines = append(lines, fmt.Sprintf("process %d: %.200s", p.Pid, p.Command))
	}
	return lines
}

// mounts returns the node's mount points whose path contains id, the last one first.
func (n *Node) mounts(id string) []string {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	var points []string
	for line := range strings.Lines(string(text)) {
		if point := strings.Fields(line)[4]; strings.HasPrefix(point, n.Dir+"/") && strings.Contains(point, id) {
			points = append(points, point)
		}
	}
	slices.Reverse(points)
	return points
}

// end removes the node. Pods that the test did not remove are removed as a kubelet
// would; what remains after that fails the test, and is then removed by force.
func (n *Node) end(t testing.TB) {
	t.Helper()
	if n.containerd != nil {
		if err := n.removePods(); err != nil {
			t.Errorf("cannot remove the node's pods: %v", err)
		}
		if err := n.Kill(syscall.SIGTERM); err != nil {
			t.Error(err)
			_ = n.Kill(syscall.SIGKILL)
		}
		if err := gone("the node", n.Left); err != nil {
			t.Error(err)
		}
	}
	if n.conn != nil {
		n.conn.Close()
	}
	if n.netns != nil {
		n.netns.Close()
	}
	if t.Failed() && n.containerd != nil {
		n.logTail(t)
	}
	if err := n.force(); err != nil {
		t.Error(err)
	}
	n.lock.Close()
}

func (n *Node) removePods() error {
	ctx, cancel := call()
	defer cancel()
	pods, err := n.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		err = errors.Join(err, n.remove(p.Id))
	}
	return err
}

// cgroup is the parent of all cgroups of pods. Runsc makes it, and one for each container
// but a pod's first, although it ignores cgroups. It leaves the parent.
func (n *Node) cgroup() string { return "/" + filepath.Base(n.Dir) }

// cgroups returns the node's cgroups whose path contains id, inner ones first, in the only
// hierarchy (version 2) or in each (version 1).
func (n *Node) cgroups(id string) []string {
	var found []string
	for _, hierarchies := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		parents, _ := filepath.Glob(hierarchies + n.cgroup())
		slices, _ := filepath.Glob(hierarchies + n.cgroup() + ".slice")
		for _, parent := range append(parents, slices...) {
			_ = filepath.WalkDir(parent, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() && strings.Contains(path, id) {
					found = append(found, path)
				}
				return nil // what is gone is not left
			})
		}
	}
	slices.Reverse(found)
	return found
}

// force kills the node's processes and removes everything it has outside its directory,
// and then that.
func (n *Node) force() error {
	var errs []error
	for _, p := range n.Processes() {
		if err := syscall.Kill(p.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, err)
		}
	}
	bundles, _ := filepath.Glob(n.bundle("*"))
	for _, bundle := range bundles {
		if err := os.Remove(n.shimSocket(filepath.Base(bundle))); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, point := range n.mounts("") {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("cannot unmount %s: %w", point, err))
		}
	}
	errs = append(errs, poll(context.Background(), endTime, n.removeCgroups))
	if len(n.mounts("")) == 0 { // or the removal would go through them
		errs = append(errs, os.RemoveAll(n.Dir))
	}
	return errors.Join(errs...)
}

// removeCgroups fails while a process that was killed has not ended.
func (n *Node) removeCgroups(context.Context) error {
	for _, dir := range n.cgroups("") {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // two names of one hierarchy
			return err
		}
	}
	return nil
}

// logTail logs the end of containerd's log.
func (n *Node) logTail(t testing.TB) {
	const limit = 32 << 10
	text, err := n.Log()
	if err != nil {
		t.Error(err)
	}
	t.Logf("containerd's log:\n%s", text[max(0, len(text)-limit):])
}
