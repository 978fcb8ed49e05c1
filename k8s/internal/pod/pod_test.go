// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/testprogram"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/k8s/internal/pod"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// noID refuses one program wherever it is started, and a command.
const noID = `package fumehood.exec

deny contains {"rule": "test.id", "message": "id is not for pods", "suggestion": "use another"} if endswith(input.path, "/id")

deny contains {"rule": "test.copy", "message": "id is not for pods", "suggestion": "use another"} if "/usr/bin/id" in input.same
`

const noDate = `package fumehood.command

allow contains {"rule": "test.app"} if input.command.program in {"testprogram", "/app", "/data/app", "/ro/app", "/data/opt/bin/tool", "/ro/opt/bin/tool"}

deny contains {"rule": "test.date", "message": "there is no time", "suggestion": "use another"} if input.command.tool == "date"
`

// A kube is a pod without Kubernetes: its sandbox and containers are started as containerd's
// shim starts them, with runsc's own commands.
type kube struct {
	t     *testing.T
	pod   *pod.Pod
	dir   string
	runsc install.Runsc
	log   string
}

func newKube(t *testing.T) *kube {
	t.Helper()
	k := openKube(t, false, noID, noDate)
	if err := k.begin(); err != nil {
		t.Fatal(err)
	}
	return k
}

// openKube returns a pod whose sandbox was not started, with a policy.
func openKube(t *testing.T, proven bool, rego ...string) *kube {
	t.Helper()
	if testing.Short() && t.Name() != "TestPod" {
		t.Skip("starts a sandbox; run without -short")
	}
	runsc, err := install.Find(t.Context(), install.Options{Build: true})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pod") // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	k := &kube{t: t, dir: dir, runsc: runsc, log: filepath.Join(dir, "audit.jsonl")}
	var files []policy.File
	for i, text := range rego {
		files = append(files, policy.File{Name: fmt.Sprintf("%d.rego", i), Content: []byte(text)})
	}
	layer, err := policy.FromFiles("test", files)
	if err != nil {
		t.Fatal(err)
	}
	layer.Role = policy.Allows
	log, err := audit.Create(k.log, audit.Options{Origin: "pod/test"})
	if err != nil {
		t.Fatal(err)
	}
	k.pod, err = pod.Open(pod.Options{Run: proposal.Run{ID: "test", Start: time.Now()}, Log: log, Dir: dir, Proven: proven})
	if err != nil {
		t.Fatal(err)
	}
	use(t, k.pod, policy.Options{Layers: []policy.Layer{layer}})
	k.write("trace.json", func() ([]byte, error) { return k.pod.TraceConfig() })
	if err := k.pod.Listen(filepath.Join(dir, "door")); err != nil {
		t.Fatal(err)
	}
	return k
}

// begin starts the sandbox with its first container.
func (k *kube) begin() error {
	k.t.Helper()
	go k.pod.Serve()
	k.create("pause", "", "/usr/bin/sleep", "1000")
	k.t.Cleanup(k.end)
	if err := k.pod.Confirm(filepath.Join(k.dir, "runsc-pause.sock")); err != nil {
		return err
	}
	return k.start(k.pod, "pause", pod.Process{Argv: []string{"/usr/bin/sleep", "1000"}, Pause: true})
}

