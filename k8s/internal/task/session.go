// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/runtime/task/v2"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/pkg/sys/reaper"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/session"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// sessionAnnotation makes a pod a session of fumehood serve: its only container is a process of
// package session, whose gate starts the sandbox. Nothing of the container's command runs.
const sessionAnnotation = "fumehood.dev/session"

// sessionCommand is the command of that container. No other is accepted, because none would run.
const sessionCommand = "session"

// given are the mounts that every container has: a session shows none of them.
var given = []string{"/etc/hosts", "/etc/hostname", resolvConf, "/dev/shm", "/dev/termination-log"}

const serviceAccounts = "/var/run/secrets/kubernetes.io/serviceaccount"

// A launch is what the shim has made for the container of a session.
type launch struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed when code, the exit status, is set; nil before the process runs
	code   int
	life   *os.File // the process ends when it is closed
	rootfs string   // a mount
	cgroup *containerCgroup
	work   string
}

func (b bundle) isSession() bool { return b.spec.Annotations[sessionAnnotation] == "true" }

// sessionOf returns what is wrong with the container of a session.
func (b bundle) sessionOf() error {
	if !slices.Equal(b.spec.Process.Args, []string{sessionCommand}) {
		return stop("session.command",
			fmt.Sprintf("the container of a session has the command %q", b.spec.Process.Args),
			`set its command to ["session"], and no arguments`, nil)
	}
	for _, m := range b.spec.Mounts {
		if (m.Type == "bind" || slices.Contains(m.Options, "rbind") || slices.Contains(m.Options, "bind")) &&
			!slices.Contains(given, m.Destination) && m.Destination != serviceAccounts {
			return stop("session.volume", fmt.Sprintf("the container of a session has a volume at %q", m.Destination),
				"remove it: a session shows the files of its image alone", nil)
		}
	}
	return nil
}

// hold makes the directory of a session's pod. It has the path of the pod's network namespace: the
// specs of other containers have that of this process, because the first one has none.
func (p place) hold(spec specs.Spec) error {
	namespace := namespaceOf(spec)
	if namespace == "" {
		return stop("pod.network", "the pod has no network namespace of its own", "do not use the node's network", nil)
	}
	if err := p.make(); err != nil {
		return stop("pod.state", "cannot make the pod's directory", "look at the node's directory for state", err)
	}
	return os.Symlink(namespace, p.netns())
}

// launchSession starts the process of a session, and returns when it can be opened.
func launchSession(
	ctx context.Context, config node.Config, p place, b bundle, r *task.CreateTaskRequest,
) (l *launch, err error) {
	if config.Sessions == nil {
		return nil, stop("session.none", "this node has no sessions",
			"add [sessions] to the node's configuration, or send the pod to other nodes", nil)
	}
	if err := b.sessionOf(); err != nil {
		return nil, err
	}
	l = &launch{work: workOf(config, p.id)}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.remove())
		}
	}()
	if err := l.mount(b.root(), r.Rootfs); err != nil {
		return l, stop("session.root", "cannot mount the files of the image", "look at containerd's log", err)
	}
	if l.cgroup, err = newContainerCgroup(b.spec.Linux); err != nil {
		return l, stop("session.cgroup", "cannot make the cgroup of the container", "look at the pod's limits", err)
	}
	c, err := sessionConfig(config, p, b, l)
	if err != nil {
		return l, err
	}
	return l, l.start(ctx, c, r.Stderr)
}

func (l *launch) mount(root string, rootfs []*types.Mount) error {
	if err := os.MkdirAll(root, 0o711); err != nil {
		return err
	}
	l.rootfs = root
	var all []mount.Mount
	for _, m := range rootfs {
		all = append(all, mount.Mount{Type: m.Type, Source: m.Source, Target: m.Target, Options: m.Options})
	}
	return mount.All(all, root)
}

// sessionConfig describes the session to its process.
func sessionConfig(config node.Config, p place, b bundle, l *launch) (c session.Config, err error) {
	about := b.spec.Annotations
	netns, err := os.Readlink(p.netns())
	if err != nil {
		return c, stop("pod.network", "the pod's network namespace is unknown", "start the pod again", err)
	}
	c = session.Config{Namespace: about[namespaceAnnotation], Named: about[node.Annotation], Root: b.root(),
		Work:  l.work,
		Netns: netns, Gateway: []string{"/proc/self/exe", enterName, netns},
		Ceiling: ceiling(b.spec.Linux.Resources), Cgroup: l.cgroup.inner()}
	if c.Policy, err = config.Choose(c.Namespace, c.Named); err != nil {
		return c, err
	}
	if c.Log, err = logPath(config, about, p.id); err != nil {
		return c, err
	}
	c.Resolvers, _ = nameServers(b.spec) // a pod without a network has none
	return c, nil
}

