// SPDX-License-Identifier: Apache-2.0

//go:build node

package task_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/fumehood/fumehood/internal/agents/session/conformance"
	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/internal/agents/session/remote/certtest"
	"github.com/fumehood/fumehood/k8s/internal/node"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A sessions is a node that has them.
type sessions struct {
	*operator
	node           *nodetest.Node
	nodes, clients certtest.Authority
	digest         string
}

var session = nodetest.ContainerOptions{Image: nodetest.Tools, Command: []string{"session"}}

// pod starts a pod that is a session, with its container.
func (s *sessions) pod(t testing.TB) (*nodetest.Pod, *nodetest.Container) {
	t.Helper()
	p, err := s.node.RunPod(nodetest.Fumehood, map[string]string{"fumehood.dev/session": "true"})
	check(t, err)
	c, err := p.Container(session)
	check(t, err)
	return p, c
}

// client returns a client of the session of a pod, whose certificate has a name.
func (s *sessions) client(t testing.TB, p *nodetest.Pod, by certtest.Authority, name string) *remote.Client {
	t.Helper()
	c, err := remote.New(remote.ClientOptions{Address: s.node.Forward(t, net.JoinHostPort(p.Address, "8443")), Logs: t.TempDir(), Artifacts: t.TempDir(),
		TLS: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: s.nodes.Pool, ServerName: remote.ServerName("node"), Certificates: []tls.Certificate{by.NewLeaf(t, name)}}})
	check(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func (s *sessions) mine(t testing.TB, p *nodetest.Pod) *remote.Client {
	return s.client(t, p, s.clients, remote.ClientName("default"))
}

// Pods that are sessions.
func TestSessions(t *testing.T) {
	o := newOperator(t)
	n := nodetest.Start(t, nodetest.Options{Env: []string{node.Variable + "=" + o.file}})
	check(t, n.LoadTools(t.Context()))
	s := &sessions{operator: o, node: n, nodes: certtest.NewAuthority(t), clients: certtest.NewAuthority(t), digest: o.bundle(conformanceRules()...)}
	lines := "default = \"" + s.digest + "\"\n" + o.sessions(s.nodes, s.clients)
	for _, test := range []struct {
		name string
		do   func(*testing.T, *sessions)
	}{
		{"conformance", sessionConformance}, {"refused pods", sessionRefused}, {"refused clients", sessionClients}, {"exec", sessionExec}, {"process killed", sessionKilled},
		{"shim killed", sessionShimKilled}, {"deleted", sessionDeleted}, {"disk", sessionDisk}, {"revoked", sessionRevoked},
	} {
		t.Run(test.name, func(t *testing.T) {
			o.t = t
			o.configure(n.Runsc.Path, lines)
			test.do(t, s)
			if left := n.Left(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if left, err := os.ReadDir(o.dir + "/work"); len(left) > 0 || err != nil && !os.IsNotExist(err) {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// A session in a pod does what one on this host does.
func sessionConformance(t *testing.T, s *sessions) {
	conformance.Run(t, func(t *testing.T) gate.Opener {
		p, _ := s.pod(t)
		t.Cleanup(func() { check(t, p.StopAndRemove()) })
		return s.mine(t, p)
	})
	s.verify(`"totals":`)
}

func sessionRefused(t *testing.T, s *sessions) {
	p, err := s.node.RunPod(nodetest.Fumehood, map[string]string{"fumehood.dev/session": "true"})
	check(t, err)
	for want, o := range map[string]nodetest.ContainerOptions{
		"session.command": {Image: nodetest.Tools, Command: []string{"session", "--policy", "mine"}},
		"session.volume":  {Image: nodetest.Tools, Command: []string{"session"}, Mounts: []*cri.Mount{{HostPath: t.TempDir(), ContainerPath: "/data"}}},
	} {
		_, err := p.Container(o)
		wantError(t, err, want)
	}
	c, err := p.Container(session)
	check(t, err)
	_, err = p.Container(session) // its address is taken
	wantError(t, err, "session.door")
	check(t, c.StopAndRemove())
	check(t, p.StopAndRemove())

	s.configure(s.node.Runsc.Path, "default = \""+s.digest+"\"")
	p, err = s.node.RunPod(nodetest.Fumehood, map[string]string{"fumehood.dev/session": "true"})
	check(t, err)
	_, err = p.Container(session)
	wantError(t, err, "session.none")
	check(t, p.StopAndRemove())
}

// Only a client of the pod's namespace gets through, and only one has the session.
func sessionClients(t *testing.T, s *sessions) {
	p, _ := s.pod(t)
	for what, c := range map[string]*remote.Client{
		"another namespace":  s.client(t, p, s.clients, remote.ClientName("other")),
		"a node":             s.client(t, p, s.nodes, remote.ServerName("node")),
		"a node's authority": s.client(t, p, s.nodes, remote.ClientName("default")),
		"unknown":            s.client(t, p, certtest.NewAuthority(t), remote.ClientName("default")),
	} {
		if opened, err := c.Open(t.Context(), gate.SessionOptions{}); err == nil {
			t.Errorf("%s: opened %s", what, opened.ID())
		}
	}
	first, err := s.mine(t, p).Open(t.Context(), gate.SessionOptions{})
	check(t, err)
	_, err = s.mine(t, p).Open(t.Context(), gate.SessionOptions{})
	wantError(t, err, "session.taken")
	_, err = first.Close()
	check(t, err)
	check(t, p.StopAndRemove())
}

// Nothing starts in the pod but through the session.
func sessionExec(t *testing.T, s *sessions) {
	p, c := s.pod(t)
	_, err := c.Exec("/bin/echo", "hello")
	wantError(t, err, "session.exec")
	check(t, p.StopAndRemove())
}

// open opens a session in a new pod, and starts a command in it that does not end.
func (s *sessions) open(t *testing.T) (*nodetest.Pod, *nodetest.Container, gate.Session, chan error) {
	t.Helper()
	p, c := s.pod(t)
	opened, err := s.mine(t, p).Open(t.Context(), gate.SessionOptions{})
	check(t, err)
	r, err := opened.Do(t.Context(), proposal.Proposal{ID: "first", Argv: []string{"echo", "hello"}})
	check(t, err)
	if !r.Result.Succeeded() {
		t.Fatalf("did not run: %+v", r)
	}
	ended := make(chan error, 1)
	running := make(chan struct{})
	on := sync.OnceFunc(func() { close(running) })
	ctx := gate.WithOutput(t.Context(), func(proposal.Chunk) { on() })
	go func() {
		_, err := opened.Do(ctx, proposal.Proposal{ID: "long", Run: "echo on; sleep 600"})
		ended <- err
	}()
	<-running
	return p, c, opened, ended
}

// lost waits until the client knows that its session has ended.
func lost(t *testing.T, opened gate.Session, ended chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range []<-chan struct{}{opened.Done()} {
		select {
		case <-c:
		case <-ctx.Done():
			t.Error("the client does not know that its session has ended")
		}
	}
	select {
	case <-ended:
	case <-ctx.Done():
		t.Error("the command has not ended")
	}
	_, _ = opened.Close()
}

// process returns the session's process.
func process(t *testing.T, p *nodetest.Pod) int {
	t.Helper()
	for _, x := range p.Processes() {
		if strings.Contains(x.Command, "session-host") {
			return x.Pid
		}
	}
	t.Fatalf("no process: %+v", p.Processes())
	return 0
}

// With the session's process its sandbox ends, and so does the container.
func sessionKilled(t *testing.T, s *sessions) {
	p, c, opened, ended := s.open(t)
	check(t, syscall.Kill(process(t, p), syscall.SIGKILL))
	lost(t, opened, ended)
	_, err := c.Wait()
	check(t, err)
	check(t, p.StopAndRemove())
}

// Without the shim, the process ends by itself, and seals its log.
func sessionShimKilled(t *testing.T, s *sessions) {
	p, c, opened, ended := s.open(t)
	check(t, syscall.Kill(shim(t, p, c.ID), syscall.SIGKILL))
	lost(t, opened, ended)
	_, err := c.Wait()
	check(t, err)
	check(t, p.StopAndRemove())
	s.verify(`"totals":`)
}

// A pod that is deleted ends its session and seals the log.
func sessionDeleted(t *testing.T, s *sessions) {
	p, _, opened, ended := s.open(t)
	check(t, p.StopAndRemove())
	lost(t, opened, ended)
	s.verify(`"totals":`)
}

// A session that writes more than it may ends.
func sessionDisk(t *testing.T, s *sessions) {
	s.ends(t, "session.disk", func(opened gate.Session) {
		_, _ = opened.Do(t.Context(), proposal.Proposal{ID: "much", Run: "head -c 400000000 /dev/urandom > much; sleep 60"})
	})
}

// So does one whose policy is revoked.
func sessionRevoked(t *testing.T, s *sessions) {
	s.ends(t, "policy", func(gate.Session) { s.configure(s.node.Runsc.Path) })
}

// ends starts a session that ends because of what do does.
func (s *sessions) ends(t *testing.T, why string, do func(gate.Session)) {
	t.Helper()
	p, c := s.pod(t)
	opened, err := s.mine(t, p).Open(t.Context(), gate.SessionOptions{})
	check(t, err)
	do(opened)
	_, err = c.Wait()
	check(t, err)
	text, err := c.Logs()
	if err != nil || !strings.Contains(text, why) {
		t.Errorf("the container's log is %q, %v", text, err)
	}
	_, _ = opened.Close()
	check(t, p.StopAndRemove())
	s.verify(`"totals":`)
}

// BenchmarkSession measures a pod that is a session: until it is ready, as a warm pool has it, a
// client's first answer, and commands.
func BenchmarkSession(b *testing.B) {
	o := newOperator(b)
	n := nodetest.Start(b, nodetest.Options{Env: []string{node.Variable + "=" + o.file}})
	check(b, n.LoadTools(b.Context()))
	s := &sessions{operator: o, node: n, nodes: certtest.NewAuthority(b), clients: certtest.NewAuthority(b), digest: o.bundle(conformanceRules()...)}
	o.configure(n.Runsc.Path, "default = \""+s.digest+"\"\n"+o.sessions(s.nodes, s.clients))
	var ready, first, command, programs time.Duration
	for b.Loop() {
		begin := time.Now()
		p, _ := s.pod(b)
		ready += time.Since(begin)
		time.Sleep(time.Second) // its sandbox starts, as in a warm pool
		begin = time.Now()
		opened, err := s.mine(b, p).Open(b.Context(), gate.SessionOptions{})
		check(b, err)
		_, err = opened.Do(b.Context(), proposal.Proposal{ID: "first", Argv: []string{"true"}})
		check(b, err)
		first += time.Since(begin)
		begin = time.Now()
		for i := range 20 {
			_, err = opened.Do(b.Context(), proposal.Proposal{ID: fmt.Sprint("p", i), Argv: []string{"true"}})
			check(b, err)
		}
		command += time.Since(begin) / 20
		begin = time.Now()
		_, err = opened.Do(b.Context(), proposal.Proposal{ID: "programs", Run: "for i in $(seq 250); do env echo on; done"})
		check(b, err)
		programs += time.Since(begin)
		_, err = opened.Close()
		check(b, err)
		check(b, p.StopAndRemove())
	}
	for name, d := range map[string]time.Duration{"ready": ready, "first": first, "command": command, "500-programs": programs} {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), name+"-ms")
	}
}

// BenchmarkDensity starts pods until the machine has 8 GiB less to give: with one container that does
// little, by gVisor's shim and with the gate, and sessions that wait for a client.
func BenchmarkDensity(b *testing.B) {
	o := newOperator(b)
	n := nodetest.Start(b, nodetest.Options{Env: []string{node.Variable + "=" + o.file}})
	check(b, n.LoadTools(b.Context()))
	s := &sessions{operator: o, node: n, nodes: certtest.NewAuthority(b), clients: certtest.NewAuthority(b), digest: o.bundle(conformanceRules()...)}
	o.configure(n.Runsc.Path, "default = \""+s.digest+"\"\n"+o.sessions(s.nodes, s.clients))
	idle := nodetest.ContainerOptions{ReadOnly: true, Command: []string{"/bin/sleep", "100000"}}
	plain := func(handler string) *nodetest.Pod {
		p, err := n.RunPod(handler, nil)
		check(b, err)
		_, err = p.Container(idle)
		check(b, err)
		return p
	}
	for b.Loop() {
		for name, start := range map[string]func() *nodetest.Pod{
			nodetest.GVisor: func() *nodetest.Pod { return plain(nodetest.GVisor) }, nodetest.Fumehood: func() *nodetest.Pod { return plain(nodetest.Fumehood) },
			"session": func() *nodetest.Pod { p, _ := s.pod(b); return p },
		} {
			b.ReportMetric(float64(fill(b, start)), name+"-pods")
		}
	}
}

// fill starts pods until 8 GiB less are available, returns how many, and removes them.
func fill(b *testing.B, start func() *nodetest.Pod) int {
	b.Helper()
	const room = 8 << 20 // KiB
	available := func() int { return field(b, "/proc/meminfo", "MemAvailable:") }
	var all []*nodetest.Pod
	for before := available(); before-available() < room; {
		all = append(all, start())
		if len(all)%20 == 0 {
			time.Sleep(5 * time.Second) // what a start needs for a moment is given back
		}
	}
	for _, p := range all {
		check(b, p.StopAndRemove())
	}
	return len(all)
}
