// SPDX-License-Identifier: Apache-2.0

//go:build node

package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/fumehood/fumehood/internal/author/doctor"
	"github.com/fumehood/fumehood/internal/evidence/key"
	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
	"github.com/fumehood/fumehood/k8s/internal/setup"
)

// Policy decides in real pods, which come, restart, fail and go, and leave nothing but their logs.
func TestGate(t *testing.T) {
	o := newOperator(t)
	n := nodetest.Start(t, nodetest.Options{Env: []string{node.Variable + "=" + o.file}})
	digest, strict := o.bundle(noID, noDate), o.bundle(noDate)
	all := "default = \"" + digest + "\"\n[namespaces]\ndefault = [\"" + strict + "\"]"
	for _, test := range []struct {
		name string
		do   func(t *testing.T, o *operator, n *nodetest.Node)
	}{
		{"refused pods", func(t *testing.T, o *operator, n *nodetest.Node) { refusedPods(t, o, n, digest) }},
		{"two containers", twoContainers}, {"restart", restart}, {"first program", firstProgram},
		{"annotation", func(t *testing.T, _ *operator, n *nodetest.Node) { annotation(t, n, strict) }},
		{"gate killed", gateKilled}, {"gate stalled", gateStalled}, {"container's shim killed", shimKilled}, {"containerd killed", containerdKilled},
		{"network", network}, {"signed logs", signedLogs}, {"log full", logFull},
		{"revoked", func(t *testing.T, o *operator, n *nodetest.Node) { revoked(t, o, n, digest) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			o.configure(n.Runsc.Path, all)
			test.do(t, o, n)
			if left := n.Left(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func refusedPods(t *testing.T, o *operator, n *nodetest.Node, digest string) {
	for want, lines := range map[string]string{
		"node.config": "unknown = 1", "pod.policy": "", "policy.missing": "default = \"sha256:" + strings.Repeat("0", 64) + "\"",
		"pod.pause":      "pause = [\"/other\"]\ndefault = \"" + digest + "\"",
		"policy.compile": "default = \"" + o.bundle("package fumehood.command\n\ndeny contains missing(input)\n") + "\"",
		"nothing pauses": "default = \"" + o.bundle("package fumehood.exec\n\ndeny contains {\"rule\": \"x.y\", \"message\": \"nothing pauses\", \"suggestion\": \"s\"} if input.path == \"/pause\"\n") + "\"",
	} {
		o.configure(n.Runsc.Path, lines)
		_, err := n.RunPod(nodetest.Fumehood, nil)
		wantError(t, err, want)
	}
}

func twoContainers(t *testing.T, o *operator, n *nodetest.Node) {
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	for _, name := range []string{"web", "side"} {
		c, err := p.Container(forever)
		check(t, err)
		wantExec(t, c, "hello "+name+"\n", 0, "/bin/echo", "hello", name)
		_, err = c.Exec("/bin/date")
		wantError(t, err, "there is no time")
		_, err = c.Exec("/bin/id")
		wantError(t, err, "id is not for pods")
		wantExec(t, c, "", 126, "/bin/sh", "-c", "env -i /bin/id 2>/dev/null")
	}
	_, err = p.Container(nodetest.ContainerOptions{ReadOnly: true, Command: []string{"/bin/date"}})
	wantError(t, err, "there is no time")
	for _, source := range []string{o.dir + "/logs", o.dir, "/"} {
		_, err = p.Container(nodetest.ContainerOptions{ReadOnly: true, Command: forever.Command, Mounts: []*cri.Mount{{HostPath: source, ContainerPath: "/host", Readonly: true}}})
		wantError(t, err, "pod.mount")
	}
	c, err := p.Container(nodetest.ContainerOptions{ReadOnly: true, Command: forever.Command, Mounts: []*cri.Mount{{HostPath: t.TempDir(), ContainerPath: "/host"}}})
	check(t, err)
	wantExec(t, c, "", 0, "/bin/ls", "/host")
	check(t, p.StopAndRemove())
	o.verify(`{"error":null,"totals":`)
}

// A container that ends and is started again has the gate as before.
func restart(t *testing.T, _ *operator, n *nodetest.Node) {
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	for i := range 3 {
		c, err := p.Container(nodetest.ContainerOptions{ReadOnly: true, Command: []string{"/bin/sh", "-c", "echo " + fmt.Sprint(i)}})
		check(t, err)
		ended, err := c.Wait()
		check(t, err)
		if text, err := c.Logs(); ended.ExitCode != 0 || text != fmt.Sprint(i)+"\n" || err != nil {
			t.Errorf("%d, %q, %v", ended.ExitCode, text, err)
		}
		check(t, c.StopAndRemove())
	}
	check(t, p.StopAndRemove())
}

// What fumehood.exec refuses is refused as a container's own program, too.
func firstProgram(t *testing.T, _ *operator, n *nodetest.Node) {
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	c, err := p.Container(nodetest.ContainerOptions{ReadOnly: true, Command: []string{"/bin/id"}})
	wantError(t, err, "id is not for pods")
	if c != nil {
		check(t, c.StopAndRemove())
	}
	check(t, p.StopAndRemove())
}

// A pod chooses only what its namespace may have.
func annotation(t *testing.T, n *nodetest.Node, strict string) {
	_, err := n.RunPod(nodetest.Fumehood, map[string]string{node.Annotation: "sha256:" + strings.Repeat("1", 64)})
	wantError(t, err, "may not have the policy")
	p, err := n.RunPod(nodetest.Fumehood, map[string]string{node.Annotation: strict})
	check(t, err)
	c, err := p.Container(forever)
	check(t, err)
	wantExec(t, c, "uid=0(root) gid=0 groups=0\n", 0, "/bin/id") // its policy has no rule about it
	check(t, p.StopAndRemove())
}

// shim returns the shim of a container.
func shim(t testing.TB, p *nodetest.Pod, id string) int {
	t.Helper()
	for _, process := range p.Processes() {
		if strings.Contains(process.Command, "/containerd-shim-") && strings.Contains(process.Command, "-id "+id) {
			return process.Pid
		}
	}
	t.Fatalf("no shim of %s: %+v", id, p.Processes())
	return 0
}

// With its gate a pod ends, and nothing starts in it meanwhile.
func gateKilled(t *testing.T, o *operator, n *nodetest.Node) {
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	c, err := p.Container(forever)
	check(t, err)
	check(t, syscall.Kill(shim(t, p, p.ID), syscall.SIGKILL))
	if _, err := c.Exec("/bin/echo", "hello"); err == nil {
		t.Error("a command runs in a pod without a gate")
	}
	_, err = c.Wait()
	check(t, err)
	check(t, p.StopAndRemove())
}

// A gate that does not answer lets nothing start.
func gateStalled(t *testing.T, _ *operator, n *nodetest.Node) {
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	c, err := p.Container(forever)
	check(t, err)
	pid := shim(t, p, p.ID)
	check(t, syscall.Kill(pid, syscall.SIGSTOP))
	time.Sleep(3 * time.Second)
	before, err := c.Logs()
	check(t, err)
	time.Sleep(3 * time.Second)
	after, err := c.Logs()
	check(t, err)
	check(t, syscall.Kill(pid, syscall.SIGCONT))
	if before != after {
		t.Errorf("a program started meanwhile: %q, %q", before, after)
	}
	check(t, p.StopAndRemove())
}

// A container ends with its shim, the others go on.
func shimKilled(t *testing.T, _ *operator, n *nodetest.Node) {
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	first, err := p.Container(forever)
	check(t, err)
	second, err := p.Container(forever)
	check(t, err)
	check(t, syscall.Kill(shim(t, p, first.ID), syscall.SIGKILL))
	_, err = first.Wait()
	check(t, err)
	wantExec(t, second, "hello\n", 0, "/bin/echo", "hello")
	check(t, p.StopAndRemove())
}

// Pods and their gates outlive containerd.
func containerdKilled(t *testing.T, _ *operator, n *nodetest.Node) {
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	c, err := p.Container(forever)
	check(t, err)
	check(t, n.Kill(syscall.SIGKILL))
	check(t, n.Serve(t.Context()))
	wantExec(t, c, "hello\n", 0, "/bin/echo", "hello")
	_, err = c.Exec("/bin/date")
	wantError(t, err, "there is no time")
	check(t, p.StopAndRemove())
}

// A log is signed with the node's key.
func signedLogs(t *testing.T, o *operator, n *nodetest.Node) {
	public, err := key.GenerateLog(filepath.Join(o.dir, "log.key"), "node.test/log")
	check(t, err)
	o.configure(n.Runsc.Path, "default = \""+o.bundle(noDate)+"\"", "log_key = \""+o.dir+"/log.key\"")
	for range 2 {
		p, err := n.RunPod(nodetest.Fumehood, nil)
		check(t, err)
		check(t, p.StopAndRemove())
		o.verify(strings.TrimSpace(public))
	}
}

const opens = `package fumehood.proposal

network contains {"rule": "test.hosts", "host": "api.test"} if "api.test" in input.proposal.network
`

const fetches = `package fumehood.command

allow contains {"rule": "test.fetch"} if "fetch" in {input.command.program, input.command.tool}
`

const private = `package fumehood.egress

private contains {"rule": "test.private"} if input.name == "api.test"
`

// serve answers requests in a pod that has no network of its own, and in the node questions for its
// name. It returns the pod's address.
func serve(t *testing.T, n *nodetest.Node, server *nodetest.Pod) (address string) {
	t.Helper()
	check(t, server.Within(func() error {
		web, err := net.Listen("tcp4", ":80")
		if err != nil {
			return err
		}
		t.Cleanup(func() { web.Close() })
		go http.Serve(web, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "hello ", r.Host, " ", strings.Split(r.RemoteAddr, ":")[0])
		}))
		all, err := net.InterfaceAddrs()
		for _, a := range all {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() && !prefix.Addr().IsLoopback() {
				address = prefix.Addr().String()
			}
		}
		return err
	}))
	check(t, n.Within(func() error {
		names, err := net.ListenPacket("udp4", ":53")
		if err != nil {
			return err
		}
		t.Cleanup(func() { names.Close() })
		go answerNames(names, netip.MustParseAddr(address))
		return nil
	}))
	return address
}

// answerNames answers that every name has an address.
func answerNames(conn net.PacketConn, address netip.Addr) {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
				Body: &dnsmessage.AResource{A: address.As4()}}}
		}
		if answer, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

