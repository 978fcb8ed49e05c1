// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/egress"
	"github.com/fumehood/fumehood/internal/egress/names"
	"github.com/fumehood/fumehood/internal/egress/registry"
	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/internal/egress/trust"
	"github.com/fumehood/fumehood/internal/egress/upstream"
	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A network is the network access of one run. Its gateway is started if a command that will run
// was granted a host, before the sandbox.
type network struct {
	o        Options
	engine   *policy.Engine
	observer *observe.Observer

	notes   notes
	waiting registryWait
	names   egress.NamesBelow
	gateway *egress.Gateway
	dir     string // the part of it that the sandbox sees
}

// Open implements order.Network: it starts the gateway. One of an earlier sandbox ends.
func (n *network) Open(ctx context.Context, granted []string, sandboxed sandbox.Options) (link order.Link, err error) {
	if err := n.closeGateway(); err != nil {
		return link, err
	}
	registries, err := n.o.registriesOf(ctx, registry.GrantedNames(granted))
	if err != nil {
		return link, err
	}
	credentials := n.o.credentialsFor(registries)
	proxies, err := upstream.FromEnvironment()
	if err != nil {
		return link, err
	}
	if err := proxies.ResolveProxies(ctx, net.DefaultResolver.LookupNetIP); err != nil {
		return link, err
	}
	o, err := n.gatewayOptions(ctx, registries, credentials, proxies)
	if err != nil {
		return link, err
	}
	if n.gateway, err = egress.Start(ctx, o); err != nil {
		return link, err
	}
	return n.sandboxLink(sandboxed.Binds, registries, credentials, o.Roots)
}

func (n *network) gatewayOptions(
	ctx context.Context, registries []registry.Registry, credentials []wire.Credential, proxies upstream.Config,
) (egress.Options, error) {
	proxied := len(proxies.Proxies()) > 0
	if proxied && n.o.ObserveNetworkUnsafe {
		return egress.Options{}, observeError("this host's network has an upstream proxy, which would choose the addresses", "unset HTTPS_PROXY and HTTP_PROXY, or leave out --observe-network")
	}
	argv, err := gatewayArgv(n.o)
	if err != nil {
		return egress.Options{}, err
	}
	sources, err := n.o.nameSources(proxied)
	if err != nil {
		return egress.Options{}, err
	}
	roots, err := trust.ReadRoots()
	if err != nil {
		return egress.Options{}, err
	}
	ctx = context.WithoutCancel(ctx)
	return n.onlyObserve(egress.Options{
		Decide: func(_ context.Context, x proposal.Egress) (proposal.EgressDecision, error) {
			d, err := n.engine.Egress(ctx, x)
			d = n.names.Limit(x, d)
			n.noteRefusal(x, d)
			if err == nil && d.Effect == proposal.Allow {
				n.waiting.noteQuestion(x)
			}
			d.Unresolved = proxied && d.Effect == proposal.Allow &&
				(x.Kind == points.EgressLookup || x.Kind == points.EgressConnect) && policy.IsGrantedByName(x)
			d.Intercept = d.Intercept || x.Kind == points.EgressConnect && hasCredentialFor(credentials, x)
			return d, err
		},
		Event: n.observer.AddEvent, Events: sandbox.DefaultEvents, AnswerWithin: sandbox.AnswerWithin,
		Fail: n.observer.Fail,
		Registries: func(name string, port int,
			path string) []string {
			return registry.Match(registries, name, port, path)
		},
		Resolvers: sources.Servers, Hosts: sources.Hosts, Roots: roots, Credentials: credentials, Proxies: proxies,
		Argv: argv,
	}), nil
}

// Begin opens network access for one command.
func (n *network) Begin(ctx context.Context, x sandbox.Execution, stop context.CancelCauseFunc) error {
	n.notes.beginCommand(x.Notes)
	n.waiting.beginCommand(x.Notes, stop)
	return n.gateway.Begin(ctx, x.ID, x.Grant)
}

// End closes the command's open connections.
func (n *network) End() error {
	n.waiting.endWait()
	return n.gateway.End()
}

// closeGateway ends the gateway, if there is one.
func (n *network) closeGateway() error {
	if n == nil || n.gateway == nil {
		return nil
	}
	err := errors.Join(n.gateway.Close(), os.RemoveAll(n.dir))
	n.gateway, n.dir = nil, ""
	return err
}

// sandboxLink returns what a sandbox with binds needs to use the gateway: its network devices, name servers,
// trusted certificates, the locations of the registries, and placeholders of credentials.
func (n *network) sandboxLink(
	binds []sandbox.Bind, registries []registry.Registry, credentials []wire.Credential, roots string,
) (order.Link, error) {
	trusted := append(append([]byte(strings.TrimSpace(roots)), '\n'), n.gateway.CACertificate()...)
	link := order.Link{
		Netns: n.gateway.Path(), Ready: n.gateway.Restore, Unset: n.offlineNames(registries),
		Env: map[string]string{}, Home: map[string]string{},
		Files: map[string][]byte{
			"/etc/resolv.conf": fmt.Appendf(nil, "nameserver %s\noptions timeout:5 attempts:2\n", segment.Default().Gateway.V4),
			trust.Inside:       trusted,
		},
	}
	for _, c := range credentials {
		if c.Placeholder != "" {
			link.Env[c.Name] = c.Placeholder
		}
	}
	for _, name := range trust.Variables() {
		link.Env[name] = trust.Inside
	}
	for _, r := range registries {
		maps.Copy(link.Env, r.Env)
		for _, f := range r.Files {
			if path, home := strings.CutPrefix(f.Path, "~/"); home {
				link.Home[path] = f.Content
			} else {
				link.Files[f.Path] = []byte(f.Content)
			}
		}
	}
	var err error
	link.Binds, err = n.coverBundles(binds, trusted)
	return link, err
}

