// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"net"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

const host = `([A-Za-z0-9_][A-Za-z0-9._-]{0,252})`

// unreachable are the messages about a host that cannot be reached; the group is its name.
var unreachable = []*pattern.Pattern{
	pattern.New(`[Cc]ould not resolve host(?:name)?: ` + host),
	pattern.New(`getaddrinfo (?:ENOTFOUND|EAI_AGAIN) ` + host),
	pattern.New(`dial tcp: lookup ` + host),
	pattern.New(`Failed host lookup: '` + host),
	pattern.New(`failed_connect,.*\{~?c?['"]` + host + `['"], ?\d+\}.*\bnxdomain\b`),
	pattern.New(`(?:Temporary failure in name resolution|Name or service not known|Resource temporarily unavailable) \(` + host + `:\d+\)`),
	pattern.New(`unable to resolve host address [‘'"` + "`]" + host),
	pattern.New(`[Uu]nknown host:? ` + host),
	pattern.New(`UnknownHostException: ` + host),
	pattern.New(`Failed to resolve '` + host + `'`),
	pattern.New(`\(([A-Za-z0-9_][A-Za-z0-9._-]{0,252})\)\.\.\. failed: Temporary failure in name resolution`),
	pattern.New(`https?://` + host +
		`\S*\)?: .*(?:Temporary failure in name resolution|Name or service not known|[Nn]etwork is unreachable)`),
	pattern.New(`(?:Temporary failure in name resolution|Name or service not known|[Nn]etwork is unreachable|\bENETUNREACH\b)`),
}

// registryOf returns the registry that package managers read on a host, or "". A host of several is that of
// the first.
func registryOf(host string) string {
	for _, r := range policies.Registries() {
		for _, place := range slices.Concat(r.Hosts, r.Public) {
			name, _, _ := strings.Cut(strings.TrimPrefix(place, "https://"), "/")
			if name == host {
				return r.Name
			}
		}
	}
	return ""
}

// missingNetwork finds that a command needs a host that it cannot reach.
func missingNetwork(c *command) *proposal.Cause {
	if !c.isReliable() {
		return nil
	}
	for _, p := range unreachable {
		line, m := c.findLine(p)
		if m == nil {
			continue
		}
		name := strings.ToLower(strings.TrimRight(lastOf(m), "."))
		if isLocalName(name) || !c.hasFailedToReach(name) {
			return nil
		}
		cause := &proposal.Cause{Kind: causeNetwork, Reason: noNetwork, Subject: name, Evidence: line}
		if r := c.Decision.Grant; r != nil && len(r.Network) > 0 {
			cause.Reason = noHost
		}
		registry := registryOf(name)
		if registry == releases && !namesRelease(line, name) {
			registry = "" // git, an API, a page
		}
		switch reach := c.findGranted(name); {
		case reach.Code == "unresolved":
			cause.Advice = "Policy allows the host, but its name was not found. Check the spelling, and the DNS of the machine that runs fumehood."
		case reach.Code != "":
			cause.Advice = "Policy allows the host, but it did not answer. Check that the machine that runs fumehood can reach it."
		case registry == releases:
			cause.Advice = releasesAdvice
		case registry != "":
			cause.Config = []string{setup, registriesConfig(registry)}
		case strings.Contains(name, "."):
			cause.Advice = "The proposal can request the host, `network: [" + name + "]`; policy decides."
		default:
			cause.Advice = "The proposal can request the host in `network`; policy decides."
		}
		return cause
	}
	return nil
}

// namesRelease reports whether a line about a host of GitHub is about a release's assets.
func namesRelease(line, name string) bool {
	return strings.Contains(line, "/releases/") || strings.HasSuffix(name, ".githubusercontent.com")
}

// isLocalName reports whether name is this machine, which is always reachable.
func isLocalName(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || ip != nil && ip.IsLoopback()
}

// isUnanswered reports whether r was allowed and did not succeed.
func isUnanswered(r proposal.Reach) bool {
	return slices.Contains([]string{"unreachable", "unresolved", "upstream", "timeout"}, r.Code)
}

// hasFailedToReach reports whether the command tried to reach name, or any host if name is "", and did
// not succeed, as the kernel or the gateway recorded it.
func (c *command) hasFailedToReach(name string) bool {
	for _, r := range c.seen.Network {
		if (name == "" || r.Name == name || r.Name == "") && (r.Refused || isUnanswered(r)) {
			return true
		}
	}
	return slices.ContainsFunc(c.seen.Notable, func(e proposal.Event) bool {
		if e.Kind != proposal.EventConnect && e.Kind != proposal.EventSend {
			return false
		}
		ip, port := splitEndpoint(e.Address)
		return port == "53" || ip != nil && !ip.IsLoopback() && e.Errno != ""
	})
}

