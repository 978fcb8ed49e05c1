// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/egress"
	"github.com/fumehood/fumehood/pkg/egress/names"
	"github.com/fumehood/fumehood/pkg/egress/registry"
	"github.com/fumehood/fumehood/pkg/egress/segment"
	"github.com/fumehood/fumehood/pkg/egress/wire"
	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox"
)

// A network is a run's way out: it is made when a command that will run was granted a
// host, before the sandbox is, whose options it completes.
type network struct {
	setup    *setup
	engine   *policy.Engine
	observer *hood.Observer
	sandbox  *sandbox.Options

	gateway *egress.Gateway
	dir     string // what the sandbox is shown of it
}

// Open starts the gateway.
func (n *network) Open(ctx context.Context, granted []string) error {
	registries, err := n.setup.registriesOf(ctx, registriesIn(granted))
	if err != nil {
		return err
	}
	credentials, err := n.setup.credentialsFor(registries, n.sandbox.Env)
	if err != nil {
		return err
	}
	o, err := n.options(ctx, registries, credentials)
	if err != nil {
		return err
	}
	if n.gateway, err = egress.Start(ctx, o); err != nil {
		return err
	}
	return n.show(registries, o.Roots)
}

// registriesOf are those of --registries, or what this host's own tools say.
func (s *setup) registriesOf(ctx context.Context, granted []string) ([]registry.Registry, error) {
	if s.registries == "" {
		return registry.Discover(ctx, granted)
	}
	data, err := os.ReadFile(s.registries)
	var all []registry.Registry
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, &proposal.StopError{Code: "network.registries", Message: "the file of --registries cannot be read", Hint: "leave it out; fumehood action writes it", Err: err}
	}
	return slices.DeleteFunc(all, func(r registry.Registry) bool { return !slices.Contains(granted, r.Name) }), nil
}

// registriesIn are the names in entries like "registry:npm".
func registriesIn(granted []string) []string {
	var found []string
	for _, entry := range granted {
		if name, ok := strings.CutPrefix(entry, "registry:"); ok {
			found = append(found, name)
		}
	}
	return found
}

func (n *network) options(ctx context.Context, registries []registry.Registry, credentials []wire.Credential) (egress.Options, error) {
	upstream, err := n.setup.upstream()
	if err != nil {
		return egress.Options{}, err
	}
	roots, err := rootCertificates()
	if err != nil {
		return egress.Options{}, err
	}
	ctx = context.WithoutCancel(ctx)
	return egress.Options{
		Decide: func(_ context.Context, x proposal.Egress) (proposal.EgressDecision, error) {
			d, err := n.engine.Egress(ctx, x)
			d.Intercept = d.Intercept || x.Kind == proposal.EgressConnect && credited(credentials, x)
			return d, err
		},
		Event: n.observer.See, Events: sandbox.DefaultEvents, AnswerWithin: sandbox.AnswerWithin, Fail: n.observer.Fail,
		Registries: func(name string, port int, path string) []string { return registry.Match(registries, name, port, path) },
		Resolvers:  upstream.Servers, Hosts: upstream.Hosts, Roots: roots, Credentials: credentials,
	}, nil
}

// Begin opens the way for one command.
func (n *network) Begin(ctx context.Context, x proposal.Execution) error {
	return n.gateway.Begin(ctx, x)
}

// End cuts what the command has left open.
func (n *network) End() error { return n.gateway.End() }

// close ends the gateway, if there is one.
func (n *network) close() error {
	if n == nil || n.gateway == nil {
		return nil
	}
	return errors.Join(n.gateway.Close(), os.RemoveAll(n.dir))
}

// bundles are where programs look for the certificates that they trust.
var bundles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// trusting are the variables that name such a file to tools which have files of
// their own.
var trusting = []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
	"CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "npm_config_cafile", "BUNDLE_SSL_CA_CERT", "DENO_CERT", "NIX_SSL_CERT_FILE"}

const bundleInside = "/etc/fumehood/ca-certificates.crt"