// A pod reaches what policy grants, from its own address, and nothing else.
func network(t *testing.T, o *operator, n *nodetest.Node) {
	digest := o.bundle(opens, fetches, private)
	o.configure(n.Runsc.Path, "default = \""+digest+"\"")
	server, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	address := serve(t, n, server)
	_, err = n.RunPod(nodetest.Fumehood, map[string]string{"fumehood.dev/network": "evil.test"})
	wantError(t, err, "pod.denied")
	p, err := n.RunPod(nodetest.Fumehood, map[string]string{"fumehood.dev/network": "api.test"})
	check(t, err)
	for range 2 {
		c, err := p.Container(forever)
		check(t, err)
		r, err := c.Exec("/bin/fetch", "http://api.test/x")
		check(t, err)
		if !strings.HasPrefix(r.Stdout, "200 hello api.test 10.123.") || strings.HasSuffix(r.Stdout, " "+nodetest.Gateway) {
			t.Errorf("%+v", r)
		}
		for _, url := range []string{"http://evil.test/", "http://" + address + "/", "http://" + nodetest.Gateway + "/"} {
			if r, err := c.Exec("/bin/fetch", url); err != nil || r.Code == 0 {
				t.Errorf("%s: %+v, %v", url, r, err)
			}
		}
	}
	check(t, p.StopAndRemove())
	o.verify("egress.")
	p, err = n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	c, err := p.Container(forever)
	check(t, err)
	if r, err := c.Exec("/bin/fetch", "http://"+address+"/x"); err != nil || r.Code == 0 {
		t.Errorf("a pod without a network: %+v, %v", r, err)
	}
	check(t, p.StopAndRemove())
	check(t, server.StopAndRemove())
}

