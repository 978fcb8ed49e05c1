// SPDX-License-Identifier: Apache-2.0

package names

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
)

const (
	dnsPort        = 53
	maxServers     = 4
	maxStaticNames = 4096
	maxFile        = 4 << 20
)

// HostUpstream returns the host's own sources of names: the servers in /etc/resolv.conf and
// the names in /etc/hosts. The gateway's process cannot read those files.
func HostUpstream() (Upstream, error) {
	var u Upstream
	conf, err := os.Open("/etc/resolv.conf")
	if err != nil {
		return u, fmt.Errorf("cannot find the host's name servers: %w", err)
	}
	defer conf.Close()
	if u.Servers, err = ReadServers(conf); err != nil {
		return u, err
	}
	hosts, err := os.Open("/etc/hosts")
	if os.IsNotExist(err) {
		return u, nil
	}
	if err != nil {
		return u, fmt.Errorf("cannot read the host's names: %w", err)
	}
	defer hosts.Close()
	u.Hosts, err = ReadHosts(hosts)
	return u, err
}

// ReadServers returns the first four "nameserver" lines of a resolv.conf. The rest of
// the file is for programs that complete names, which this package does not.
func ReadServers(r io.Reader) ([]netip.AddrPort, error) {
	var servers []netip.AddrPort
	err := eachLine(r, func(fields []string) {
		if fields[0] != "nameserver" || len(fields) < 2 || len(servers) == maxServers {
			return
		}
		if a, err := netip.ParseAddr(fields[1]); err == nil {
			servers = append(servers, netip.AddrPortFrom(a.Unmap(), dnsPort))
		}
	})
	if err == nil && len(servers) == 0 {
		return nil, fmt.Errorf("cannot find the host's name servers: resolv.conf names none")
	}
	return servers, err
}

// ReadHosts returns the names of a hosts file, the first 4,096 of them. Addresses with
// a zone are left out.
func ReadHosts(r io.Reader) (map[string][]netip.Addr, error) {
	hosts := map[string][]netip.Addr{}
	err := eachLine(r, func(fields []string) {
		a, err := netip.ParseAddr(fields[0])
		if err != nil || a.Zone() != "" {
			return
		}
		for _, f := range fields[1:] {
			name, err := Parse(f)
			if err != nil {
				continue
			}
			if _, ok := hosts[name]; ok || len(hosts) < maxStaticNames {
				hosts[name] = append(hosts[name], a)
			}
		}
	})
	return hosts, err
}

// eachLine calls use with the words of each line that has any, without comments.
func eachLine(r io.Reader, use func([]string)) error {
	lines := bufio.NewScanner(io.LimitReader(r, maxFile))
	for lines.Scan() {
		line := lines.Text()
		if i := strings.IndexAny(line, "#;"); i >= 0 {
			line = line[:i]
		}
		if fields := strings.Fields(line); len(fields) > 0 {
			use(fields)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read the host's names: %w", err)
	}
	return nil
}
