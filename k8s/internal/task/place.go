// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/BurntSushi/toml"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/typeurl/v2"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/types/known/anypb"
	"gvisor.dev/gvisor/pkg/shim/v1/runsc"
	"gvisor.dev/gvisor/pkg/shim/v1/runtimeoptions"

	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// What the CRI plugin of containerd says about a container.
const (
	kindAnnotation      = "io.kubernetes.cri.container-type"
	sandboxAnnotation   = "io.kubernetes.cri.sandbox-id"
	containerAnnotation = "io.kubernetes.cri.container-name"
	namespaceAnnotation = "io.kubernetes.cri.sandbox-namespace"
	nameAnnotation      = "io.kubernetes.cri.sandbox-name"
	uidAnnotation       = "io.kubernetes.cri.sandbox-uid"
)

// A place is where a container is: its names, and the directory that all shims of its pod share.
type place struct {
	namespace string // containerd's
	id        string
	first     bool // it is the pod's first container
	container string
	dir       string
}

// placeOf returns the place of a container. Only what the CRI made is a container of a pod.
func placeOf(state, namespace, id string, spec specs.Spec) (place, error) {
	p := place{namespace: namespace, id: id, container: spec.Annotations[containerAnnotation]}
	sandbox := spec.Annotations[sandboxAnnotation]
	switch spec.Annotations[kindAnnotation] {
	case "sandbox":
		p.first, p.container, sandbox = true, "pause", id
	case "container":
	default:
		sandbox = ""
	}
	if sandbox == "" {
		return p, stop("pod.none", "this is not a container of a pod",
			"start it by Kubernetes or another client of the CRI", nil)
	}
	p.dir = dirOf(state, namespace, sandbox)
	return p, nil
}

// dirOf returns the directory of a pod. Its name is short: sockets are in it.
func dirOf(state, namespace, sandbox string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + sandbox))
	return filepath.Join(state, hex.EncodeToString(sum[:12]))
}

func (p place) door() string   { return filepath.Join(p.dir, "door") }
func (p place) init() string   { return filepath.Join(p.dir, "init") } // a link to fumehood-init
func (p place) config() string { return filepath.Join(p.dir, "runsc.toml") }

// make makes the directory, which must be new.
func (p place) make() error {
	if err := node.Directory(filepath.Dir(p.dir)); err != nil {
		return err
	}
	return os.Mkdir(p.dir, 0o700)
}

// Removed removes what a container has whose shim is gone: the directory of a pod, what a session
// has, or the cgroup that runsc leaves when the sandbox ends while it deletes the container. The
// working directory is the container's bundle.
func Removed(ctx context.Context, id string) error {
	config, err := node.Read()
	if err != nil {
		return err
	}
	ns, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return err
	}
	err = os.RemoveAll(dirOf(config.State, ns, id))
	b, bad := readBundle(".")
	switch {
	case bad != nil: // nothing was created
	case b.isSession():
		err = errors.Join(err, abandoned(config, id, b))
	case b.spec.Annotations[kindAnnotation] == "container":
		err = errors.Join(err, removeEmpty(b.spec.Linux.CgroupsPath, id))
	}
	return err
}

// own are runsc's flags in a pod, whatever the node's file for gVisor says.
func (p place) own() map[string]string {
	network := "none"
	if _, err := os.Lstat(p.netns()); err == nil {
		network = "sandbox" // a namespace whose only device is the gateway's
	}
	return map[string]string{
		"pod-init-config": filepath.Join(p.dir, "trace.json"),
		"network":         network,
		"host-uds":        "none",
		"host-fifo":       "none",
		"overlay2":        "root:self", // the image's files do not change, and what containers write stays inside
	}
}

// configure writes the options of gVisor's shim for all containers of the pod: those of the
// node, which given names, with our own.
func (p place) configure(given *anypb.Any, binary string) (runsc.Options, error) {
	var o runsc.Options
	if given != nil {
		var named runtimeoptions.Options
		if err := typeurl.UnmarshalTo(given, &named); err != nil {
			return o, err
		}
		if path := named.GetConfigPath(); path != "" {
			if _, err := toml.DecodeFile(path, &o); err != nil {
				return o, stop("node.config", "cannot read gVisor's configuration "+path, "correct the file", err)
			}
		}
	}
	if o.Root == "" {
		o.Root = "/run/containerd/runsc"
	}
	flags := p.own()
	for name, value := range o.RunscConfig {
		if _, ours := flags[name]; !ours {
			flags[name] = value
		}
	}
	o.BinaryName, o.Grouping, o.RunscConfig = binary, false, flags
	f, err := os.OpenFile(p.config(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return o, err
	}
	return o, errors.Join(toml.NewEncoder(f).Encode(o), f.Close())
}

// options returns the request's options for gVisor's shim.
func (p place) options() (*anypb.Any, error) {
	any, err := typeurl.MarshalAnyToProto(&runtimeoptions.Options{TypeUrl: "io.containerd.runsc.v1.options",
		ConfigPath: p.config()})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the options: %w", err)
	}
	return any, nil
}

func stop(code, message, hint string, err error) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}
