// SPDX-License-Identifier: Apache-2.0

package nodetest

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Address is the node's, on its loopback interface. Kubelets refuse 127.0.0.1.
const Address = "192.0.2.1"

// newNetns returns a new network namespace that has nothing but a loopback interface.
func newNetns() (*os.File, error) {
	var file *os.File
	err := onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if err := errors.Join(loopbackUp(), addAddress("lo:1", Address)); err != nil {
			return err
		}
		var err error
		file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return file, err
}

// Gateway is the address of the node in the network of its pods, which it has once there is one.
const Gateway = "10.123.0.1"

// Within runs f on a thread in the node's network namespace: what f listens on is there.
func (n *Node) Within(f func() error) error { return within(n.netns, f) }

// Within is Node.Within for the pod's network namespace, which has an address only if the pod's
// sandbox does not take it.
func (p *Pod) Within(f func() error) error {
	file, err := os.Open(p.Netns)
	if err != nil {
		return err
	}
	defer file.Close()
	return within(file, f)
}

func within(netns *os.File, f func() error) error {
	return onOwnThread(func() error {
		if err := unix.Setns(int(netns.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// loopbackUp turns on the interface at which containerd serves streams.
func loopbackUp() error {
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP)
	return setInterface(unix.SIOCSIFFLAGS, up)
}

// addAddress gives the loopback interface another address, under an alias.
func addAddress(alias, address string) error {
	request, err := unix.NewIfreq(alias)
	if err != nil {
		return err
	}
	if err := request.SetInet4Addr(net.ParseIP(address).To4()); err != nil {
		return err
	}
	return setInterface(unix.SIOCSIFADDR, request)
}

func setInterface(what uint, request *unix.Ifreq) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	return unix.IoctlIfreq(socket, what, request)
}

// StartIn starts cmd in the node's network namespace. The channel receives what Wait returns.
// The caller ends it before the node ends.
func (n *Node) StartIn(cmd *exec.Cmd) (chan error, error) { return startIn(n.netns, cmd) }

// Forward listens at the machine's loopback interface until the test ends, and passes connections on
// to an address in the node's network.
func (n *Node) Forward(t testing.TB, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.forward(t, l, address)
	return l.Addr().String()
}

// Service gives the node another address, ip, at whose port it passes connections on to an address in
// its network until the test ends, as kube-proxy would.
func (n *Node) Service(t testing.TB, ip, port, address string) {
	t.Helper()
	var l net.Listener
	err := n.Within(func() (err error) {
		if err = addAddress("lo:2", ip); err == nil {
			l, err = net.Listen("tcp", net.JoinHostPort(ip, port))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n.forward(t, l, address)
}

func (n *Node) forward(t testing.TB, l net.Listener, address string) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go n.pass(near, address)
		}
	}()
}

// pass copies both ways until one side has ended.
func (n *Node) pass(near net.Conn, address string) {
	defer near.Close()
	var far net.Conn
	err := n.Within(func() (err error) {
		far, err = net.DialTimeout("tcp", address, callTime)
		return err
	})
	if err != nil {
		return
	}
	defer far.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

// startIn starts cmd in a network namespace. The channel receives what Wait returns. The
// thread lives as long as cmd, because the kernel sends Pdeathsig when it ends.
func startIn(netns *os.File, cmd *exec.Cmd) (chan error, error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go onOwnThread(func() error {
		err := unix.Setns(int(netns.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
		return err
	})
	return ended, <-started
}

// onOwnThread runs f on a thread that no other goroutine gets, before or after.
func onOwnThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // until the goroutine ends, and the thread with it
		result <- f()
	}()
	return <-result
}
