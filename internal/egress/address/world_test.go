// SPDX-License-Identifier: Apache-2.0

package address

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A world is two connected network namespaces: one is the host of the Dialer, the
// other the internet. Both end with the test.
type world struct {
	t        *testing.T
	host     *room
	internet *room
	calls    map[string]*atomic.Int32 // connections, by listening address
}

// A room is a thread in its own namespace.
type room struct {
	work chan func()
	tid  int
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{work: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends, and with it its namespace
		r.tid = unix.Gettid()
		ready <- unix.Unshare(unix.CLONE_NEWNET)
		for f := range r.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		t.Fatalf("cannot make a network namespace: %v", err)
	}
	t.Cleanup(func() { close(r.work) })
	return r
}

// do runs f in the room and returns what it returned.
func (r *room) do(f func() error) error {
	done := make(chan error)
	r.work <- func() { done <- f() }
	return <-done
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, host: newRoom(t), internet: newRoom(t), calls: map[string]*atomic.Int32{}}
	w.must(w.host.do(func() error {
		wire := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "wire"}, PeerName: "wire",
			PeerNamespace: netlink.NsPid(w.internet.tid)}
		return netlink.LinkAdd(wire)
	}))
	w.addresses(w.host, "lo", "127.0.0.1/8")
	w.addresses(w.host, "wire", "20.1.2.3/24", "10.9.8.7/24", "2600:1f18::7/64")
	w.addresses(w.internet, "wire", "20.1.2.4/24", "20.1.2.5/24", "10.9.8.8/24", "2600:1f18::8/64")
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) addresses(r *room, device string, list ...string) {
	w.t.Helper()
	w.must(r.do(func() error {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
		for _, text := range list {
			a, err := netlink.ParseAddr(text)
			if err != nil {
				return err
			}
			a.Flags = unix.IFA_F_NODAD
			if err := netlink.AddrAdd(link, a); err != nil && !os.IsExist(err) {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	}))
}

// listen counts the connections to address in a room.
func (w *world) listen(r *room, address string) *atomic.Int32 {
	w.t.Helper()
	count := new(atomic.Int32)
	w.calls[address] = count
	var l net.Listener
	w.must(r.do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	}))
	w.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			c.Close()
		}
	}()
	return count
}