// A pod that does so much that its log is too large ends.
func logFull(t *testing.T, o *operator, n *nodetest.Node) {
	digest := o.bundle(noID, noDate)
	o.configure(n.Runsc.Path, "default = \""+digest+"\"", "log_limit = 100000")
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	c, err := p.Container(nodetest.ContainerOptions{ReadOnly: true, Command: []string{"/bin/sh", "-c", "while env echo on; do :; done"}})
	check(t, err)
	_, err = c.Wait()
	check(t, err)
	check(t, p.StopAndRemove())
	o.verify("pod.log-full")
}

// A pod whose bundle is gone ends.
func revoked(t *testing.T, o *operator, n *nodetest.Node, digest string) {
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	c, err := p.Container(forever)
	check(t, err)
	check(t, os.Remove(o.place(digest)))
	_, err = c.Wait()
	check(t, err)
	_, err = c.Exec("/bin/echo")
	if err == nil {
		t.Error("a command runs in a pod whose policy was revoked")
	}
	check(t, p.StopAndRemove())
	o.verify("pod.revoked")
}

func wantExec(t *testing.T, c *nodetest.Container, out string, code int32, command ...string) {
	t.Helper()
	r, err := c.Exec(command...)
	if err != nil || r.Stdout != out || r.Code != code {
		t.Errorf("%q: %+v, %v", command, r, err)
	}
}