// granted returns the first record of the gateway that policy allowed name, or any host if name is "", and
// that it did not succeed, or a zero Reach.
func (c *command) findGranted(name string) proposal.Reach {
	for _, r := range c.seen.Network {
		if (name == "" || r.Name == name) && !r.Refused && isUnanswered(r) {
			return r
		}
	}
	return proposal.Reach{}
}

// splitEndpoint splits the address of an Event. For a socket that is not IP, ip is nil.
func splitEndpoint(address string) (ip net.IP, port string) {
	_, at, _ := strings.Cut(address, " ")
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return nil, ""
	}
	return net.ParseIP(host), port
}

// A service is a server that projects expect on this machine.
type service struct {
	name, port string
	socket     string // a part of the path of its socket
	pack       string // the package of Debian with it, if the configuration can start it
}

var services = []service{
	{"postgres", "5432", ".s.PGSQL.5432", "postgresql"}, {"mysql", "3306", "mysqld.sock", "mariadb-server"}, {"redis", "6379", "redis.sock", "redis-server"},
	{"mongodb", "27017", "mongodb-27017.sock", ""}, {"elasticsearch", "9200", "", ""}, {"rabbitmq", "5672", "", ""}, {"memcached", "11211", "memcached.sock", ""},
}

// serviceHosts are the names that such servers have in other CI systems.
var serviceHosts = map[string]string{
	"postgres": "postgres", "postgresql": "postgres", "pg": "postgres", "mysql": "mysql", "mariadb": "mysql", "redis": "redis",
	"mongo": "mongodb", "mongodb": "mongodb", "elasticsearch": "elasticsearch", "rabbitmq": "rabbitmq", "memcached": "memcached",
}

// refusedLines are the messages of clients that found no server; the group is the port.
var refusedLines = []*pattern.Pattern{
	pattern.New(`ECONNREFUSED (?:127\.0\.0\.1|::1|localhost):([0-9]+)`),
	pattern.New(`(?:127\.0\.0\.1|\[::1\]|localhost):([0-9]+)\b.*[Rr]efused`),
	pattern.New(`server at "(?:127\.0\.0\.1|::1|localhost)"(?: \([^)]*\))?, port ([0-9]+) failed: Connection refused`),
	pattern.New(`server on socket "[^"]*\.s\.PGSQL\.([0-9]+)" failed: No such file`),
	pattern.New(`Can't connect to (?:local )?(?:MySQL|MariaDB|server)\b.*(?:socket|'127\.0\.0\.1|'localhost)`),
	pattern.New(`[Cc]onnection refused`),
}

// missingService finds that a command needs a server that does not run here.
func missingService(c *command) *proposal.Cause {
	if !c.isReliable() {
		return nil
	}
	for _, p := range refusedLines {
		line, m := c.findLine(p)
		if m == nil {
			continue
		}
		i := slices.IndexFunc(services, func(s service) bool {
			return (lastOf(m) == "" || lastOf(m) == s.port) && c.hasRefusedConnection(s)
		})
		if i >= 0 {
			return services[i].causeAt(line)
		}
	}
	for _, p := range unreachable[:3] {
		line, m := c.findLine(p)
		if m == nil || !c.hasFailedToReach(m[1]) {
			continue
		}
		if i := slices.IndexFunc(services, func(s service) bool { return s.name == serviceHosts[m[1]] }); i >= 0 {
			cause := services[i].causeAt(line)
			cause.Advice = "The server then listens on `127.0.0.1`, not on the host `" + m[1] + "`."
			return cause
		}
	}
	return nil
}

func (s service) causeAt(line string) *proposal.Cause {
	c := &proposal.Cause{Kind: causeService, Reason: noService, Subject: s.name, Evidence: line,
		Advice: "The proposal can start the server itself, on `127.0.0.1`, with its data in `/tmp`."}
	if s.pack != "" {
		c.Config = []string{"services: [" + s.name + "]"}
	}
	return c
}

// hasRefusedConnection reports whether the kernel saw a connection to s fail, and the command did not
// listen there itself.
func (c *command) hasRefusedConnection(s service) bool {
	failed := false
	for _, e := range c.seen.Notable {
		ip, port := splitEndpoint(e.Address)
		here := ip != nil && port == s.port && (ip.IsLoopback() || ip.IsUnspecified()) ||
			s.socket != "" && strings.HasPrefix(e.Address, "unix ") && strings.Contains(e.Address, s.socket)
		if !here {
			continue
		}
		switch e.Kind {
		case proposal.EventListen:
			return false
		case proposal.EventConnect:
			failed = failed || e.Errno != ""
		}
	}
	return failed
}