func (k *kube) write(name string, make func() ([]byte, error)) {
	data, err := make()
	if err == nil {
		err = os.WriteFile(filepath.Join(k.dir, name), data, 0o600)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// command returns runsc with arguments.
func (k *kube) command(args ...string) *exec.Cmd {
	cmd := exec.Command(k.runsc.Path, append([]string{"--root=" + k.dir, "--network=none", "--ignore-cgroups", "--pod-init-config=" + k.dir + "/trace.json"}, args...)...)
	cmd.Env = []string{}
	return cmd
}

func (k *kube) run(args ...string) {
	k.t.Helper()
	cmd := k.command(args...)
	text := filepath.Join(k.dir, "out")
	out, _ := os.Create(text) // not a pipe: the sandbox keeps it
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(text)
		k.t.Fatalf("%q: %v: %s", args, err, said)
	}
}

// create creates a container of the pod that will run argv.
func (k *kube) create(id, root string, argv ...string) {
	k.t.Helper()
	bundle := filepath.Join(k.dir, "b-"+id)
	for _, dir := range []string{"rootfs/usr", "rootfs/etc", "rootfs/tmp", "rootfs/data", "rootfs/ro", "rootfs/opt/bin", "rootfs/.fumehood"} {
		if err := os.MkdirAll(filepath.Join(bundle, dir), 0o755); err != nil {
			k.t.Fatal(err)
		}
	}
	for _, name := range []string{"bin", "lib", "lib64", "sbin"} {
		_ = os.Symlink("usr/"+name, filepath.Join(bundle, "rootfs", name))
	}
	kind := "container"
	if id == "pause" {
		kind = "sandbox"
	}
	spec := specs.Spec{Version: "1.0.2", Root: &specs.Root{Path: "rootfs", Readonly: root == "read-only"},
		Process:     &specs.Process{Args: pod.Through(argv), Env: []string{"PATH=/usr/bin:/bin"}, Cwd: "/"},
		Annotations: map[string]string{"io.kubernetes.cri.container-type": kind, "io.kubernetes.cri.sandbox-id": "pause"},
		Linux:       &specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.NetworkNamespace}}},
		Mounts: []specs.Mount{{Destination: "/proc", Type: "proc"}, {Destination: "/tmp", Type: "tmpfs"},
			{Destination: "/data", Type: "bind", Source: filepath.Join(bundle, "rootfs"), Options: []string{"bind", "rw"}},
			{Destination: "/ro", Type: "bind", Source: filepath.Join(bundle, "rootfs"), Options: []string{"bind", "ro"}},
			{Destination: pod.Init, Type: "bind", Source: k.runsc.Init, Options: []string{"bind", "ro"}}}}
	k.install(filepath.Join(bundle, "rootfs"), "sh", "sleep", "echo", "id", "date", "true", "env")
	testprogram.Install(k.t, filepath.Join(bundle, "rootfs/usr/bin"))
	k.write(filepath.Join("b-"+id, "rootfs/app"), func() ([]byte, error) { return []byte("#!/bin/sh\nexec true\n"), nil })
	k.write(filepath.Join("b-"+id, "rootfs/opt/bin/tool"), func() ([]byte, error) { return os.ReadFile("/usr/bin/true") })
	for _, name := range []string{"rootfs/app", "rootfs/opt/bin/tool"} {
		if err := os.Chmod(filepath.Join(bundle, name), 0o755); err != nil {
			k.t.Fatal(err)
		}
	}
	k.write(filepath.Join("b-"+id, "config.json"), func() ([]byte, error) { return json.Marshal(spec) })
	k.run("create", "--bundle="+bundle, id)
}

// library is a shared library in what ldd prints.
var library = regexp.MustCompile(`(/\S+) \(0x`)

// install copies programs of the host, and their libraries, into a root file system.
func (k *kube) install(root string, names ...string) {
	k.t.Helper()
	for _, name := range names {
		path := "/usr/bin/" + name
		libraries, err := exec.Command("ldd", path).Output()
		if err != nil {
			k.t.Fatal(err)
		}
		k.copy(root, path)
		for _, found := range library.FindAllSubmatch(libraries, -1) {
			k.copy(root, string(found[1]))
		}
	}
}

