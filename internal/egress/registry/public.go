// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"os"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/policies"
)

// public lists the registries of ecosystems whose tools cannot report the host that
// they would use, or are not installed: an index and its companions, the hosts that it
// sends its clients to (a release's download continues at a store of signed URLs). The
// list is data of the shipped policy, data.registries. For go, npm and apt the tools
// are always asked.
var public = sync.OnceValue(func() map[string][]Origin {
	origins := map[string][]Origin{}
	for _, r := range policies.Registries() {
		for _, text := range r.Public {
			o, err := ParseOrigin(text)
			if err != nil || o.Scheme != "https" || o.Port != 443 {
				panic("registry: internal error: no public registry: " + text)
			}
			origins[r.Name] = append(origins[r.Name], o)
		}
	}
	return origins
})

// findPublic finds a registry whose tools cannot be asked: the server in the variable of its row in
// policies.Registries, in place of the first host, or the public one. No credential is found for it.
func findPublic(_ context.Context, _ *toolRunner, r *Registry) error {
	for _, row := range policies.Registries() {
		if row.Name != r.Name || row.Mirror == "" || os.Getenv(row.Mirror) == "" {
			continue
		}
		mirror, err := readURL(os.Getenv(row.Mirror))
		if err != nil {
			return err
		}
		r.Source, r.Env[row.Mirror] = row.Mirror, mirror.clean
		main := public()[r.Name][0].Host
		for _, o := range public()[r.Name] {
			if o.Host == main {
				o = Origin{mirror.origin.Scheme, mirror.origin.Host, mirror.origin.Port,
					strings.TrimSuffix(mirror.origin.Path, "/") + o.Path}
			}
			r.addPlace(place{}, o)
		}
		return nil
	}
	r.usePublic()
	return nil
}

const publicSource = "public defaults"

// usePublic makes r the public registry of its ecosystem.
func (r *Registry) usePublic() {
	r.Source = publicSource
	r.Origins = append(r.Origins, public()[r.Name]...)
}

// isPublic reports whether o is a host of the public registry, which needs its
// companions.
func (r *Registry) isPublic(o Origin) bool {
	for _, p := range public()[r.Name] {
		if p.Scheme == o.Scheme && p.Host == o.Host && p.Port == o.Port {
			return true
		}
	}
	return false
}

// addCompanions adds the public registry's companions, if o belongs to it.
func (r *Registry) addCompanions(o Origin) {
	if r.isPublic(o) {
		for _, p := range public()[r.Name] {
			r.addPlace(place{}, p)
		}
	}
}
