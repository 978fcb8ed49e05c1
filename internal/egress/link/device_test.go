// SPDX-License-Identifier: Apache-2.0

package link

import "github.com/vishvananda/netlink"

// setMTU lowers the MTU of eth0 in this thread's namespace.
func setMTU(mtu int) error {
	device, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(device, mtu)
}
