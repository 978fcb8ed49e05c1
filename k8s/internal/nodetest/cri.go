// SPDX-License-Identifier: Apache-2.0

package nodetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A Pod is a pod sandbox that RunPod started. Several pods may be used concurrently, but
// not the methods of one.
type Pod struct {
	ID string
	// Netns is the path of the pod's network namespace, and Address the pod's in the node's network.
	Netns, Address string

	node       *Node
	config     *cri.PodSandboxConfig
	containers []*Container
}

// RunPod starts a pod with a handler, Fumehood or GVisor. Of the annotations, those
// that match "fumehood.dev/*" reach the shim.
//
// On an error there is no pod, as far as containerd knows; Left shows what remains.
func (n *Node) RunPod(handler string, annotations map[string]string) (*Pod, error) {
	return n.RunPodIn(PodCgroup{n.cgroup()}, handler, annotations)
}

// RunPodIn is RunPod for a pod whose containers have their cgroups in another one. Without the option
// ignore-cgroups of runsc, the sandbox is in it, too.
func (n *Node) RunPodIn(cgroup PodCgroup, handler string, annotations map[string]string) (*Pod, error) {
	ctx, cancel := call()
	defer cancel()
	name := fmt.Sprintf("pod%d", n.pods.Add(1))
	p := &Pod{node: n, config: &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Uid: name, Namespace: "default"},
		LogDirectory: n.path("logs", name),
		Annotations:  annotations,
		DnsConfig:    &cri.DNSConfig{Servers: []string{Gateway}},
		Linux: &cri.LinuxPodSandboxConfig{CgroupParent: cgroup.Path, SecurityContext: &cri.LinuxSandboxSecurityContext{
			NamespaceOptions: &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER}, // as kubelets do
		}},
	}}
	r, err := n.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: p.config, RuntimeHandler: handler})
	if err != nil {
		return nil, fmt.Errorf("cannot run a pod with handler %s: %w", handler, err)
	}
	p.ID = r.PodSandboxId
	return p, p.findNetns(ctx)
}

func (p *Pod) findNetns(ctx context.Context) error {
	s, err := p.node.runtime.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: p.ID, Verbose: true})
	if err != nil {
		return err
	}
	p.Address = s.Status.GetNetwork().GetIp()
	var info struct{ RuntimeSpec specs.Spec }
	if err := json.Unmarshal([]byte(s.Info["info"]), &info); err != nil {
		return err
	}
	for _, space := range info.RuntimeSpec.Linux.Namespaces {
		if space.Type == specs.NetworkNamespace {
			p.Netns = space.Path
		}
	}
	if p.Netns == "" {
		return errors.New("the pod has no network namespace of its own")
	}
	return nil
}

// bundle is a container's directory, in which its shim works.
func (n *Node) bundle(id string) string {
	return n.path("state", "io.containerd.runtime.v2.task", namespace, id)
}

// shimSocket is where a container's shim listens: the library derives it from containerd's
// address and the container.
func (n *Node) shimSocket(id string) string {
	address, err := shim.SocketAddress(namespaces.WithNamespace(context.Background(), namespace), n.Socket, id, false)
	if err != nil {
		panic("nodetest: internal error: " + err.Error()) // there is a namespace
	}
	return strings.TrimPrefix(address, "unix://")
}

// ContainerOptions describe a container.
type ContainerOptions struct {
	Image       string // empty means Busybox
	Command     []string
	Env         map[string]string
	Dir         string // the working directory
	ReadOnly    bool   // the root file system
	User        int64  // and group, of the first process and of every Exec
	Mounts      []*cri.Mount
	Memory      int64 // limit in bytes; 0 means none
	Annotations map[string]string
}

// A Container is a container of a Pod.
type Container struct {
	ID string

	pod *Pod
	log string
}