// copy copies a file of the host to the same path below root, where /lib and others are links to
// those in /usr.
func (k *kube) copy(root, path string) {
	k.t.Helper()
	if !strings.HasPrefix(path, "/usr/") {
		path = "/usr" + path
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(root+path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(root+path, data, 0o755)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// start starts a container that was created, through s.
func (k *kube) start(s pod.Admitter, id string, x pod.Process) error {
	x.Container = id
	a, err := s.Admit(k.t.Context(), x)
	if err != nil {
		return err
	}
	return a.Start(func(e pod.Ender) error {
		k.run("start", id)
		go func() { e.End(k.wait(id)) }()
		return nil
	})
}

// wait returns the exit status of a container.
func (k *kube) wait(id string) int {
	out, err := k.command("wait", id).Output()
	var status struct {
		ExitStatus int `json:"exitStatus"`
	}
	if err != nil || json.Unmarshal(out, &status) != nil {
		return pod.Unknown
	}
	return status.ExitStatus
}

// exec starts argv in a container and returns what it printed, and its exit status.
func (k *kube) exec(s pod.Admitter, id string, argv ...string) (text string, status int, err error) {
	ended := make(chan error, 1)
	var out strings.Builder
	cmd := k.command(append([]string{"exec", id}, pod.Through(argv)...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	a, err := s.Admit(k.t.Context(), pod.Process{Container: id, Exec: true, Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		return "", 0, err
	}
	err = a.Start(func(e pod.Ender) error {
		if err := cmd.Start(); err != nil {
			return err
		}
		go func() {
			err := cmd.Wait()
			e.End(cmd.ProcessState.ExitCode())
			ended <- err
		}()
		return nil
	})
	if err != nil {
		return "", 0, err
	}
	<-ended
	return out.String(), cmd.ProcessState.ExitCode(), nil
}

func (k *kube) end() {
	if err := k.pod.Close(nil); err != nil {
		k.t.Error(err)
	}
	_ = k.command("delete", "--force", "pause").Run()
	k.killLeft()
	_ = syscall.Unmount(filepath.Join(k.dir, "null-netns"), syscall.MNT_DETACH) // which runsc keeps for all sandboxes
	f, err := audit.OpenFile(k.log)
	if err != nil {
		k.t.Error(err)
		return
	}
	defer f.Close()
	sum, err := audit.Verify(f, audit.Trust{})
	if err != nil || sum.State != audit.Sealed {
		k.t.Errorf("the log: %+v, %v", sum, err)
	}
}

// killLeft kills the programs of the installation that name the pod's directory: runsc, its gofers
// and its sandboxes.
func (k *kube) killLeft() {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		program, _ := os.Readlink(path + "/exe")
		line, _ := os.ReadFile(path + "/cmdline")
		pid, err := strconv.Atoi(filepath.Base(path))
		if err == nil && strings.HasPrefix(program, filepath.Dir(k.runsc.Path)) && strings.Contains(string(line), k.dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// entries returns the log.
func (k *kube) entries() string {
	data, err := os.ReadFile(k.log)
	if err != nil {
		k.t.Fatal(err)
	}
	return string(data)
}

// Two containers of a pod run what policy allows, and nothing else, and what each does is in the
// log as its own.
func TestPod(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	k := newKube(t)
	argv := []string{"sh", "-c", "while sleep 0.2; do id; done"}
	for _, id := range []string{"web", "side"} {
		k.create(id, "read-only", argv...)
		if err := k.start(pod.Door(filepath.Join(k.dir, "door")), id, pod.Process{Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		for _, id := range []string{"web", "side"} {
			if text, status, err := k.exec(k.pod, id, "echo", "hello", id); text != "hello "+id+"\n" || status != 0 || err != nil {
				t.Errorf("%d: %q, %d, %v", i, text, status, err)
			}
			if _, _, err := k.exec(k.pod, id, "date"); err == nil || !strings.Contains(err.Error(), "there is no time") {
				t.Errorf("a command that policy refuses: %v", err)
			}
			if _, _, err := k.exec(k.pod, id, "id"); err == nil || !strings.Contains(err.Error(), "id is not for pods") {
				t.Errorf("a program that policy refuses: %v", err)
			}
			if text, status, err := k.exec(k.pod, id, "sh", "-c", "env -i /usr/bin/id"); status != 126 || err != nil {
				t.Errorf("a program of a program: %q, %d, %v", text, status, err)
			}
		}
	}
	log := k.entries()
	for _, want := range []string{`"id":"start-2-web"`, `"id":"start-3-side"`, `"kind":"refused"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	if k.pod.Err() != nil {
		t.Error(k.pod.Err())
	}
}

// up starts a container that waits, and returns its id.
func (k *kube) up(root string) string {
	k.t.Helper()
	argv := []string{"sleep", "1000"}
	k.create("c", root, argv...)
	if err := k.start(k.pod, "c", pod.Process{Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}, Root: filepath.Join(k.dir, "b-c/rootfs")}); err != nil {
		k.t.Fatal(err)
	}
	return "c"
}

// What cannot change in a container is distinguished from volumes, also from those that it sees
// read-only: another container, or another path, may show them otherwise.
func TestLayers(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	id := k.up("read-only")
	if text, status, err := k.exec(k.pod, id, "/app"); status != 0 || err != nil {
		t.Errorf("a script of the image: %q, %d, %v", text, status, err)
	}
	for _, path := range []string{"/data/app", "/ro/app", "/data/opt/bin/tool", "/ro/opt/bin/tool"} {
		if _, _, err := k.exec(k.pod, id, path); code(err) != "pod.denied" {
			t.Errorf("%s of a volume: %v", path, err)
		}
	}
	log := k.entries()
	for _, want := range []string{`"layer":"rootfs","named":"/app"`, `"layer":"written","named":"/ro/opt/bin/tool"`, `"same":["/opt/bin/tool","/usr/bin/true"]`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}

// The programs of an image that can change need a grant.
func TestWritableRoot(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	argv := []string{"sleep", "1000"}
	k.create("c", "", argv...)
	if err := k.start(k.pod, "c", pod.Process{Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}}); code(err) != "pod.denied" {
		t.Errorf("%v", err)
	}
	if log := k.entries(); !strings.Contains(log, `"layer":"workspace"`) {
		t.Error("the log does not say where the program is")
	}
}

// What an exec leaves running ends with it, and the container goes on.
func TestLeftover(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	id := k.up("read-only")
	if text, status, err := k.exec(k.pod, id, "sh", "-c", "sleep 1000 >/dev/null 2>&1 & exit 3"); status != 3 || err != nil {
		t.Errorf("%q, %d, %v", text, status, err)
	}
	if log := k.entries(); !strings.Contains(log, `"leftover":1`) {
		t.Error("the log does not say what was left")
	}
	if text, status, err := k.exec(k.pod, id, testprogram.Name, "running", "sleep"); text != "1\n" || status != 0 || err != nil {
		t.Errorf("more than the container's own program: %q, %d, %v", text, status, err)
	}
}

// In a pod that has failed no program starts, not even one that the node's own runsc starts in it.
func TestFail(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	id := k.up("read-only")
	k.pod.Fail(errors.New("for a test"))
	if _, _, err := k.exec(k.pod, id, "true"); err == nil {
		t.Error("a pod that has failed admits")
	}
	out, err := k.command(append([]string{"exec", id}, pod.Through([]string{"echo", "started"})...)...).CombinedOutput()
	if err == nil || strings.Contains(string(out), "started") {
		t.Errorf("%q, %v", out, err)
	}
}

// What starts in a container around the gate belongs to no start, and can start nothing.
func TestAround(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	id := k.up("read-only")
	out, err := k.command(append([]string{"exec", id}, pod.Through([]string{"echo", "started"})...)...).CombinedOutput()
	if err == nil || strings.Contains(string(out), "started") {
		t.Errorf("%q, %v", out, err)
	}
	if text, status, err := k.exec(k.pod, id, "echo", "on"); text != "on\n" || status != 0 || err != nil {
		t.Errorf("%q, %d, %v", text, status, err)
	}
}

// use makes a policy decide in a pod.
func use(t testing.TB, p *pod.Pod, o policy.Options) {
	t.Helper()
	compiled, err := pod.Compile(o)
	if err == nil {
		err = p.Use(compiled)
	}
	if err != nil {
		t.Fatal(err)
	}
}
