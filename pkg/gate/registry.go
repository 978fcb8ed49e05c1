// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/registry"
	"github.com/fumehood/fumehood/internal/egress/wire"
)

// A Registry is where the packages of one ecosystem are fetched from.
type Registry struct {
	Name   string // as policy grants it: npm for registry:npm
	Source string // where it was found, for people
	// URLs are the places that packages are fetched from: http or https, a host, and the prefix of
	// the path, in which a segment "*" is any one. A URL that ends in "!" is that path alone; in its
	// segments "*" is any name or version, and a last segment "**" is one or more.
	URLs []string
	// Env are variables for commands, so that their tools use the same places. No value may be a
	// secret.
	Env map[string]string
	// Files are the contents of files for commands, by path; "~/" at its start is their home. No
	// content may be a secret.
	Files map[string]string
	// Credentials are added by the gateway to requests with https. They have no Name and no Query.
	Credentials []Credential
}

// registriesOf returns the named registries: what o.Registries says, or this host's.
func (o Options) registriesOf(ctx context.Context, granted []string) ([]registry.Registry, error) {
	if o.Registries == nil {
		return registry.Discover(ctx, granted)
	}
	all, err := o.Registries(ctx, granted)
	if err != nil {
		return nil, err
	}
	var list []registry.Registry
	for _, r := range all {
		if !slices.Contains(granted, r.Name) {
			continue
		}
		inner, err := r.toRegistry()
		if err != nil {
			return nil, err
		}
		list = append(list, inner)
	}
	return list, nil
}

// toRegistry returns r as the gateway uses it.
func (r Registry) toRegistry() (registry.Registry, error) {
	inner := registry.Registry{Name: r.Name, Source: r.Source, Env: r.Env}
	for _, text := range r.URLs {
		origin, err := registry.ParseOrigin(text)
		if err != nil {
			return inner, invalidOptionsError(fmt.Sprintf("the registry %q has an invalid URL: %v", r.Name, err),
				"use https://HOST/PATH")
		}
		inner.Origins = append(inner.Origins, origin)
	}
	for _, path := range slices.Sorted(maps.Keys(r.Files)) {
		inner.Files = append(inner.Files, registry.File{Path: path, Content: r.Files[path]})
	}
	for _, c := range r.Credentials {
		used, err := c.ofRegistry(r.Name)
		if err != nil {
			return inner, err
		}
		inner.Credentials = append(inner.Credentials, used)
	}
	return inner, nil
}

// ofRegistry returns c as the gateway uses it for a registry. The error does not contain the value.
func (c Credential) ofRegistry(name string) (registry.Credential, error) {
	host, port := c.Host, "443"
	if h, p, err := net.SplitHostPort(c.Host); err == nil {
		host, port = h, p
	}
	number, err := strconv.ParseUint(port, 10, 16)
	used := registry.Credential{
		Registry: name, Scheme: "https", Host: strings.ToLower(host), Port: int(number),
		Path: cmp.Or(c.Path, "/"), Header: cmp.Or(c.Header, "Authorization"), Value: c.Value,
	}
	if err != nil || number == 0 || host == "" || used.Path[0] != '/' || c.Name+c.Query != "" ||
		!wire.IsCredentialHeader(used.Header) || !isHeaderValue(c.Value) {
		return used, invalidOptionsError(fmt.Sprintf("invalid credential of the registry %q", name),
			"set Host and Value; Path begins with a slash, and there is no Name and no Query")
	}
	return used, nil
}