// Container creates a container and starts it. If only the start fails, it returns the
// container as well as the error.
func (p *Pod) Container(o ContainerOptions) (*Container, error) {
	if o.Image == "" {
		o.Image = Busybox
	}
	name := fmt.Sprintf("c%d", len(p.containers))
	config := &cri.ContainerConfig{
		Metadata:    &cri.ContainerMetadata{Name: name},
		Image:       &cri.ImageSpec{Image: o.Image},
		Command:     o.Command,
		WorkingDir:  o.Dir,
		Mounts:      o.Mounts,
		Annotations: o.Annotations,
		LogPath:     name + ".log",
		Linux: &cri.LinuxContainerConfig{Resources: &cri.LinuxContainerResources{MemoryLimitInBytes: o.Memory},
			SecurityContext: &cri.LinuxContainerSecurityContext{
				ReadonlyRootfs:   o.ReadOnly,
				RunAsUser:        &cri.Int64Value{Value: o.User},
				RunAsGroup:       &cri.Int64Value{Value: o.User},
				NamespaceOptions: &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER},
			}},
	}
	for key, value := range o.Env {
		config.Envs = append(config.Envs, &cri.KeyValue{Key: key, Value: []byte(value)})
	}
	ctx, cancel := call()
	defer cancel()
	r, err := p.node.runtime.CreateContainer(ctx,
		&cri.CreateContainerRequest{PodSandboxId: p.ID, Config: config, SandboxConfig: p.config})
	if err != nil {
		return nil, fmt.Errorf("cannot create container %s: %w", name, err)
	}
	c := &Container{ID: r.ContainerId, pod: p, log: filepath.Join(p.config.LogDirectory, config.LogPath)}
	p.containers = append(p.containers, c)
	if _, err := p.node.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: c.ID}); err != nil {
		return c, fmt.Errorf("cannot start container %s: %w", name, err)
	}
	return c, nil
}

// ExecResult is what a command printed and how it ended.
type ExecResult struct {
	Stdout, Stderr string
	Code           int32
}

// Exec runs a command in the container to its end, as "kubectl exec" does. A command
// that fails is not an error; one that is refused or cannot be started is.
func (c *Container) Exec(command ...string) (ExecResult, error) {
	ctx, cancel := call()
	defer cancel()
	r, err := c.pod.node.runtime.ExecSync(ctx,
		&cri.ExecSyncRequest{ContainerId: c.ID, Cmd: command, Timeout: int64(callTime/time.Second) / 2})
	if err != nil {
		return ExecResult{}, fmt.Errorf("cannot exec %q: %w", command, err)
	}
	return ExecResult{string(r.Stdout), string(r.Stderr), r.ExitCode}, nil
}

// Logs returns what the container printed, on both streams. The last of it may arrive a
// moment after the container has ended.
func (c *Container) Logs() (string, error) {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(line, " ", 4) // time, stream, whether the line ends, text
		if len(part) != 4 {
			return "", fmt.Errorf("invalid line %q in the log", line)
		}
		if part[2] == "P" {
			part[3] = strings.TrimSuffix(part[3], "\n")
		}
		out.WriteString(part[3])
	}
	return out.String(), nil
}

// Status returns the container's state as CRI shows it.
func (c *Container) Status() (*cri.ContainerStatus, error) {
	ctx, cancel := call()
	defer cancel()
	r, err := c.pod.node.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: c.ID})
	return r.GetStatus(), err
}

// Wait waits until the container has ended and returns its status.
func (c *Container) Wait() (*cri.ContainerStatus, error) {
	var status *cri.ContainerStatus
	err := poll(context.Background(), callTime, func(context.Context) (err error) {
		if status, err = c.Status(); err == nil && status.State != cri.ContainerState_CONTAINER_EXITED {
			err = fmt.Errorf("container %s is in state %s", c.ID, status.State)
		}
		return err
	})
	return status, err
}

// StopAndRemove sends the container SIGTERM, and SIGKILL after a second, and removes it.
func (c *Container) StopAndRemove() error {
	ctx, cancel := call()
	defer cancel()
	if _, err := c.pod.node.runtime.StopContainer(ctx,
		&cri.StopContainerRequest{ContainerId: c.ID, Timeout: 1}); err != nil {
		return fmt.Errorf("cannot stop container %s: %w", c.ID, err)
	}
	if _, err := c.pod.node.runtime.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: c.ID}); err != nil {
		return fmt.Errorf("cannot remove container %s: %w", c.ID, err)
	}
	return nil
}

// StopAndRemove ends the pod with its containers and removes them. It is an error if a
// process, mount, cgroup, namespace, socket or directory of the pod is left then.
func (p *Pod) StopAndRemove() error {
	if err := p.node.remove(p.ID); err != nil {
		return err
	}
	return gone("pod "+p.ID, p.Left)
}

func (n *Node) remove(pod string) error {
	ctx, cancel := call()
	defer cancel()
	if _, err := n.runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: pod}); err != nil {
		return fmt.Errorf("cannot stop pod %s: %w", pod, err)
	}
	// As the kubelet does, again while containerd has not heard of a container's end.
	for {
		_, err := n.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: pod})
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "container is still running") {
			if err != nil {
				err = fmt.Errorf("cannot remove pod %s: %w", pod, err)
			}
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// call returns a context for one call. It is not the test's, which has ended when the
// node is removed.
func call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), callTime)
}