// show completes the sandbox: its devices, who answers for names, whom to trust, and
// where the registries are.
func (n *network) show(registries []registry.Registry, roots string) error {
	o := n.sandbox
	o.Netns = n.gateway.Path()
	o.Files, o.Env = maps.Clone(o.Files), maps.Clone(o.Env)
	trusted := append(append([]byte(strings.TrimSpace(roots)), '\n'), n.gateway.CA()...)
	o.Files["/etc/resolv.conf"] = fmt.Appendf(nil, "nameserver %s\noptions timeout:5 attempts:2\n", segment.Default().Gateway.V4)
	o.Files[bundleInside] = trusted
	for _, name := range trusting {
		o.Env[name] = bundleInside
	}
	for _, r := range registries {
		maps.Copy(o.Env, r.Env)
		n.lay(r.Files)
		for _, name := range offline[r.Name] {
			if _, set := r.Env[name]; !set {
				delete(o.Env, name)
			}
		}
	}
	return n.showBundles(trusted)
}

// lay puts a registry's files into HOME or the root file system.
func (n *network) lay(files []registry.File) {
	if n.sandbox.Home == nil {
		n.sandbox.Home = map[string]string{}
	}
	for _, f := range files {
		if path, home := strings.CutPrefix(f.Path, "~/"); home {
			n.sandbox.Home[path] = f.Content
		} else {
			n.sandbox.Files[f.Path] = []byte(f.Content)
		}
	}
}

// offline are the variables that keep a tool from the network where it has none.
var offline = map[string][]string{"go": {"GOPROXY"}, "crates": {"CARGO_NET_OFFLINE"}}

// showBundles lays the bundle over those of the root file system, and over Java's.
func (n *network) showBundles(trusted []byte) error {
	var err error
	if n.dir, err = os.MkdirTemp("", "fumehood-"); err != nil {
		return err
	}
	if err := os.Chmod(n.dir, 0o755); err != nil {
		return err
	}
	return errors.Join(
		n.cover(bundles, "ca-certificates.crt", trusted),
		n.cover(javaTruststores(), "cacerts", truststore(trusted)))
}

// cover lays a file over those of the root file system that are there.
func (n *network) cover(paths []string, name string, content []byte) error {
	file := filepath.Join(n.dir, name)
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return err
	}
	for _, path := range paths {
		if n.shown(path) {
			n.sandbox.Binds = append(n.sandbox.Binds, sandbox.Bind{Source: file, Target: path})
		}
	}
	return nil
}

// shown reports whether the root file system has a plain file at path, in a folder that
// is bound.
func (n *network) shown(path string) bool {
	for _, b := range n.sandbox.Binds {
		if rest, ok := strings.CutPrefix(path, b.Target+"/"); ok {
			info, err := os.Lstat(filepath.Join(b.Source, rest))
			return err == nil && info.Mode().IsRegular()
		}
	}
	return false
}

// rootCertificates are those that the operator's own tools trust.
func rootCertificates() (string, error) {
	paths := bundles
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		paths = []string{file}
	}
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte("BEGIN CERTIFICATE")) {
			return string(data), nil
		}
	}
	return "", &proposal.StopError{Code: "network.unavailable", Message: "no file of trusted certificates was found", Hint: "install ca-certificates, or name a file with SSL_CERT_FILE"}
}

// upstream is whom the host asks for names, --resolver's servers in place of its own.
func (s *setup) upstream() (names.Upstream, error) {
	given, err := s.servers()
	if err != nil {
		return names.Upstream{}, err
	}
	u, err := names.Host()
	if err != nil && len(given) == 0 {
		return u, &proposal.StopError{Code: "network.unavailable", Message: "the host's name servers are not known", Hint: "name one with --resolver", Err: err}
	}
	if len(given) > 0 {
		u.Servers = given
	}
	return u, nil
}

