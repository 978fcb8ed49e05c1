// SPDX-License-Identifier: Apache-2.0

package address

import "net/netip"

// public6 is the IPv6 range assigned to the public internet (RFC 4291). Everything
// else is refused, whatever it is used for in the future.
var public6 = netip.MustParsePrefix("2000::/3")

// A specialRange is a range of addresses that does not belong to the public internet.
type specialRange struct {
	prefix netip.Prefix
	kind   string
}

// specials are IANA's special-purpose registries and the services that clouds offer
// to their machines. The first range that contains an address determines its kind,
// so narrower ranges come first.
var specials = parseRanges(
	// Services for the machine itself: credentials, agents, control.
	"169.254.169.254/32", "metadata", // AWS, Azure, Google, Oracle, DigitalOcean, OpenStack …
	"169.254.169.253/32", "metadata", // AWS: names
	"169.254.169.123/32", "metadata", // AWS: time
	"169.254.170.0/24", "metadata", // AWS: credentials of containers and pods
	"169.254.0.23/32", "metadata", // Tencent
	"100.100.100.200/32", "metadata", // Alibaba
	"100.100.100.100/32", "metadata", // Tailscale's service on the host
	"100.96.0.96/32", "metadata", // Volcengine
	"168.63.129.16/32", "metadata", // Azure's host: a public address
	"192.0.0.192/32", "metadata", // Oracle
	"fd00:ec2::/32", "metadata", // AWS
	"fd20:ce::254/128", "metadata", // Google
	"fd00:42::42/128", "metadata", // Scaleway
	"fd00:c1::a9fe:a9fe/128", "metadata", // Oracle
	"fe80::a9fe:a9fe/128", "metadata", // OpenStack
	"fd7a:115c:a1e0::53/128", "metadata", // Tailscale's service on the host

	"0.0.0.0/8", "unspecified",
	"10.0.0.0/8", "private",
	"100.64.0.0/10", "private", // shared address space, RFC 6598
	"127.0.0.0/8", "loopback",
	"169.254.0.0/16", "link-local",
	"172.16.0.0/12", "private",
	"192.0.0.0/24", "reserved",
	"192.0.2.0/24", "documentation",
	"192.31.196.0/24", "reserved", // AS112
	"192.52.193.0/24", "reserved", // AMT
	"192.88.99.0/24", "reserved", // relays of 6to4
	"192.168.0.0/16", "private",
	"192.175.48.0/24", "reserved", // AS112
	"198.18.0.0/15", "benchmark", // also the sandboxes' synthetic addresses
	"198.51.100.0/24", "documentation",
	"203.0.113.0/24", "documentation",
	"224.0.0.0/4", "multicast",
	"255.255.255.255/32", "broadcast",
	"240.0.0.0/4", "reserved",

	"::/128", "unspecified",
	"::1/128", "loopback",
	"::/96", "embedded", // IPv4-compatible
	"::ffff:0:0:0/96", "embedded", // IPv4-translated, RFC 2765
	"64:ff9b::/96", "nat64", // judged by the address in it
	"64:ff9b:1::/48", "embedded", // a network's local-use NAT64
	"100::/64", "reserved", // discard
	"100:0:0:1::/64", "reserved",
	"2001::/32", "embedded", // Teredo
	"2001:2::/48", "benchmark",
	"2001::/23", "reserved", // IETF protocols
	"2001:db8::/32", "documentation",
	"2002::/16", "embedded", // 6to4
	"2620:4f:8000::/48", "reserved", // AS112
	"3ffe::/16", "reserved", // 6bone, returned
	"3fff::/20", "documentation",
	"5f00::/16", "reserved", // segment routing
	"fc00::/7", "private", // unique local
	"fe80::/10", "link-local",
	"fec0::/10", "reserved", // site-local, deprecated
	"ff00::/8", "multicast",
)

func parseRanges(pairs ...string) []specialRange {
	var list []specialRange
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, specialRange{netip.MustParsePrefix(pairs[i]), pairs[i+1]})
	}
	return list
}

// rangeKind returns the kind of the range that holds a, or "".
func rangeKind(a netip.Addr) string {
	for _, s := range specials {
		if s.prefix.Contains(a) {
			return s.kind
		}
	}
	return ""
}
