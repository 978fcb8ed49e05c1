// SPDX-License-Identifier: Apache-2.0

package nodetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// A Driver makes the cgroups of pods, as the option cgroupDriver of a kubelet says.
type Driver string

// Drivers of kubelets. Systemd needs a host that it has started, with version 2 of cgroups.
const (
	Cgroupfs Driver = "cgroupfs"
	Systemd  Driver = "systemd"
)

// Drivers are those that this machine can have.
func Drivers() []Driver {
	if _, err := os.Stat("/run/systemd/system"); err != nil || cgroups.Mode() != cgroups.Unified {
		return []Driver{Cgroupfs}
	}
	return []Driver{Cgroupfs, Systemd}
}

// A PodCgroup is the cgroup of a pod, which a kubelet makes before the pod and removes after it.
type PodCgroup struct {
	Path string // below the mount of cgroups
}

// PodCgroup makes a cgroup for a pod, with limits. It is removed when the test ends, and what is left in
// it then fails the test.
func (n *Node) PodCgroup(t testing.TB, d Driver, limits *specs.LinuxResources) PodCgroup {
	t.Helper()
	form := "%s/pod%d"
	if d == Systemd {
		form = "%[1]s.slice%[1]s-pod%[2]d.slice"
	}
	c := PodCgroup{fmt.Sprintf(form, n.cgroup(), n.pods.Add(1))}
	remove, err := c.make(d, limits)
	if err != nil {
		t.Fatalf("cannot make the cgroup of a pod: %v", err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Errorf("cannot remove the pod's cgroup: %v", err)
		}
	})
	return c
}

func (c PodCgroup) make(d Driver, limits *specs.LinuxResources) (remove func() error, err error) {
	if cgroups.Mode() != cgroups.Unified {
		m, err := cgroup1.New(cgroup1.StaticPath(c.Path), limits)
		if err != nil {
			return nil, err
		}
		return m.Delete, nil
	}
	if d == Systemd {
		m, err := cgroup2.NewSystemd("/", filepath.Base(c.Path), -1, cgroup2.ToResources(limits))
		return m.DeleteSystemd, err
	}
	m, err := cgroup2.NewManager("/sys/fs/cgroup", c.Path, cgroup2.ToResources(limits))
	return m.Delete, err
}

// Holds reports whether a process is in the cgroup, or in one below, in the hierarchy of memory.
func (c PodCgroup) Holds(pid int) (bool, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) == 3 && (part[1] == "memory" || part[1] == "" && cgroups.Mode() == cgroups.Unified) {
			return strings.HasPrefix(part[2], c.Path+"/") || part[2] == c.Path, nil
		}
	}
	return false, errors.New("it is in no cgroup of memory")
}
