// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package task_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/author/doctor"
	"github.com/fumehood/fumehood/k8s/internal/clustertest"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
)

const (
	nodeImage = "local.test/fumehood-node:1"
	nodeSpace = "--namespace=fumehood-node"
	chart     = "../../deploy/chart"
	// ownMounts in the environment says that this process has them.
	ownMounts = "FUMEHOOD_TEST_OWN_MOUNTS"
)

// isolate hides what an installation changes on a node, in a mount namespace, and becomes the test.
// $1 is a directory of the test.
const isolate = `
dir=$1; shift
cp -a /etc "$dir/etc"
mount --bind "$dir/etc" /etc
mount -t tmpfs -o mode=755 none /usr/local/lib
mount -t tmpfs -o mode=755 none /var/lib
mount -t tmpfs -o mode=755 none /run
mkdir /var/lib/fumehood
exec "$@"
`

// isolated reports whether this is the process with mounts of its own. If not, it runs the test in one.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownMounts) != "" {
		return true
	}
	clustertest.Build(t) // the user's caches are the same there
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private", "sh", "-ec", isolate, "sh", t.TempDir(),
		os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	runtime.LockOSThread() // the kernel sends Pdeathsig when the thread ends
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
	return false
}

// The pods of the chart install the shim on a node, where the doctor accepts it and pods get a gate,
// show what was refused, and remove it again.
func TestClusterChart(t *testing.T) {
	if !isolated(t) {
		return
	}
	o := newOperator(t)
	n := nodetest.Start(t, nodetest.Options{Runc: true, Install: importDropIns})
	k := kube{clustertest.Start(t, n), t, o, n}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := k.Kubectl("", "logs", nodeSpace, "daemonset/node-agent", "--all-containers", "--prefix")
			t.Log(out)
		}
	})
	image := k.loadParts()
	k.helm("install", nodeSpace, "--create-namespace", "--set", "node.image="+image)
	k.must("", "label", "node", clustertest.NodeName, "fumehood.dev/install=true", "fumehood.dev/node=true")
	k.rollout("install")
	k.doctor(3, "missing  node.toml")
	check(t, errors.Join(os.MkdirAll(filepath.Dir(doctor.NodeFile), 0o755), os.WriteFile(doctor.NodeFile, fmt.Appendf(nil,
		"policies = %q\nkeys = [%q]\ndefault = %q\nstate = %q\n", o.dir+"/policies", o.dir+"/public.pem", o.bundle(noID, noDate), o.dir+"/run"), 0o600)))
	check(t, errors.Join(n.Kill(syscall.SIGTERM), n.Serve(t.Context())))
	for _, line := range []string{"ok       version", "ok       drop-in", "ok       containerd", "ok       annotations", "ok       sandbox", "ok       policy", "ok       agent"} {
		k.doctor(0, line)
	}

	k.running("watched", "fumehood")
	_, err := k.Kubectl("", "exec", "watched", "--", "/bin/date")
	wantError(t, err, "there is no time")
	if _, err := k.Kubectl("", "exec", "watched", "--", "/bin/sh", "-c", "env -i /bin/id"); err == nil {
		t.Error("a refused program runs")
	}
	k.wait(`policy refused a program that "/bin/busybox" started: "/bin/id": id is not for pods (test.id)`, "describe", "pod", "watched")
	if page := k.metrics(); !strings.Contains(page, "fumehood_refusals_total{kind=\"program\"} 1\n") {
		t.Errorf("%s", page)
	}
	k.remove("watched")

	k.helm("upgrade", nodeSpace, "--reuse-values", "--set", "node.remove=true")
	k.rollout("remove")
	if left, err := os.ReadDir(doctor.Versions); err != nil || len(left) > 0 {
		t.Errorf("versions remain: %v, %v", left, err)
	}
	k.doctor(3, "missing  installation   doctor.node: containerd has no runtime fumehood")
}

// importDropIns makes the node's directory of drop-ins the one of a node, and its configuration that
// of containerd.
func importDropIns(n *nodetest.Node) error {
	dir := filepath.Dir(doctor.DropIn)
	return errors.Join(os.MkdirAll(dir, 0o755), unix.Mount(n.Dir+"/conf.d", dir, "", unix.MS_BIND, ""),
		os.Symlink(n.Dir+"/containerd.toml", filepath.Dir(dir)+"/config.toml"))
}

// loadParts loads the image of a node's parts, and returns its reference.
func (k kube) loadParts() string {
	k.t.Helper()
	image, err := k.node.LoadDirectory(k.t.Context(), nodeImage, "fumehood", k.installation("../../cmd/containerd-shim-fumehood-v1", "../../cmd/fumehood-node-agent"))
	check(k.t, err)
	return image
}

// installation returns a directory with fumehood-runsc and programs of this module.
func (k kube) installation(programs ...string) string {
	k.t.Helper()
	dir := k.o.dir + "/from"
	check(k.t, nodetest.Run(k.t.Context(), "", nil, "cp", "-a", filepath.Dir(k.node.Runsc.Path), dir))
	k.build("", dir, programs...)
	return dir
}

// build builds programs of the module at module into dir, for images.
func (k kube) build(module, dir string, programs ...string) {
	k.t.Helper()
	if len(programs) > 0 {
		args := append([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir + "/"}, programs...)
		check(k.t, nodetest.Run(k.t.Context(), module, []string{"CGO_ENABLED=0"}, "go", args...))
	}
}

func (k kube) helm(command string, flags ...string) {
	k.t.Helper()
	_, err := k.Helm(k.t.Context(), append([]string{command, "fumehood", chart}, flags...)...)
	check(k.t, err)
}

// rollout waits until the DaemonSet's pod runs, which has had this init container.
func (k kube) rollout(init string) {
	k.t.Helper()
	pods := []string{"get", "pods", nodeSpace}
	k.wait(init+" true", append(pods, "-o=jsonpath={range .items[*]}{.spec.initContainers[0].name} {.status.containerStatuses[0].ready}{end}")...)
	k.t.Log(k.must("", append(pods, "-o=wide")...))
}

// doctor runs fumehood doctor --node, which must print text.
func (k kube) doctor(code int, text string) {
	k.t.Helper()
	program := k.o.dir + "/fumehood"
	if _, err := os.Stat(program); err != nil {
		check(k.t, nodetest.Run(k.t.Context(), "../../..", nil, "go", "build", "-buildvcs=false", "-o", program, "./cmd/fumehood"))
	}
	containerd, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", k.node.Pid()))
	check(k.t, err)
	cmd := exec.Command(program, "doctor", "--node")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(containerd)+":"+os.Getenv("PATH"))
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), text) {
		k.t.Errorf("exit code %d, want %d and %q in\n%s", got, code, text, out)
	}
}

// metrics returns what the agent's pod serves.
func (k kube) metrics() string {
	k.t.Helper()
	address := k.must("", "get", "pods", nodeSpace, "-o=jsonpath={.items[0].status.podIP}")
	var page bytes.Buffer
	curl := exec.Command("curl", "-sS", "http://"+address+":9464/metrics")
	curl.Stdout, curl.Stderr = &page, &page
	ended, err := k.node.StartIn(curl)
	check(k.t, err)
	check(k.t, <-ended)
	return page.String()
}
