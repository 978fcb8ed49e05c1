// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A sandbox with a namespace has that namespace's devices and their addresses, and sends
// only through them. No host answers here, so no connection succeeds.
func TestNetns(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	tap, path := deadWire(t)
	o.Netns = path
	r := testRunner(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { asked <- arp(tap); cancel() }()
	x := Execution{ID: "x", Grant: proposal.Grant{Limits: testLimits()}, Text: `cat /proc/net/dev | grep -o 'eth0\|lo'; exec 3<>/dev/tcp/192.0.2.7/80 && echo connected; exit 0`}
	result, err := r.Run(ctx, x)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if out := string(result.Stdout.Head); !strings.Contains(out, "eth0") || strings.Contains(out, "connected") {
		t.Errorf("status %s, stdout %q, stderr %q: want eth0, and no connection", result.Status, out, result.Stderr.Head)
	}
	select {
	case err := <-asked:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("no frame of the sandbox came out of its device")
	}
}

// arp reads frames until one asks who has an address.
func arp(tap *os.File) error {
	for frame := make([]byte, 1<<16); ; {
		n, err := tap.Read(frame)
		if err != nil || n > 14 && frame[12] == 8 && frame[13] == 6 {
			return err
		}
	}
}

// deadWire makes a namespace with a TAP on which no host answers.
func deadWire(t *testing.T) (tap *os.File, path string) {
	t.Helper()
	type made struct {
		tap, ns *os.File
		err     error
	}
	c := make(chan made)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends, and with it its namespace
		m := made{err: unix.Unshare(unix.CLONE_NEWNET)}
		if m.err == nil {
			m.tap, m.ns, m.err = tapHere()
		}
		c <- m
	}()
	m := <-c
	if m.err != nil {
		t.Fatalf("cannot make a network namespace: %v", m.err)
	}
	t.Cleanup(func() { m.tap.Close(); m.ns.Close() })
	return m.tap, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.ns.Fd())
}

func tapHere() (tap, ns *os.File, err error) {
	link := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI, Queues: 1}
	if err := netlink.LinkAdd(link); err != nil {
		return nil, nil, err
	}
	address, err := netlink.ParseAddr("198.18.0.2/15")
	if err != nil {
		return nil, nil, err
	}
	for _, step := range []func() error{
		func() error { return netlink.LinkSetUp(link) },
		func() error { return netlink.AddrAdd(link, address) },
		func() error {
			return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Index, Gw: net.IPv4(198, 18, 0, 1)})
		},
	} {
		if err := step(); err != nil {
			return nil, nil, fmt.Errorf("cannot set eth0 up: %w", err)
		}
	}
	ns, err = os.Open("/proc/thread-self/ns/net")
	return link.Fds[0], ns, err
}

// Files that a run puts into HOME exist, belong to the commands' user, and can be
// changed.
func TestHome(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Home = map[string]string{".npmrc": "registry=x\n", ".m2/settings.xml": "<settings/>\n"}
	r := testRunner(t, o)
	x := Execution{ID: "x", Grant: proposal.Grant{Limits: testLimits()}, Text: `cat ~/.npmrc ~/.m2/settings.xml && echo more >> ~/.npmrc && mkdir ~/.m2/repository && stat -c %a ~/.npmrc`}
	result, err := r.Run(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(result.Stdout.Head), "registry=x\n<settings/>\n600\n"; got != want {
		t.Errorf("stdout %q, stderr %q, want %q", got, result.Stderr.Head, want)
	}
}
