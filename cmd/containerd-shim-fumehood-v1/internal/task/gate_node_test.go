// SPDX-License-Identifier: Apache-2.0

//go:build node

package task_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/fumehood/fumehood/cmd/containerd-shim-fumehood-v1/internal/node"
	"github.com/fumehood/fumehood/cmd/containerd-shim-fumehood-v1/internal/nodetest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/key"
	"github.com/fumehood/fumehood/pkg/ledger"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/source"
)

const noID = `package fumehood.exec

deny contains {"rule": "test.id", "message": "id is not for pods", "suggestion": "use another"} if regex.match("(^|/)id$", input.argv[0])

deny contains {"rule": "test.copy", "message": "it is a copy of id", "suggestion": "use another"} if endswith(input.path, "/id")
`

const noDate = `package fumehood.command

deny contains {"rule": "test.date", "message": "there is no time", "suggestion": "use another"} if input.command.tool == "date"
`

// An operator is the configuration of a node.
type operator struct {
	t    testing.TB
	dir  string
	key  string
	file string
}

func newOperator(t testing.TB) *operator {
	o := &operator{t: t, dir: t.TempDir()}
	o.key, o.file = filepath.Join(o.dir, "key.pem"), filepath.Join(o.dir, "node.toml")
	public, err := key.GenerateBundle(o.key)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(o.dir, "public.pem"), []byte(public), 0o600))
	check(t, os.Mkdir(filepath.Join(o.dir, "policies"), 0o700))
	return o
}

// bundle puts a bundle where the node finds it, and returns its digest.
func (o *operator) bundle(rules ...string) string {
	o.t.Helper()
	recipe := source.Recipe{}
	for i, text := range rules {
		recipe.Files = append(recipe.Files, policy.File{Name: fmt.Sprintf("p%d.rego", i), Content: []byte(text)})
	}
	data, err := source.Build(recipe)
	check(o.t, err)
	data, err = source.Signing{Key: o.key, KeyID: source.DefaultKeyID}.Sign("test", data)
	check(o.t, err)
	digest := source.Digest(data)
	check(o.t, os.WriteFile(o.place(digest), data, 0o600))
	return digest
}

func (o *operator) place(digest string) string {
	return filepath.Join(o.dir, "policies", strings.TrimPrefix(digest, "sha256:")+".tar.gz")
}

// configure writes the node's file.
func (o *operator) configure(n string, lines ...string) {
	o.t.Helper()
	text := fmt.Sprintf("policies = %q\nkeys = [%q]\nlogs = %q\nstate = %q\nrunsc = %q\n", o.dir+"/policies", o.dir+"/public.pem", o.dir+"/logs", o.dir+"/run", n)
	check(o.t, os.WriteFile(o.file, []byte(text+strings.Join(lines, "\n")+"\n"), 0o600))
}

// verify checks the last log that was written: it is sealed, and says what.
func (o *operator) verify(what string) {
	o.t.Helper()
	files, err := filepath.Glob(o.dir + "/logs/*/*.jsonl")
	check(o.t, err)
	at := func(name string) time.Time {
		info, err := os.Stat(name)
		check(o.t, err)
		return info.ModTime()
	}
	slices.SortFunc(files, func(a, b string) int { return at(a).Compare(at(b)) })
	if len(files) == 0 {
		o.t.Fatal("there is no log")
	}
	data, err := os.ReadFile(files[len(files)-1])
	check(o.t, err)
	found, err := audit.Verify(bytes.NewReader(data), audit.Trust{})
	if err != nil || found.State != audit.Sealed || !strings.Contains(string(data), what) {
		o.t.Errorf("%s: %+v, %v, %q is in it: %v", files[len(files)-1], found, err, what, strings.Contains(string(data), what))
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// forever is a container that starts a program each second.
var forever = nodetest.ContainerOptions{ReadOnly: true, Command: []string{"/bin/sh", "-c", "while sleep 1; do env echo on; done"}}

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
		{"network", network}, {"ledger", ledgerOfLogs}, {"log full", logFull},
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
		"pod.pause": "pause = [\"/other\"]\ndefault = \"" + digest + "\"",
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
	check(t, p.StopAndRemove())
	o.verify("end")
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

// A log is signed with the node's key, and its end is in the node's ledger.
func ledgerOfLogs(t *testing.T, o *operator, n *nodetest.Node) {
	public := map[string]string{}
	for _, name := range []string{"log", "ledger"} {
		text, err := key.GenerateLog(filepath.Join(o.dir, name+".key"), "node.test/"+name)
		check(t, err)
		public[name] = strings.TrimSpace(text)
	}
	o.configure(n.Runsc.Path, "default = \""+o.bundle(noDate)+"\"", "log_key = \""+o.dir+"/log.key\"", "ledger = \""+o.dir+"/ledger\"", "ledger_key = \""+o.dir+"/ledger.key\"")
	for range 2 {
		p, err := n.RunPod(nodetest.Fumehood, nil)
		check(t, err)
		check(t, p.StopAndRemove())
		o.verify(public["log"])
	}
	kept, err := ledger.Open(o.dir+"/ledger", public["ledger"])
	check(t, err)
	if head, err := kept.Verify(); err != nil || head.Size != 2 {
		t.Errorf("%+v, %v", head, err)
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

// BenchmarkPod starts pods with gVisor's shim and with the gate, one after the other: the time of
// the pod, of a container and of a command in it, and the memory of the first container's shim.
func BenchmarkPod(b *testing.B) {
	o := newOperator(b)
	n := nodetest.Start(b, nodetest.Options{Env: []string{node.Variable + "=" + o.file}})
	o.configure(n.Runsc.Path, "default = \""+o.bundle(noDate)+"\"")
	spent := map[string]time.Duration{}
	rounds := 0
	for b.Loop() {
		rounds++
		for _, handler := range []string{nodetest.GVisor, nodetest.Fumehood} {
			step := func(name string, do func() error) {
				began := time.Now()
				check(b, do())
				spent[handler+"-"+name] += time.Since(began)
			}
			var p *nodetest.Pod
			var c *nodetest.Container
			step("pod", func() (err error) { p, err = n.RunPod(handler, nil); return err })
			step("container", func() (err error) { c, err = p.Container(forever); return err })
			step("exec", func() error { _, err := c.Exec("/bin/echo", "on"); return err })
			b.ReportMetric(float64(resident(b, shim(b, p, p.ID)))/1024, handler+"-shim-MiB")
			step("stop", p.StopAndRemove)
		}
	}
	for name, total := range spent {
		b.ReportMetric(float64(total.Milliseconds())/float64(rounds), name+"-ms")
	}
}

// resident returns the memory of a process, in KiB.
func resident(t testing.TB, pid int) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(t, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	_, err = fmt.Sscan(rest, &kib)
	check(t, err)
	return kib
}
