// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/netip"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// isSorting reports whether e is a step of how C libraries and language runtimes order the addresses
// of a name: they connect a UDP socket to each, to learn which own address the kernel would use, and
// send nothing. If something had been sent, the gateway would have reported a datagram, and the
// observations would not list the call.
//
// glibc uses the port that the program asked for, on the addresses that the gateway gives to
// names; others use port 0 or 9. A resolver's port is not an attempt if the kernel connected it.
func isSorting(e proposal.Event) bool {
	where, udp := strings.CutPrefix(e.Address, "udp ")
	if e.Kind != proposal.EventConnect || !udp {
		return false
	}
	if where == "none" { // glibc ends the association before it tries the next address
		return true
	}
	to, err := netip.ParseAddrPort(where)
	if err != nil {
		return false
	}
	switch to.Port() {
	case 0, 9:
		return true
	case 53:
		return e.Errno == ""
	}
	s, addr := segment.Default(), to.Addr().Unmap().WithZone("")
	return s.Pool4.Contains(addr) || s.Pool6.Contains(addr)
}