// What setup installs is what containerd then runs, beside its own fumehood-runsc.
func TestInstalled(t *testing.T) {
	o := newOperator(t)
	check(t, os.Chmod(filepath.Dir(o.dir), 0o755)) // sentries enter it
	at := ""
	n := nodetest.Start(t, nodetest.Options{Env: []string{node.Variable + "=" + o.file}, Install: func(n *nodetest.Node) error {
		from, root := o.dir+"/from", o.dir+"/host"
		err := nodetest.Run(t.Context(), "", nil, "cp", "-a", filepath.Dir(n.Runsc.Path), from)
		if err == nil {
			err = nodetest.Run(t.Context(), "", nil, "cp", n.Dir+"/bin/containerd-shim-fumehood-v1", from)
		}
		if err != nil {
			return err
		}
		version, _, err := setup.Install(t.Context(), setup.Options{From: from, Root: root, RunscConfig: n.Dir + "/fumehood.toml"})
		if err != nil {
			return err
		}
		at = root + version
		text, err := os.ReadFile(root + doctor.DropIn)
		return errors.Join(err, os.WriteFile(n.Dir+"/conf.d/fumehood.toml", []byte(strings.ReplaceAll(string(text), doctor.Versions, root+doctor.Versions)), 0o644))
	}})
	o.configure("", "default = \""+o.bundle(noDate)+"\"")
	o.accepted(at+"/containerd-shim-fumehood-v1", "version", "configuration", "runsc", "sandbox", "state", "logs", "policy")
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	c, err := p.Container(forever)
	check(t, err)
	_, err = c.Exec("/bin/date")
	wantError(t, err, "there is no time")
	if !slices.ContainsFunc(p.Processes(), func(q nodetest.Process) bool { return program(q.Pid) == at+"/containerd-shim-fumehood-v1" }) {
		t.Errorf("the shim in %s does not run: %+v", at, p.Processes())
	}
	options, err := filepath.Glob(o.dir + "/run/*/runsc.toml")
	if err != nil || len(options) != 1 {
		t.Fatalf("%q, %v", options, err)
	}
	if text, err := os.ReadFile(options[0]); err != nil || !strings.Contains(string(text), at+"/fumehood-runsc\"") {
		t.Errorf("%s, %v", text, err)
	}
	check(t, p.StopAndRemove())
}

// accepted checks what an installed shim finds to be so. containerd's configuration is not at its usual
// place here.
func (o *operator) accepted(shim string, want ...string) {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), shim, "check", "-json")
	cmd.Env = append(os.Environ(), node.Variable+"="+o.file)
	out, _ := cmd.Output() // what is missing is an exit code
	var checks []doctor.Check
	check(o.t, json.Unmarshal(out, &checks))
	for _, name := range want {
		if !slices.ContainsFunc(checks, func(k doctor.Check) bool { return k.Name == name && k.State == doctor.OK }) {
			o.t.Errorf("%s is not accepted: %s", name, out)
		}
	}
}

