// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/containerd/typeurl/v2"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/anypb"
)

const cgroupMount = "/sys/fs/cgroup"

// A containerCgroup is that of a session's container. The session's process is in it, and its
// sandbox in another below. A nil one is that of a container without a cgroup.
type containerCgroup struct {
	path string // below the mount
	v1   cgroup1.Cgroup
	v2   *cgroup2.Manager
	own  *cgroup2.Manager // of the process: on version 2 the upper one must have none
}

// newContainerCgroup makes the cgroup that the spec names, with its limits.
func newContainerCgroup(l *specs.Linux) (c *containerCgroup, err error) {
	if l.CgroupsPath == "" {
		return nil, nil
	}
	c = &containerCgroup{path: cgroupPath(l.CgroupsPath)}
	limits := &specs.LinuxResources{}
	if r := l.Resources; r != nil {
		limits.CPU, limits.Memory, limits.Pids = r.CPU, r.Memory, r.Pids
	}
	if cgroups.Mode() != cgroups.Unified {
		c.v1, err = cgroup1.New(cgroup1.StaticPath(c.path), limits)
		return c, err
	}
	if c.v2, err = cgroup2.NewManager(cgroupMount, c.path, cgroup2.ToResources(limits)); err != nil {
		return c, err
	}
	// A kubelet leaves it to the runtime to enable controllers below a pod. The sandbox has limits of its
	// own, also where the container has none.
	if err = c.v2.ToggleControllers([]string{"cpu", "memory", "pids"}, cgroup2.Enable); err != nil {
		return c, err
	}
	c.own, err = c.v2.NewChild("host", &cgroup2.Resources{})
	return c, err
}

// cgroupPath returns the path of a cgroup. systemd's notation, SLICE:PREFIX:NAME, is that of a scope
// in a slice, whose parents are in its name.
func cgroupPath(name string) string {
	parts := strings.Split(name, ":")
	if len(parts) != 3 {
		return filepath.Join("/", name)
	}
	path, upper := "/", ""
	for _, word := range strings.Split(strings.TrimSuffix(parts[0], ".slice"), "-") {
		upper += word
		path = filepath.Join(path, upper+".slice")
		upper += "-"
	}
	return filepath.Join(path, fmt.Sprintf("%s-%s.scope", parts[1], parts[2]))
}

// inner returns the parent of the sandbox's cgroup.
func (c *containerCgroup) inner() string {
	if c == nil {
		return ""
	}
	return c.path
}

// add moves the session's process into the cgroup.
func (c *containerCgroup) add(pid int) error {
	switch {
	case c == nil:
		return nil
	case c.v1 != nil:
		return c.v1.AddProc(uint64(pid))
	}
	return c.own.AddProc(uint64(pid))
}

// stats returns what the container uses.
func (c *containerCgroup) stats() (*anypb.Any, error) {
	switch {
	case c == nil:
		return nil, errors.New("the container has no cgroup")
	case c.v1 != nil:
		m, err := c.v1.Stat(cgroup1.IgnoreNotExist)
		if err != nil {
			return nil, err
		}
		return typeurl.MarshalAnyToProto(m)
	}
	m, err := c.v2.Stat()
	if err != nil {
		return nil, err
	}
	return typeurl.MarshalAnyToProto(m)
}

// remove removes the cgroup, and what a process that was killed has left in it.
func (c *containerCgroup) remove() error {
	if c == nil {
		return nil
	}
	return removeCgroup(c.path, 0)
}

// removeTime is how long killed processes may take to end.
const removeTime = 5 * time.Second

// removeCgroup removes a cgroup, with those below it, from all hierarchies. What runs in it has the
// grace to end, and is killed then.
func removeCgroup(path string, grace time.Duration) error {
	dirs := cgroupDirs(path)
	var err error
	for kill := time.Now().Add(grace); ; time.Sleep(10 * time.Millisecond) {
		err = nil
		for _, dir := range dirs {
			err = errors.Join(err, removeDirs(dir, time.Now().After(kill)))
		}
		if err == nil || time.Now().After(kill.Add(removeTime)) {
			return err
		}
	}
}

// cgroupDirs returns the directories of a cgroup, of which version 1 has one in each hierarchy.
func cgroupDirs(path string) []string {
	if cgroups.Mode() == cgroups.Unified {
		return []string{filepath.Join(cgroupMount, path)}
	}
	dirs, _ := filepath.Glob(cgroupMount + "/*" + path) // the pattern is valid
	return dirs
}

// removeEmpty removes the cgroup of a container, which the name of its spec has the ID of. It kills
// nothing.
func removeEmpty(name, id string) (err error) {
	path := cgroupPath(name)
	if id == "" || !strings.Contains(filepath.Base(path), id) {
		return nil // the container has none of its own
	}
	for _, dir := range cgroupDirs(path) {
		err = errors.Join(err, removeDirs(dir, false))
	}
	return err
}

// removeDirs removes a directory of one hierarchy, or kills what runs in it.
func removeDirs(dir string, kill bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeDirs(filepath.Join(dir, e.Name()), kill))
		}
	}
	if err != nil {
		return err
	}
	if err = unix.Rmdir(dir); err == nil || err == unix.ENOENT {
		return nil
	}
	if kill {
		err = errors.Join(err, killAll(filepath.Join(dir, "cgroup.procs")))
	}
	return fmt.Errorf("cannot remove the cgroup %s: %w", dir, err)
}

// killAll kills the processes that a file of a cgroup lists.
func killAll(procs string) error {
	text, err := os.ReadFile(procs)
	for _, word := range strings.Fields(string(text)) {
		if pid, bad := strconv.Atoi(word); bad == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	return err
}