// servers are those of --resolver.
func (s *setup) servers() ([]netip.AddrPort, error) {
	var given []netip.AddrPort
	for _, text := range s.resolvers {
		a, err := resolverOf(text)
		if err != nil || a.Port() == 0 {
			return nil, &proposal.StopError{Code: "network.resolver", Message: fmt.Sprintf("resolver %q is no address and no address:port", text),
				Hint: "for example --resolver 192.0.2.53: an address, since there is nobody yet to ask for a name"}
		}
		given = append(given, a)
	}
	return given, nil
}

func resolverOf(text string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(text); err == nil {
		return a, nil
	}
	a, err := netip.ParseAddr(text)
	return netip.AddrPortFrom(a, 53), err
}

// credentialsFor are those of --credential and those in the registries' own
// configuration. Inside, each variable holds a placeholder.
func (s *setup) credentialsFor(registries []registry.Registry, env map[string]string) ([]wire.Credential, error) {
	var list []wire.Credential
	for _, r := range registries {
		for _, c := range r.Credentials {
			list = append(list, wire.Credential{Name: "registry:" + c.Registry, Host: hostOf(c), Scheme: c.Scheme, PathPrefix: c.Path, Header: c.Header, Value: c.Value})
		}
	}
	for _, text := range s.credentials {
		c, err := credentialOf(text)
		if err != nil {
			return nil, err
		}
		env[c.Name] = c.Placeholder
		list = append(list, c)
	}
	return list, nil
}

// credited says that a credential is put on what is sent to x, for which TLS has to end
// at the gateway. Policy may be stricter, not laxer.
func credited(credentials []wire.Credential, x proposal.Egress) bool {
	return slices.ContainsFunc(credentials, func(c wire.Credential) bool {
		return c.Host == x.Name && x.Port == 443 || c.Host == x.Destination()
	})
}

// hostOf is a credential's host as the gateway takes it.
func hostOf(c registry.Credential) string {
	if c.Port == 443 || c.Port == 0 {
		return c.Host
	}
	return fmt.Sprintf("%s:%d", c.Host, c.Port)
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// credentialPlace is HOST[:PORT][/PATH]. Who has a URL in mind writes a scheme before it.
	credentialPlace = regexp.MustCompile(`^[A-Za-z0-9._-]+(:[0-9]{1,5})?(/[^?#@ ]*)?$`)
)

// credentialOf reads NAME@HOST[:PORT][/PATH]. The value is the variable's, never the
// command line's, which every process can read; so a refusal repeats nothing that may
// be a value.
func credentialOf(text string) (wire.Credential, error) {
	name, place, ok := strings.Cut(text, "@")
	if !ok || !variableName.MatchString(name) || !credentialPlace.MatchString(place) {
		return wire.Credential{}, credentialError("a value of --credential is not VARIABLE@HOST[:PORT][/PATH], with the name of a variable and no scheme")
	}
	value := os.Getenv(name)
	switch {
	case value == "":
		return wire.Credential{}, credentialError("--credential says what is put on requests to " + place + " by a variable that is not set, or empty")
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return wire.Credential{}, credentialError("the variable whose value is put on requests to " + place + " has a line break or another control character, which no header holds")
	}
	host, path, _ := strings.Cut(place, "/")
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return wire.Credential{Name: name, Host: strings.ToLower(host), Scheme: "https", PathPrefix: "/" + path, Header: "Authorization",
		Placeholder: "fumehood-" + hex.EncodeToString(b[:]), Value: value}, nil
}

func credentialError(message string) error {
	return &proposal.StopError{Code: "network.credential", Message: message,
		Hint: "for example --credential GITHUB_TOKEN@api.github.com/repos with GITHUB_TOKEN in the environment; sudo drops variables without --preserve-env"}
}

// checkNetwork refuses what the flags say wrongly of the network before anything begins,
// also where no command will be granted a host.
func (s *setup) checkNetwork() error {
	for _, text := range s.credentials {
		if _, err := credentialOf(text); err != nil {
			return err
		}
	}
	_, err := s.servers()
	return err
}
