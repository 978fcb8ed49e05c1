// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// finders fill in the Registry of a preset; findPublic does so for those that are not in it.
var finders = map[string]func(context.Context, *toolRunner, *Registry) error{
	"go":              findGo,
	"npm":             findNpm,
	"pypi":            findPypi,
	"crates":          findCrates,
	"maven":           findMaven,
	"rubygems":        findRubygems,
	"apt":             findApt,
	"github-releases": findReleases,
}

// GrantedNames returns the names in granted entries like "registry:npm".
func GrantedNames(granted []string) []string {
	var found []string
	for _, entry := range granted {
		if name, ok := strings.CutPrefix(entry, "registry:"); ok {
			found = append(found, name)
		}
	}
	return found
}

// Discover returns the registries of the named presets on this host, in Names' order.
// It runs the host's tools with the operator's HOME and takes some tenths of a
// second.
//
// It returns an error and no registries if any preset cannot be determined: an
// unknown name, a tool that is absent or does not answer, a configuration that names no host.
// The last two are *proposal.StopError with the code network.registry.
func Discover(ctx context.Context, names []string) ([]Registry, error) {
	want := map[string]bool{}
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("invalid registry %q: want one of %v", name, Names())
		}
		want[name] = true
	}
	var list []Registry
	for _, name := range Names() {
		if want[name] {
			list = append(list, Registry{Name: name, Env: map[string]string{}})
		}
	}
	a, err := newToolRunner()
	if err != nil {
		return nil, err
	}
	defer a.close()
	if err := a.findAll(ctx, list); err != nil {
		return nil, err
	}
	return list, nil
}

func (a *toolRunner) findAll(ctx context.Context, list []Registry) error {
	netrc, err := readNetrc()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range list {
		r := &list[i]
		g.Go(func() error {
			find := finders[r.Name]
			if find == nil {
				find = findPublic
			}
			if err := find(ctx, a, r); err != nil {
				return registryError(r.Name, err)
			}
			if len(r.Origins) == 0 {
				return registryError(r.Name, fmt.Errorf("%s names no host", r.Source))
			}
			r.addNetrc(netrc)
			return nil
		})
	}
	return g.Wait()
}

func registryError(name string, err error) error {
	return &proposal.StopError{Code: "network.registry", Message: "cannot find registry " + name,
		Hint: "install and configure its package manager on this host, or remove registry:" + name +
			" from the network that is granted", Err: err}
}