// program returns the file that a process runs.
func program(pid int) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return path
}

// BenchmarkPod starts pods with gVisor's shim and with the gate, one after the other: the time of
// the pod, of a container, of a command in it and of 500 programs that a shell starts, and the memory of
// the first container's shim. The
// first pod of a node with the gate, for which no process waits, is apart.
func BenchmarkPod(b *testing.B) {
	o := newOperator(b)
	n := nodetest.Start(b, nodetest.Options{Env: []string{node.Variable + "=" + o.file}})
	o.configure(n.Runsc.Path, "default = \""+o.bundle(noDate)+"\"")
	spent := map[string]time.Duration{}
	round := func(handler, name string) {
		step := func(part string, do func() error) {
			began := time.Now()
			check(b, do())
			spent[name+"-"+part] += time.Since(began)
		}
		var p *nodetest.Pod
		var c *nodetest.Container
		step("pod", func() (err error) { p, err = n.RunPod(handler, nil); return err })
		step("container", func() (err error) { c, err = p.Container(forever); return err })
		step("exec", func() error { _, err := c.Exec("/bin/echo", "on"); return err })
		step("500-programs", func() error { return programs(c, 500) })
		b.ReportMetric(float64(resident(b, shim(b, p, p.ID)))/1024, name+"-shim-MiB")
		step("stop", p.StopAndRemove)
	}
	round(nodetest.GVisor, "gvisor-first")
	round(nodetest.Fumehood, "fumehood-first")
	rounds := 0
	for b.Loop() {
		rounds++
		for _, handler := range []string{nodetest.GVisor, nodetest.Fumehood} {
			time.Sleep(3 * time.Second) // processes that wait for the next pod are started after one, and compile
			round(handler, handler)
		}
	}
	for name, total := range spent {
		if !strings.Contains(name, "-first-") {
			total /= time.Duration(rounds)
		}
		b.ReportMetric(float64(total.Milliseconds()), name+"-ms")
	}
}

// programs starts n programs, each second one from a shell and the others from env.
func programs(c *nodetest.Container, n int) error {
	r, err := c.Exec("/bin/sh", "-c", fmt.Sprintf("for i in $(seq %d); do env echo on; done", n/2))
	if err == nil && strings.Count(r.Stdout, "on\n") != n/2 {
		err = fmt.Errorf("%+v", r)
	}
	return err
}

// BenchmarkMemory is the memory of pods with one container: of their shims, gofers and sandboxes,
// each page shared by several processes counted in parts (PSS), and of the processes that wait for others.
func BenchmarkMemory(b *testing.B) {
	const pods = 8
	o := newOperator(b)
	n := nodetest.Start(b, nodetest.Options{Env: []string{node.Variable + "=" + o.file}})
	o.configure(n.Runsc.Path, "default = \""+o.bundle(noDate)+"\"")
	for b.Loop() {
		for _, handler := range []string{nodetest.GVisor, nodetest.Fumehood} {
			var list []*nodetest.Pod
			for range pods {
				p, err := n.RunPod(handler, nil)
				check(b, err)
				_, err = p.Container(forever)
				check(b, err)
				list = append(list, p)
			}
			time.Sleep(5 * time.Second)
			total, waits := 0, 0
			for _, p := range list {
				for _, q := range p.Processes() {
					total += field(b, fmt.Sprintf("/proc/%d/smaps_rollup", q.Pid), "Pss:")
				}
			}
			for _, pid := range waiting(n) {
				waits += field(b, fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:")
			}
			b.ReportMetric(float64(total)/1024/pods, handler+"-MiB/pod")
			b.ReportMetric(float64(waits)/1024, handler+"-waiting-MiB")
			for _, p := range list {
				check(b, p.StopAndRemove())
			}
		}
	}
}

// resident returns the memory of a process, in KiB.
func resident(t testing.TB, pid int) (kib int) {
	t.Helper()
	return field(t, fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
}

// field returns a number after a name in a file.
func field(t testing.TB, path, name string) (n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	_, rest, _ := strings.Cut(string(text), name)
	_, err = fmt.Sscan(rest, &n)
	check(t, err)
	return n
}
