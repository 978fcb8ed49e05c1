// SPDX-License-Identifier: Apache-2.0

// Package clustertest starts a Kubernetes of one node around a nodetest.Node, for tests: etcd, the
// API server, the scheduler, the controller manager and a kubelet, and runs kubectl.
//
// The programs are those of Version, built from the module proxy into the user's cache, and the
// distribution's etcd. All of them run in the node's network namespace, below its directory, and
// with certificates made for the test. The kubelet has a mount namespace of its own, in which the
// kernel's settings that it would change on the machine are files.
//
// It is not what a cluster is in some respects: pods are in no cgroup of the kubelet's, so that
// their limits have no effect, nothing is evicted, no service but the API server's has an address
// (there is no kube-proxy and no DNS), and the node's only address is on its loopback interface.
//
// Simulate has many nodes instead, which kwok simulates: nothing runs in their pods.
package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fumehood/fumehood/k8s/internal/nodetest"
)

const (
	buildTime = 2 * time.Hour
	readyTime = 2 * time.Minute
	callTime  = time.Minute
	endTime   = 20 * time.Second
)

const (
	serverAddress = nodetest.Address + ":6443"
	server        = "https://" + serverAddress
	// service is the address of the API server for pods, the first one for services.
	service = "10.96.0.1"
)

// NodeName is that of the only node.
const NodeName = "node"

// A Cluster is a running Kubernetes.
type Cluster struct {
	node    *nodetest.Node
	dir     string
	kubectl string
	running []process
	issuer  *authority
	flags   Flags
	mounted bool
}

// Flags are added to those of a program, by its name.
type Flags map[string][]string

type process struct {
	name  string
	path  string
	args  []string
	cmd   *exec.Cmd
	ended chan error
}

// Build builds or finds everything that a cluster and its node need. Without it, the first start does, which
// has less time.
func Build(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildTime)
	defer cancel()
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"} {
		if _, err := build(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := etcd(ctx); err != nil {
		t.Fatal(err)
	}
	if err := nodetest.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
}

// Start returns a cluster whose only node is n. It fails the test if that does not get ready. When
// the test ends, pods are deleted and the programs end, or the test fails.
func Start(t testing.TB, n *nodetest.Node) *Cluster {
	t.Helper()
	c := StartServer(t, n)
	ctx, cancel := context.WithTimeout(t.Context(), readyTime)
	defer cancel()
	if err := c.startNode(ctx); err != nil {
		t.Fatalf("cannot start Kubernetes: %v", err)
	}
	n.Service(t, service, "443", serverAddress)
	return c
}

// StartServer is like Start without the kubelet, the scheduler and the controller manager: only
// the API server and etcd run.
func StartServer(t testing.TB, n *nodetest.Node) *Cluster {
	t.Helper()
	return StartServerWith(t, n, nil)
}

// StartServerWith is StartServer with flags for all programs, also those that start later.
func StartServerWith(t testing.TB, n *nodetest.Node, flags Flags) *Cluster {
	t.Helper()
	c := &Cluster{node: n, flags: flags, dir: filepath.Join(n.Dir, "kubernetes")}
	t.Cleanup(func() { c.end(t) })
	ctx, cancel := context.WithTimeout(t.Context(), readyTime)
	defer cancel()
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := c.startServer(ctx); err != nil {
		t.Fatalf("cannot start the API server: %v", err)
	}
	return c
}

// prepare writes certificates and configuration.
func (c *Cluster) prepare() error {
	for _, dir := range []string{c.dir, c.path("kubelet")} {
		if err := os.Mkdir(dir, 0o711); err != nil {
			return err
		}
	}
	a, err := newAuthority(c.dir)
	if err != nil {
		return err
	}
	c.issuer = a
	return errors.Join(
		a.issue("server", "kube-apiserver", "system:masters"), // the kubelet knows it as a client, too
		a.client("admin", "admin", "system:masters"),
		a.client("scheduler", "system:kube-scheduler"),
		a.client("manager", "system:kube-controller-manager"),
		a.client("node", "system:node:"+NodeName, "system:nodes"),
		os.WriteFile(c.path("resolv.conf"), nil, 0o644),
		writeJSON(c.path("kubelet.conf"), c.kubelet()))
}