// ownMemory is what the process of a session may use of the container's limit.
const ownMemory = 192 * proposal.MiB

// ceiling returns the limits of a container as those of its sandbox.
func ceiling(r *specs.LinuxResources) (l proposal.Limits) {
	if r == nil {
		return l
	}
	if r.Memory != nil && r.Memory.Limit != nil && *r.Memory.Limit > 0 {
		l.Memory = max(proposal.Bytes(*r.Memory.Limit)-ownMemory, 1)
	}
	if c := r.CPU; c != nil && c.Quota != nil && c.Period != nil && *c.Quota > 0 && *c.Period > 0 {
		l.CPUs = float64(*c.Quota) / float64(*c.Period)
	}
	return l
}

// start starts the process, and waits until it says that it is ready.
func (l *launch) start(ctx context.Context, c session.Config, output string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	in, life, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	l.life = life
	said, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	defer out.Close()
	l.cmd = exec.Command("/proc/self/exe", session.Name, c.Root)
	l.cmd.Stdin, l.cmd.Stdout = in, out
	l.cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", node.Variable + "=" + os.Getenv(node.Variable)}
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if output != "" {
		log, err := os.OpenFile(output, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer log.Close()
		l.cmd.Stderr = log
	}
	if err := l.run(); err != nil {
		return err
	}
	_ = out.Close()
	_ = in.Close()
	if _, err := life.Write(text); err != nil {
		return err
	}
	return l.ready(ctx, said)
}

// run starts the process in the container's cgroup, under the shim's reaper.
func (l *launch) run() error {
	exited, err := reaper.Default.Start(l.cmd)
	if err != nil {
		return stop("session.start", "cannot start the session's process", "look at the shim's log", err)
	}
	l.ended = make(chan struct{})
	go func() {
		defer close(l.ended)
		l.code, _ = reaper.Default.Wait(l.cmd, exited)
	}()
	return l.cgroup.add(l.cmd.Process.Pid)
}

// ready waits until the process can be used, or has said why it cannot.
func (l *launch) ready(ctx context.Context, said *os.File) error {
	defer context.AfterFunc(ctx, func() { _ = l.cmd.Process.Kill() })()
	var state session.State
	if err := json.NewDecoder(said).Decode(&state); err != nil {
		return stop("session.start", "the session's process has ended", "look at the container's log",
			errors.Join(err, ctx.Err()))
	}
	if f := state.Failure; f != nil {
		return &proposal.StopError{Code: f.Code, Message: f.Message, Hint: f.Hint}
	}
	return nil
}

// end has the process end, which seals its log, and kills it if it takes too long.
func (l *launch) end() {
	_ = l.life.Close()
	time.AfterFunc(endGrace, func() { _ = l.cmd.Process.Kill() })
}

// remove ends the process and removes what it had.
func (l *launch) remove() error {
	if l.ended != nil {
		l.end()
		<-l.ended
	} else if l.life != nil {
		_ = l.life.Close()
	}
	var err error
	if l.rootfs != "" {
		err = mount.UnmountAll(l.rootfs, 0)
	}
	return errors.Join(err, l.cgroup.remove(), os.RemoveAll(l.work))
}

// abandoned removes what a session has whose shim is gone. Its process is ending, and seals its log.
func abandoned(config node.Config, id string, b bundle) error {
	if b.spec.Annotations[kindAnnotation] != "container" || config.Sessions == nil {
		return nil // the first container has nothing
	}
	var err error
	if name := b.spec.Linux.CgroupsPath; name != "" {
		err = removeCgroup(cgroupPath(name), lateGrace)
	}
	return errors.Join(err, os.RemoveAll(workOf(config, id)))
}

func workOf(config node.Config, id string) string { return filepath.Join(config.Sessions.Work, id) }

// lateGrace is less than what containerd gives to the removal of a dead shim.
const lateGrace = 3 * time.Second

// endGrace is how long a session's process may take to seal its log.
const endGrace = 15 * time.Second

// logPath returns the path of the log of a container's run, in the directory of its pod.
func logPath(config node.Config, about map[string]string, id string) (string, error) {
	name := fmt.Sprintf("%s_%s_%s", about[namespaceAnnotation], about[nameAnnotation], about[uidAnnotation])
	if strings.ContainsAny(name, "/\x00") {
		return "", stop("pod.name", fmt.Sprintf("the pod's name %q cannot be a directory's", name),
			"start it by Kubernetes", nil)
	}
	if err := node.Directory(config.Logs); err != nil {
		return "", err
	}
	return filepath.Join(config.Logs, name, id[:min(12, len(id))]+".jsonl"), nil
}
