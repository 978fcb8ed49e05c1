// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/segment"
)

// quiet are settings that keep the host kernel from sending frames by itself or
// answering frames that are for the sandbox. A host whose /proc/sys is read-only keeps its
// defaults: none of them lets anything out; they only add frames that the gateway drops.
var quiet = []struct{ path, value string }{
	// A new namespace inherits the host's settings, and a container host forwards.
	{"ipv4/ip_forward", "0"},
	{"ipv6/conf/all/forwarding", "0"},
	{"ipv4/icmp_echo_ignore_all", "1"},
	{"ipv4/conf/eth0/arp_ignore", "8"},
	{"ipv6/icmp/echo_ignore_all", "1"},
	{"ipv6/conf/eth0/accept_ra", "0"},
	{"ipv6/conf/eth0/autoconf", "0"},
	{"ipv6/conf/eth0/router_solicitations", "0"},
	{"ipv6/conf/eth0/accept_dad", "0"},
	{"ipv6/conf/eth0/dad_transmits", "0"},
	{"ipv6/conf/eth0/disable_ipv6", "0"},
}

// configureNamespace gives this thread's namespace its addresses and routes. It returns s, without
// IPv6 if the kernel has none.
func configureNamespace(s segment.Segment) (segment.Segment, error) {
	for _, setting := range quiet {
		_ = os.WriteFile("/proc/sys/net/"+setting.path, []byte(setting.value), 0)
	}
	if err := forwardsNothing(); err != nil {
		return s, err
	}
	if err := bringUpDevice("lo", nil); err != nil {
		return s, err
	}
	if err := bringUpDevice(device, func(link netlink.Link) error { return configureDevice(link, s) }); err != nil {
		return s, err
	}
	return assignAddresses(s)
}

// assignAddresses gives the device of this thread's namespace its addresses and routes, whether or not it has
// them. It returns s, without IPv6 if the kernel has none.
func assignAddresses(s segment.Segment) (segment.Segment, error) {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return s, missingSupportError("find "+device, err)
	}
	if err := assignDeviceAddress(link, s.Sandbox.V4, s.Gateway.V4, s.Gateway.MAC); err != nil {
		return s, err
	}
	if !s.Sandbox.V6.IsValid() {
		return s, nil
	}
	err = assignDeviceAddress(link, s.Sandbox.V6, s.Gateway.V6, s.Gateway.MAC)
	if withoutIPv6(err) {
		return s.WithoutIPv6(), nil
	}
	if err != nil {
		return s, err
	}
	return s, waitForIPv6Address(s.Sandbox.V6)
}

// waitForIPv6Address waits until the kernel uses its IPv6 address, a moment later, even without
// duplicate detection. Until then the kernel drops packets for it. The route to the
// address itself shows that it is in use.
func waitForIPv6Address(own netip.Addr) error {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		routes, err := netlink.RouteGet(own.AsSlice())
		if err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL {
			return nil
		}
		if time.Now().After(end) {
			return missingSupportError("activate the IPv6 address of "+device, err)
		}
	}
}

// patience is far more than a kernel needs for this.
const patience = 30 * time.Second

// forwardsNothing returns an error if the namespace's kernel would forward packets.
func forwardsNothing() error {
	for _, path := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		value, err := os.ReadFile("/proc/sys/net/" + path)
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6, or no /proc/sys at all: then nothing has set it either
		}
		if err != nil || strings.TrimSpace(string(value)) != "0" {
			return missingSupportError("disable forwarding in the sandbox's namespace", err)
		}
	}
	return nil
}

// bringUpDevice brings a device up, after prepare.
func bringUpDevice(name string, prepare func(netlink.Link) error) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return missingSupportError("find "+name, err)
	}
	if prepare != nil {
		if err := prepare(link); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return missingSupportError("bring "+name+" up", err)
	}
	return nil
}

// configureDevice sets the device's hardware address and MTU while it is still down.
func configureDevice(link netlink.Link, s segment.Segment) error {
	if err := netlink.LinkSetHardwareAddr(link, s.Sandbox.MAC); err != nil {
		return missingSupportError("give "+device+" an address", err)
	}
	if err := netlink.LinkSetMTU(link, s.MTU); err != nil {
		return missingSupportError("give "+device+" an MTU", err)
	}
	// The kernel neither sends nor answers neighbor requests.
	if err := netlink.LinkSetARPOff(link); err != nil {
		return missingSupportError("disable neighbor requests on "+device, err)
	}
	// No link-local address: with one, the kernel would look for neighbors and routers. A
	// kernel without IPv6 does not know this setting.
	_ = netlink.LinkSetIP6AddrGenMode(link, noAddress)
	return nil
}

const noAddress = 1 // IN6_ADDR_GEN_MODE_NONE

// assignDeviceAddress gives the device the address own, the default route through gateway, and the
// gateway's hardware address, which runsc takes over like the others.
func assignDeviceAddress(link netlink.Link, own, gateway netip.Addr, mac net.HardwareAddr) error {
	address := &netlink.Addr{IPNet: pairNetwork(own)}
	family := netlink.FAMILY_V4
	if own.Is6() {
		family = netlink.FAMILY_V6
		address.Flags = unix.IFA_F_NODAD // usable at once
	}
	if err := netlink.AddrReplace(link, address); err != nil {
		return missingSupportError(fmt.Sprintf("give %s the address %s", device, own), err)
	}
	neighbour := &netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: family, State: netlink.NUD_PERMANENT,
		IP: gateway.AsSlice(), HardwareAddr: mac,
	}
	if err := netlink.NeighSet(neighbour); err != nil {
		return missingSupportError("add the gateway as a neighbor", err)
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice()}
	if err := netlink.RouteReplace(route); err != nil {
		return missingSupportError("set the default route", err)
	}
	return nil
}

// pairNetwork returns own in the smallest network that contains both ends and no other host.
func pairNetwork(own netip.Addr) *net.IPNet {
	return &net.IPNet{IP: own.AsSlice(), Mask: net.CIDRMask(own.BitLen()-2, own.BitLen())}
}

// withoutIPv6 reports whether err is the answer of a kernel without IPv6.
func withoutIPv6(err error) bool {
	for _, without := range []error{unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EACCES, unix.EPERM} {
		if errors.Is(err, without) {
			return true
		}
	}
	return false
}
