// SPDX-License-Identifier: Apache-2.0

package link

import "github.com/vishvananda/netlink"

// setMTU makes eth0 of this thread's namespace smaller.
func setMTU(mtu int) error {
	device, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(device, mtu)
}
