// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/fumehood/fumehood/internal/sandbox/image/oci/ocitest"
)

// dockerDefaults are the capabilities that Docker gives a container.
var dockerDefaults = []string{"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"}

// The image of the Dockerfile, built by buildah on a Debian root file system and started by
// runc, runs the demo with the options that docs/CONTAINER.md names, and refuses clearly
// with Docker's defaults.
func TestNightlyImage(t *testing.T) {
	b := &builder{T: t, dir: t.TempDir()}
	b.base()
	b.buildah("build", "--isolation", "chroot", "--network", "host", "--build-arg", "GO_IMAGE=localhost/go", "--build-arg", "BASE_IMAGE=localhost/base",
		"-v", goEnv(t, "GOMODCACHE")+":/root/go/pkg/mod:ro", "-v", goEnv(t, "GOCACHE")+":/root/.cache/go-build", "-t", "localhost/fumehood", "../..")
	root := b.mount("localhost/fumehood")
	page, err := os.ReadFile("../../docs/CONTAINER.md")
	if err != nil {
		t.Fatal(err)
	}

	out, code := b.run(root, nil, false, "demo")
	if code != 3 || !strings.Contains(out, "fumehood: sandbox.cgroup: ") || !strings.Contains(out, "docs/CONTAINER.md") {
		t.Errorf("with Docker's defaults the demo ends with %d:\n%s", code, out)
	}
	caps := regexp.MustCompile(`docker run .*fumehood demo\n`).Find(page)
	var added []string
	for _, found := range regexp.MustCompile(`--cap-add (\w+)`).FindAllSubmatch(caps, -1) {
		added = append(added, string(found[1]))
	}
	if len(added) == 0 {
		t.Fatal("docs/CONTAINER.md names no capability")
	}
	if out, code = b.run(root, added, true, "doctor"); code != 0 || !strings.Contains(out, "ok       sandbox") {
		t.Errorf("doctor ends with %d:\n%s", code, out)
	}
	out, code = b.run(root, added, true, "demo", "--json")
	if code != 0 || !strings.Contains(out, `"succeeded": 1,`) {
		t.Errorf("with the documented options the demo ends with %d:\n%s", code, out)
	}
	for i := range added {
		without := append(append([]string{}, added[:i]...), added[i+1:]...)
		if out, code := b.run(root, without, true, "demo"); code != 3 {
			t.Errorf("without %s, which docs/CONTAINER.md says is needed, the demo ends with %d:\n%s", added[i], code, out)
		}
	}
}

// The images of k8s/deploy/Dockerfile have nothing but a node's parts, which need nothing else: the
// shim installs itself, and fumehood-claims starts.
func TestNightlyNodeImages(t *testing.T) {
	out := filepath.Join(t.TempDir(), "release")
	var said bytes.Buffer
	if code := run(t.Context(), []string{"--root", "../..", "--arch", runtime.GOARCH, "--node", "--out", out}, &said); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &said)
	}
	b := &builder{T: t, dir: t.TempDir()}
	b.Cleanup(func() { b.buildah("rm", "--all") })
	roots := map[string]string{}
	for target, only := range map[string]string{"node": "fumehood", "claims": "LICENSE THIRD_PARTY_NOTICES fumehood-claims"} {
		b.buildah("build", "--isolation", "chroot", "-f", "../../k8s/deploy/Dockerfile", "--target", target, "-t", "localhost/"+target, out)
		roots[target] = b.mount("localhost/" + target)
		var names []string
		entries, err := os.ReadDir(roots[target])
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if strings.Join(names, " ") != only || err != nil {
			t.Errorf("%s: %v, %v", target, entries, err)
		}
	}
	if said := b.inside(roots["node"], "/fumehood/containerd-shim-fumehood-v1", "install", "-root", "/host"); !strings.HasPrefix(said, "installed /usr/local/lib/fumehood/") {
		t.Errorf("%s", said)
	}
	if said := b.inside(roots["node"], "/fumehood/fumehood-node-agent", "-h"); !strings.Contains(said, "-logs") {
		t.Errorf("%s", said)
	}
	if said := b.inside(roots["claims"], "/fumehood-claims", "-h"); !strings.Contains(said, "-config") {
		t.Errorf("%s", said)
	}
}