// startServer starts etcd and the API server, and waits until that is ready.
func (c *Cluster) startServer(ctx context.Context) error {
	store, err := etcd(ctx)
	if err != nil {
		return err
	}
	if c.kubectl, err = build(ctx, "kubectl"); err != nil {
		return err
	}
	if err := c.run("etcd", store, etcdFlags(c.path("etcd"))...); err != nil {
		return err
	}
	if err := c.program(ctx, "kube-apiserver", c.serverFlags()...); err != nil {
		return err
	}
	_, err = c.Wait(ctx, "ok", "get", "--raw", "/readyz")
	return err
}

// StartControl starts the scheduler and the controller manager.
func (c *Cluster) StartControl(ctx context.Context) error {
	err := c.program(ctx, "kube-scheduler", "--kubeconfig="+c.path("scheduler.conf"), "--leader-elect=false",
		"--bind-address="+nodetest.Address)
	if err != nil {
		return err
	}
	return c.program(ctx, "kube-controller-manager", c.managerFlags()...)
}

// startNode starts everything else, and waits until the node is ready and its namespace has the
// service account that pods need.
func (c *Cluster) startNode(ctx context.Context) error {
	if err := c.StartControl(ctx); err != nil {
		return err
	}
	if err := c.startKubelet(ctx); err != nil {
		return err
	}
	if _, err := c.Wait(ctx, "True", "get", "node", NodeName,
		`-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}`); err != nil {
		return err
	}
	_, err := c.Wait(ctx, "default", "get", "serviceaccount", "default")
	return err
}

// startKubelet starts the kubelet in its mount namespace. Its directory is shared, so that
// containerd sees what it mounts for pods.
func (c *Cluster) startKubelet(ctx context.Context) error {
	kubelet, err := build(ctx, "kubelet")
	if err != nil {
		return err
	}
	dir := c.path("kubelet")
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	c.mounted = true
	if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
		return err
	}
	return c.run("kubelet", "unshare", "--mount", "--propagation", "unchanged", "sh", "-ec", hide, "kubelet",
		c.path("settings"), kubelet,
		"--config="+c.path("kubelet.conf"), "--kubeconfig="+c.path("node.conf"), "--root-dir="+dir,
		"--cert-dir="+c.path("pki"),
		"--hostname-override="+NodeName, "--node-ip="+nodetest.Address)
}

// hide hides from the kubelet what it would change outside its directory, and becomes it. $1 is a
// directory for the kernel's settings, which have the values that the kubelet wants.
const hide = `
settings=$1; shift
mount --make-private /
mount --make-rprivate /proc
mkdir "$settings"
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
	kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	name=${setting%=*}; file=$settings/${name##*/}
	echo "${setting#*=}" > "$file"
	mount --bind "$file" "/proc/sys/$name"
done
own="$settings/own" # directory of the shim, in a test that has mounts of its own
mkdir "$own"
if [ -d /var/lib/fumehood ]; then mount --bind /var/lib/fumehood "$own"; fi
mount -t tmpfs none /var/lib
mkdir /var/lib/fumehood
mount --bind "$own" /var/lib/fumehood
mount -t tmpfs none /var/log
exec "$@"
`

// program starts a program of Kubernetes.
func (c *Cluster) program(ctx context.Context, name string, flags ...string) error {
	path, err := build(ctx, name)
	if err != nil {
		return err
	}
	return c.run(name, path, flags...)
}

