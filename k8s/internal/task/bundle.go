// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/fumehood/fumehood/k8s/internal/pod"
)

// A bundle is a container's, as containerd made it.
type bundle struct {
	path string
	spec specs.Spec
}

func readBundle(dir string) (bundle, error) {
	b := bundle{path: filepath.Join(dir, "config.json")}
	data, err := os.ReadFile(b.path)
	if err == nil {
		err = json.Unmarshal(data, &b.spec)
	}
	if err == nil && (b.spec.Process == nil || len(b.spec.Process.Args) == 0) {
		err = errors.New("it has no command")
	}
	if err == nil && b.spec.Linux == nil {
		err = errors.New("it is not for Linux")
	}
	if err != nil {
		return b, stop("pod.bundle", "cannot use the container's bundle", "look at the image's command", err)
	}
	return b, nil
}

// process returns the container's command.
func (b bundle) process(container string) pod.Process {
	return pod.Process{Container: container, Argv: slices.Clone(b.spec.Process.Args), Env: b.spec.Process.Env,
		Root: b.root()}
}

// root is where gVisor's shim mounts the container's root file system.
func (b bundle) root() string { return filepath.Join(filepath.Dir(b.path), "rootfs") }

// shows returns the paths of the host that the container mounts.
func (b bundle) shows() (sources []string) {
	for _, m := range b.spec.Mounts {
		switch {
		case filepath.IsAbs(m.Source):
			sources = append(sources, m.Source)
		case m.Type == "bind" || slices.Contains(m.Options, "bind") || slices.Contains(m.Options, "rbind"):
			sources = append(sources, filepath.Join(filepath.Dir(b.path), m.Source))
		}
	}
	return sources
}

// change has the container's command started by init, which is a program of the node, and
// removes the annotations with which a pod could configure gVisor.
func (b bundle) change(init string) error {
	for _, m := range b.spec.Mounts {
		if rest, ours := strings.CutPrefix(path.Clean("/"+m.Destination), path.Dir(pod.Init)); ours &&
			(rest == "" || rest[0] == '/') {
			return stop("pod.mount", fmt.Sprintf("the container has a mount at %q, which is the gate's", m.Destination),
				"mount it elsewhere", nil)
		}
	}
	b.spec.Process.Args = pod.Through(b.spec.Process.Args)
	b.spec.Mounts = append(b.spec.Mounts,
		specs.Mount{Destination: pod.Init, Type: "bind", Source: init,
			Options: []string{"bind", "ro", "nosuid", "nodev"}})
	for name := range b.spec.Annotations {
		if strings.HasPrefix(name, "dev.gvisor.") {
			delete(b.spec.Annotations, name)
		}
	}
	data, err := json.Marshal(b.spec)
	if err != nil {
		return err
	}
	return os.WriteFile(b.path, data, 0o600)
}