// inside returns what a program prints with root as its root directory, and /proc as in a container.
func (b *builder) inside(root string, args ...string) string {
	b.Helper()
	proc := filepath.Join(root, "proc")
	if err := errors.Join(os.MkdirAll(proc, 0o755), syscall.Mount("proc", proc, "proc", 0, "")); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := syscall.Unmount(proc, 0); err != nil {
			b.Error(err)
		}
	}()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{}, "/", &syscall.SysProcAttr{Chroot: root}
	out, _ := cmd.CombinedOutput() // the callers know it by its output
	return string(out)
}

type builder struct {
	*testing.T
	dir  string
	runs int
}

func (b *builder) do(name string, args ...string) string {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "STORAGE_DRIVER=overlay")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, &stderr)
	}
	return strings.TrimSpace(string(out))
}

func (b *builder) buildah(args ...string) string {
	b.Helper()
	return b.do("buildah", append([]string{"--root", filepath.Join(b.dir, "store"), "--runroot", filepath.Join(b.dir, "state")}, args...)...)
}

// base makes the two images that the Dockerfile starts from, without a registry: Debian
// with git, and the same with this Go.
func (b *builder) base() {
	b.Helper()
	c := b.buildah("from", "scratch")
	b.Cleanup(func() { b.buildah("rm", "--all") })
	b.buildah("add", "-q", c, ocitest.DebianTar(b.T), "/")
	b.buildah("commit", "-q", c, "localhost/base")
	b.buildah("copy", "-q", c, goEnv(b.T, "GOROOT"), "/usr/local/go")
	b.buildah("config", "--env", "PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin", c)
	b.buildah("commit", "-q", c, "localhost/go")
}

func (b *builder) mount(image string) string {
	b.Helper()
	return b.buildah("mount", b.buildah("from", image))
}

// run starts fumehood in the image as Docker would, with more capabilities and, if
// asked, with writable cgroups.
func (b *builder) run(root string, added []string, cgroups bool, args ...string) (string, int) {
	b.Helper()
	b.runs++
	bundle := filepath.Join(b.dir, "bundle", string(rune('a'+b.runs)))
	if err := os.MkdirAll(bundle, 0o755); err != nil {
		b.Fatal(err)
	}
	b.do("runc", "spec", "--bundle", bundle)
	b.configure(filepath.Join(bundle, "config.json"), root, added, cgroups, args)
	cmd := exec.Command("runc", "--root", filepath.Join(b.dir, "runc"), "run", "--bundle", bundle, filepath.Base(b.dir)+filepath.Base(bundle))
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		b.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (b *builder) configure(file, root string, added []string, cgroups bool, args []string) {
	b.Helper()
	var spec map[string]any
	b.readJSON(file, &spec)
	spec["root"] = map[string]any{"path": root}
	process := spec["process"].(map[string]any)
	process["terminal"], process["args"] = false, append([]string{"fumehood"}, args...)
	process["env"] = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	delete(process, "rlimits")
	delete(process, "noNewPrivileges")
	var caps []string
	for _, c := range append(append([]string{}, dockerDefaults...), added...) {
		caps = append(caps, "CAP_"+c)
	}
	process["capabilities"] = map[string]any{"bounding": caps, "effective": caps, "permitted": caps}
	mounts := spec["mounts"].([]any)
	for _, m := range mounts {
		if m := m.(map[string]any); m["destination"] == "/sys/fs/cgroup" && cgroups {
			m["type"], m["source"], m["options"] = "bind", "/sys/fs/cgroup", []string{"rbind", "rw"}
		}
	}
	for _, volume := range []string{"/tmp", "/work"} {
		dir := filepath.Join(filepath.Dir(file), "volume"+filepath.Base(volume))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		mounts = append(mounts, map[string]any{"destination": volume, "type": "bind", "source": dir, "options": []string{"rbind", "rw"}})
	}
	spec["mounts"] = mounts
	data, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func (b *builder) readJSON(file string, into any) {
	b.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
