// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/roottest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestMain also runs a program that makes a namespace, prints where it is, and waits
// to be killed.
func TestMain(m *testing.M) {
	if os.Getenv("NETNS_TEST_HOLD") != "" {
		n, err := Make(Config{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		inode, _ := os.Readlink(n.Path())
		fmt.Println(inode)
		select {}
	}
	roottest.RunTests(m)
}

func mustMake(t *testing.T) *Namespace {
	t.Helper()
	n, err := Make(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// within calls f in a thread that is in n.
func within(t *testing.T, n *Namespace, f func() error) {
	t.Helper()
	err := inThread(func() error {
		if err := unix.Setns(int(n.File.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What runsc will read, with the library that runsc uses, also after a sandbox has taken it.
func TestMakeHasWhatRunscReads(t *testing.T) {
	n := mustMake(t)
	s := segment.Default()
	if n.Segment.Sandbox.V6 != s.Sandbox.V6 {
		t.Fatalf("IPv6 is %v, want %v: this host's kernel is meant to have it", n.Segment.Sandbox.V6, s.Sandbox.V6)
	}
	want := []string{
		"lo 65536  up=true", "address 127.0.0.1/8", "address ::1/128",
		"eth0 65521 02:66:68:00:00:02 up=true", "address 198.18.0.2/30", "address fd66:756d:6568::2/126",
		"default by 198.18.0.1", "default by fd66:756d:6568::1",
		"neighbour 198.18.0.1 02:66:68:00:00:01", "neighbour fd66:756d:6568::1 02:66:68:00:00:01",
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"made", func() error { return nil }},
		{"restored while it has all", n.Restore},
		{"restored", func() error { takeAddresses(t, n); return n.Restore() }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(want, listNetwork(t, n)); diff != "" {
			t.Errorf("%s: namespace (-want +got):\n%s", step.name, diff)
		}
	}
}

// takeAddresses removes the device's addresses, and with them its routes, as runsc does.
func takeAddresses(t *testing.T, n *Namespace) {
	t.Helper()
	within(t, n, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		for _, a := range addresses {
			err = errors.Join(err, netlink.AddrDel(link, &a))
		}
		return err
	})
}

// listNetwork lists what is in n.
func listNetwork(t *testing.T, n *Namespace) (got []string) {
	t.Helper()
	within(t, n, func() error {
		interfaces, err := net.Interfaces()
		if err != nil {
			return err
		}
		for _, i := range interfaces {
			got = append(got, fmt.Sprint(i.Name, " ", i.MTU, " ", i.HardwareAddr, " up=", i.Flags&net.FlagUp != 0))
			addresses, err := i.Addrs()
			if err != nil {
				return err
			}
			for _, a := range addresses {
				got = append(got, "address "+a.String())
			}
		}
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		routes, err := netlink.RouteList(link, netlink.FAMILY_ALL)
		for _, r := range routes {
			if ones, _ := r.Dst.Mask.Size(); ones == 0 {
				got = append(got, "default by "+r.Gw.String())
			}
		}
		if err != nil {
			return err
		}
		neighbours, err := netlink.NeighList(link.Attrs().Index, 0)
		for _, x := range neighbours {
			if x.State == netlink.NUD_PERMANENT {
				got = append(got, "neighbour "+x.IP.String()+" "+x.HardwareAddr.String())
			}
		}
		return err
	})
	return got
}

// The address can be used at once: there is no duplicate detection.
func TestMakeIPv6IsNotTentative(t *testing.T) {
	n := mustMake(t)
	within(t, n, func() error {
		conn, err := net.ListenUDP("udp6", net.UDPAddrFromAddrPort(netip.AddrPortFrom(n.Segment.Sandbox.V6, 0)))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// The kernel sends nothing unless a program of the sandbox caused it: the first frame is the one that
// the test sends, at the end of the time in which kernels solicit routers.
func TestMakeIsQuiet(t *testing.T) {
	lanetest.SkipShort(t)
	n := mustMake(t)
	time.Sleep(time.Duration(sample.Rounds(t, 15, 15, 5)) * 100 * time.Millisecond)
	const mark = "sent by the test"
	within(t, n, func() error {
		conn, err := net.Dial("udp4", netip.AddrPortFrom(n.Segment.Gateway.V4, 9).String())
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte(mark))
		return errors.Join(err, conn.Close())
	})
	if err := n.Tap.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 70000)
	k, err := n.Tap.Read(frame)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(frame[:k]), mark) {
		t.Errorf("a frame came by itself: % x", frame[:min(k, 80)])
	}
}

func TestMakeLeavesThisProcessWhereItWas(t *testing.T) {
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	n := mustMake(t)
	inside, err := os.Readlink(n.Path())
	if err != nil {
		t.Fatal(err)
	}
	// The thread that made it ends a moment after Make returns.
	for end := time.Now().Add(time.Minute); elsewhere(t, before) != "" && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if thread := elsewhere(t, before); thread != "" {
		t.Errorf("thread %s (the sandbox's namespace is %s)", thread, inside)
	}
	if inside == before {
		t.Error("the sandbox is in this process's own namespace")
	}
}

// elsewhere names a thread of this process that is not in the namespace home.
func elsewhere(t *testing.T, home string) string {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		now, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/net")
		if err == nil && now != home {
			return task.Name() + " is in " + now
		}
	}
	return ""
}

func TestMakeClose(t *testing.T) {
	n := mustMake(t)
	stay, err := unix.FcntlInt(n.File.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	kept := &Namespace{File: os.NewFile(uintptr(stay), "ns")}
	defer kept.File.Close()
	for range 2 {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	within(t, kept, func() error {
		if _, err := net.InterfaceByName("eth0"); err == nil {
			t.Error("eth0 outlives the file that is its other end")
		}
		return nil
	})
}

// A killed process leaves no namespace, mount or device.
func TestMakeKilled(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "NETNS_TEST_HOLD=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var inode string
	if _, err := fmt.Fscanln(out, &inode); err != nil || !strings.HasPrefix(inode, "net:[") {
		t.Fatalf("the holder says %q, %v", inode, err)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), inode) {
		t.Errorf("%s is still mounted", inode)
	}
	if holders := namespacesOfProcesses(t)[inode]; holders != "" {
		t.Errorf("%s is still held by process %s", inode, holders)
	}
}

func namespacesOfProcesses(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		if ns, err := os.Readlink("/proc/" + e.Name() + "/ns/net"); err == nil {
			found[ns] = e.Name()
		}
	}
	return found
}

// Without the permission, Make returns an error with a code, a name and a hint.
func TestMakeWithoutTheRight(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "NETNS_TEST_HOLD=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if err == nil {
		t.Fatalf("an unprivileged user made %s", out)
	}
	want := "network.unavailable: cannot make a network namespace: operation not permitted\n"
	if string(out) != want {
		t.Errorf("says %q, want %q", out, want)
	}
}

func TestMissingHints(t *testing.T) {
	for err, want := range map[error]string{
		unix.EPERM:  "run fumehood as root or with sudo",
		unix.ENOENT: "load the kernel's tun module",
		unix.ENOSYS: "remove network from the plan",
	} {
		var stop *proposal.StopError
		if !errors.As(missingSupportError("do it", err), &stop) || stop.Code != "network.unavailable" || !strings.Contains(stop.Hint, want) {
			t.Errorf("%v: %+v, want the hint %q", err, stop, want)
		}
	}
}

func TestMakeManyAtOnce(t *testing.T) {
	done := make(chan error)
	const many = 8
	for range many {
		go func() {
			n, err := Make(Config{})
			if err == nil {
				err = n.Close()
			}
			done <- err
		}()
	}
	for range many {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkMake(b *testing.B) {
	for b.Loop() {
		n, err := Make(Config{})
		if err != nil {
			b.Fatal(err)
		}
		n.Close()
	}
}