// offlineNames returns the variables that keep the tools of registries off the network, except for those
// that a registry sets; where the network is observed, those of all tools.
func (n *network) offlineNames(registries []registry.Registry) []string {
	var names []string
	set := map[string]string{}
	for _, r := range registries {
		names = append(names, offline[r.Name]...)
		maps.Copy(set, r.Env)
	}
	if n.o.ObserveNetworkUnsafe {
		names = slices.Concat(slices.Collect(maps.Values(offline))...)
	}
	return slices.DeleteFunc(names, func(name string) bool { _, kept := set[name]; return kept })
}

// offline are the variables that keep a tool off the network if it has none.
var offline = map[string][]string{"go": {"GOPROXY"}, "crates": {"CARGO_NET_OFFLINE"}}

// coverBundles returns mounts of the trusted certificates over those that binds show, and over Java's.
func (n *network) coverBundles(binds []sandbox.Bind, trusted []byte) (covers []sandbox.Bind, err error) {
	if n.dir, err = os.MkdirTemp("", "fumehood-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(n.dir, 0o755); err != nil {
		return nil, err
	}
	ours, err := n.coverFiles(binds, trust.Bundles(), "ca-certificates.crt", trusted)
	java, javaErr := n.coverFiles(binds, trust.JavaStores(), "cacerts", trust.JavaStore(trusted))
	return append(ours, java...), errors.Join(err, javaErr)
}

// coverFiles returns mounts of a new file over those of paths that binds show.
func (n *network) coverFiles(
	binds []sandbox.Bind, paths []string, name string, content []byte,
) (covers []sandbox.Bind, _ error) {
	file := filepath.Join(n.dir, name)
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return nil, err
	}
	for _, path := range paths {
		if isShown(binds, path) {
			covers = append(covers, sandbox.Bind{Source: file, Target: path})
		}
	}
	return covers, nil
}

// isShown reports whether binds show a regular file at path, in a directory that is bound.
func isShown(binds []sandbox.Bind, path string) bool {
	for _, b := range binds {
		if rest, ok := strings.CutPrefix(path, b.Target+"/"); ok {
			info, err := os.Lstat(filepath.Join(b.Source, rest))
			return err == nil && info.Mode().IsRegular()
		}
	}
	return false
}

// nameSources returns the host's name servers and names, or o's servers instead. Where connections
// are proxied, there may be none.
func (o Options) nameSources(proxied bool) (names.Upstream, error) {
	u, err := names.HostUpstream()
	if err != nil && len(o.Resolvers) == 0 && !proxied {
		return u, &proposal.StopError{Code: "network.unavailable", Message: "cannot find the host's name servers",
			Hint: "name one: --resolver, or Options.Resolvers", Err: err}
	}
	if len(o.Resolvers) > 0 {
		u.Servers = o.Resolvers
	}
	return u, nil
}

// credentialsFor returns o's credentials, each with a placeholder, and those in the registries' own
// configuration, without.
func (o Options) credentialsFor(registries []registry.Registry) []wire.Credential {
	var list []wire.Credential
	for _, r := range registries {
		for _, c := range r.Credentials {
			list = append(list, wire.Credential{Name: "registry:" + c.Registry, Host: hostOf(c), Scheme: c.Scheme,
				PathPrefix: c.Path, Header: c.Header, Value: c.Value})
		}
	}
	for _, c := range o.Credentials {
		list = append(list, c.gatewayCredential())
	}
	return list
}

// gatewayCredential returns c in the gateway's form, with a new placeholder.
func (c Credential) gatewayCredential() wire.Credential {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	header := cmp.Or(c.Header, "Authorization")
	if c.Query != "" {
		header = ""
	}
	return wire.Credential{Name: c.Name, Host: strings.ToLower(c.Host), Scheme: "https",
		PathPrefix: "/" + strings.TrimPrefix(c.Path, "/"), Header: header, Query: c.Query,
		Placeholder: "fumehood-" + hex.EncodeToString(b[:]), Value: c.Value}
}

// hasCredentialFor reports whether a credential is added to requests to x, which requires that
// TLS ends at the gateway. Policy may be stricter, but not more permissive.
func hasCredentialFor(credentials []wire.Credential, x proposal.Egress) bool {
	return slices.ContainsFunc(credentials, func(c wire.Credential) bool {
		return c.Host == x.Name && x.Port == 443 || c.Host == x.Destination()
	})
}

// hostOf returns a credential's host in the gateway's form.
func hostOf(c registry.Credential) string {
	if c.Port == 443 || c.Port == 0 {
		return c.Host
	}
	return fmt.Sprintf("%s:%d", c.Host, c.Port)
}
