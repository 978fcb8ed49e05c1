// SPDX-License-Identifier: Apache-2.0

package address

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, a := range list {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// dial returns the address that a Dialer without own addresses connected to.
func (w *world) dial(port uint16, private bool, list ...string) (string, error) {
	var remote string
	err := w.host.do(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c, err := NewDialer(nil).Dial(ctx, addrs(list...), port, private)
		if err != nil {
			return err
		}
		defer c.Close()
		remote = c.RemoteAddr().String()
		return nil
	})
	return remote, err
}

func TestDial(t *testing.T) {
	w := newWorld(t)
	w.listen(w.internet, "20.1.2.5:443")
	w.listen(w.internet, "10.9.8.8:443")
	w.listen(w.internet, "[2600:1f18::8]:443")
	w.listen(w.host, "20.1.2.3:443")
	w.listen(w.host, "10.9.8.7:443")
	w.listen(w.host, "127.0.0.1:443")
	w.listen(w.host, "[2600:1f18::7]:443")
	made := int32(0)
	for _, tt := range []struct {
		name    string
		addrs   []string
		private bool
		want    string // the peer, or the kind of the refusal
	}{
		{"public", []string{"20.1.2.5"}, false, "20.1.2.5:443"},
		{"public IPv6", []string{"2600:1f18::8"}, false, "[2600:1f18::8]:443"},
		{"the second answers", []string{"20.1.2.4", "20.1.2.5"}, false, "20.1.2.5:443"},
		{"private, not let", []string{"10.9.8.8"}, false, "private"},
		{"private, let", []string{"10.9.8.8"}, true, "10.9.8.8:443"},
		{"loopback", []string{"127.0.0.1"}, true, "loopback"},
		{"own", []string{"20.1.2.3"}, true, "own"},
		{"own, private", []string{"10.9.8.7"}, true, "own"},
		{"own, IPv6", []string{"2600:1f18::7"}, true, "own"},
		{"one of two refused", []string{"20.1.2.5", "127.0.0.1"}, true, "loopback"},
		{"mapped own", []string{"::ffff:20.1.2.3"}, true, "embedded"},
		{"metadata", []string{"169.254.169.254"}, true, "metadata"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.dial(443, tt.private, tt.addrs...)
			var refused *Refused
			if errors.As(err, &refused) {
				got, err = refused.Kind, nil
			} else if err == nil {
				made++
			}
			if n := w.total(made); n != made {
				t.Errorf("%d connections, of which %d were made", n, made)
			}
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	for _, own := range []string{"20.1.2.3:443", "10.9.8.7:443", "127.0.0.1:443", "[2600:1f18::7]:443"} {
		if n := w.calls[own].Load(); n != 0 {
			t.Errorf("%s was connected to %d times", own, n)
		}
	}
}

// total returns the number of connections that arrived. It waits for as many as were
// made, and then long enough for an unexpected one to arrive.
func (w *world) total(made int32) (n int32) {
	for end := time.Now().Add(time.Minute); ; {
		time.Sleep(5 * time.Millisecond) // for accepts in progress
		n = 0
		for _, c := range w.calls {
			n += c.Load()
		}
		if n >= made || time.Now().After(end) {
			return n
		}
	}
}

// An address that the host gets after the Dialer was made counts as its own, and so
// does a range that its routes make local.
func TestDialOwnThatCameLater(t *testing.T) {
	w := newWorld(t)
	var d *Dialer
	w.must(w.host.do(func() error { d = NewDialer(nil); return nil }))
	late := netip.MustParseAddr("20.1.2.77")
	any := netip.MustParseAddr("31.0.0.9")
	check := func(a netip.Addr) error { return w.host.do(func() error { return d.Check(a, true) }) }
	for _, a := range []netip.Addr{late, any} {
		if err := check(a); err != nil {
			t.Errorf("%s before it is the host's: %v", a, err)
		}
	}
	w.addresses(w.host, "wire", "20.1.2.77/24")
	w.must(w.host.do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		to, err := netlink.ParseIPNet("31.0.0.0/8")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: to, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST})
	}))
	for _, a := range []netip.Addr{late, any} {
		if got := kindOf(t, check(a)); got != "own" {
			t.Errorf("Check(%s) = %q, want own", a, got)
		}
	}
}

// Where any address can be bound, only the addresses given as own are refused.
func TestDialWhereAnyAddressCanBeBound(t *testing.T) {
	lanetest.SkipShort(t)
	w := newWorld(t)
	w.listen(w.internet, "20.1.2.5:443")
	w.must(w.host.do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_nonlocal_bind", []byte("1"), 0)
	}))
	w.must(w.host.do(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/ip_nonlocal_bind", []byte("1"), 0)
	}))
	w.listen(w.internet, "[2600:1f18::8]:443")
	if got, err := w.dial(443, false, "2600:1f18::8"); err != nil || got != "[2600:1f18::8]:443" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := w.dial(443, false, "20.1.2.5"); err != nil || got != "20.1.2.5:443" {
		t.Errorf("got %q, %v", got, err)
	}
	w.must(w.host.do(func() error {
		own, err := HostPrefixes()
		if err != nil {
			return err
		}
		err = NewDialer(own).Check(netip.MustParseAddr("20.1.2.3"), true)
		if got := kindOf(t, err); got != "own" {
			t.Errorf("own = %q", got)
		}
		return nil
	}))
}

func TestOwn(t *testing.T) {
	w := newWorld(t)
	var own []netip.Prefix
	w.must(w.host.do(func() (err error) {
		own, err = HostPrefixes()
		return err
	}))
	want := map[string]bool{"20.1.2.3/32": true, "10.9.8.7/32": true, "2600:1f18::7/128": true}
	for _, p := range own {
		if !p.Addr().IsLinkLocalUnicast() && !want[p.String()] {
			t.Errorf("%s is not an address of the host's", p)
		}
		delete(want, p.String())
	}
	if len(want) > 0 {
		t.Errorf("left out: %v", want)
	}
}

func TestDialNothing(t *testing.T) {
	d := NewDialer(nil)
	for _, tt := range []struct {
		name  string
		addrs []netip.Addr
		port  uint16
	}{{"no address", nil, 443}, {"port 0", addrs("93.184.216.34"), 0}, {"the zero Addr", []netip.Addr{{}}, 443}} {
		if c, err := d.Dial(context.Background(), tt.addrs, tt.port, true); err == nil {
			c.Close()
			t.Errorf("%s: connected", tt.name)
		}
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	w.must(w.host.do(func() error {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(50*time.Millisecond, cancel)
		c, err := NewDialer(nil).Dial(ctx, addrs("20.1.2.99", "20.1.2.98"), 443, false) // unused
		if err == nil {
			c.Close()
			t.Error("connected to nobody")
		} else if !strings.Contains(err.Error(), "canceled") {
			t.Errorf("ended with %v, not with its context", err)
		}
		return nil
	}))
}