// Client returns what reaches the API server as an administrator.
func (c *Cluster) Client() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.path("admin.conf"))
	if err != nil {
		return nil, err
	}
	config.Dial = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = c.node.Within(func() error {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
	return config, nil
}

// Identity returns a configuration with which programs are the user name, in these groups.
func (c *Cluster) Identity(file, name string, groups ...string) (path string, err error) {
	return c.path(file + ".conf"), c.issuer.client(file, name, groups...)
}

// Run starts a program that is part of the cluster: its end before the cluster's is an error.
func (c *Cluster) Run(name, path string, args ...string) error { return c.run(name, path, args...) }

// run starts a program, which ends before those that were started earlier.
func (c *Cluster) run(name, path string, args ...string) error {
	p, err := c.start(name, path, args)
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	c.running = append(c.running, p)
	return nil
}

// start starts a program, which writes to the file NAME.log.
func (c *Cluster) start(name, path string, args []string) (p process, err error) {
	log, err := os.OpenFile(c.log(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return p, err
	}
	defer log.Close()
	cmd := exec.Command(path, append(slices.Clip(args), c.flags[name]...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ended, err := c.node.StartIn(cmd)
	return process{name, path, args, cmd, ended}, err
}

// Kill kills a program of the cluster and starts it again.
func (c *Cluster) Kill(name string) (err error) {
	for i, p := range c.running {
		if p.name != name {
			continue
		}
		_ = p.cmd.Process.Kill()
		<-p.ended
		c.running[i], err = c.start(name, p.path, p.args)
		return err
	}
	return fmt.Errorf("there is no program %q", name)
}

// Memory returns the largest resident memory that a program has had since it started, in KiB.
func (c *Cluster) Memory(name string) (kib int, err error) {
	for _, p := range c.running {
		if p.name != name {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		_, err = fmt.Sscan(rest, &kib)
		return kib, err
	}
	return 0, fmt.Errorf("there is no program %q", name)
}

// Kubectl runs kubectl as an administrator and returns what it printed, on both streams. input is
// its standard input.
func (c *Cluster) Kubectl(input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	var out bytes.Buffer
	err := c.Stream(ctx, input, &out, args...)
	if err != nil {
		err = fmt.Errorf("kubectl %q: %w: %s", args, err, out.String())
	}
	return out.String(), err
}

// Stream is like Kubectl, but it writes what kubectl prints to out meanwhile, and has no limit of
// time but ctx.
func (c *Cluster) Stream(ctx context.Context, input string, out io.Writer, args ...string) error {
	return c.tool(ctx, input, out, c.kubectl,
		append([]string{"--kubeconfig=" + c.path("admin.conf"), "--cache-dir=" + c.path("cache")}, args...)...)
}

// Helm runs helm as an administrator and returns what it printed, on both streams.
func (c *Cluster) Helm(ctx context.Context, args ...string) (string, error) {
	helm, err := Helm(ctx)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := c.tool(ctx, "", &out, helm,
		append([]string{"--kubeconfig=" + c.path("admin.conf")}, args...)...); err != nil {
		return out.String(), fmt.Errorf("helm %q: %w: %s", args, err, &out)
	}
	return out.String(), nil
}

// tool runs a program in the cluster's network.
func (c *Cluster) tool(ctx context.Context, input string, out io.Writer, path string, args ...string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), out, out
	cmd.Env = append(os.Environ(), "HOME="+c.dir)
	ended, err := c.node.StartIn(cmd)
	if err != nil {
		return err
	}
	return <-ended
}

// Wait runs kubectl until it prints want, among other things, and returns what it printed. It
// returns an error when ctx ends, or a program of the cluster.
func (c *Cluster) Wait(ctx context.Context, want string, args ...string) (string, error) {
	for {
		out, err := c.Kubectl("", args...)
		if err == nil && strings.Contains(out, want) {
			return out, nil
		}
		if err := c.ended(); err != nil {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, fmt.Errorf("kubectl %q does not print %q: %q, %w", args, want, out, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// ended returns an error if a program has ended.
func (c *Cluster) ended() error {
	for _, p := range c.running {
		select {
		case err := <-p.ended:
			p.ended <- err
			return fmt.Errorf("%s has ended: %v", p.name, err)
		default:
		}
	}
	return nil
}

// end deletes the pods, and ends the programs, the last one first.
func (c *Cluster) end(t testing.TB) {
	t.Helper()
	if c.mounted {
		if _, err := c.Kubectl("", "delete", "pods", "--all", "--all-namespaces", "--timeout=50s"); err != nil {
			t.Error(err)
		}
	}
	for i := len(c.running) - 1; i >= 0; i-- {
		if err := c.running[i].stop(); err != nil {
			t.Error(err)
		}
	}
	if c.mounted {
		if err := unix.Unmount(c.path("kubelet"), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		c.logTails(t)
	}
}

// stop ends a program, with SIGKILL if SIGTERM does not.
func (p process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
		return nil
	case <-time.After(endTime):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end within %s", p.name, endTime)
	}
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) log(program string) string { return c.path(program + ".log") }

// logTails logs the end of what each program wrote.
func (c *Cluster) logTails(t testing.TB) {
	const limit = 8 << 10
	for _, p := range c.running {
		file, err := os.Open(c.log(p.name))
		if err != nil {
			t.Error(err)
			continue
		}
		_, _ = file.Seek(-limit, io.SeekEnd) // shorter ones are read whole
		text, err := io.ReadAll(file)
		t.Logf("%s (%v):\n%s", p.name, err, text)
		file.Close()
	}
}
