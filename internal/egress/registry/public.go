// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"net/url"
	"sync"

	"github.com/fumehood/fumehood/policies"
)

// public lists the registries of ecosystems whose tools cannot report the host that
// they would use, or are not installed: an index and its companions, the hosts that it
// sends its clients to (a release's download continues at a store of signed URLs). The
// list is data of the shipped policy, data.registries. For go, npm and apt the tools
// are always asked.
var public = sync.OnceValue(func() map[string][]Origin {
	text, err := policies.FS.ReadFile("registries/data.json")
	var urls map[string][]string
	if err == nil {
		err = json.Unmarshal(text, &urls)
	}
	if err != nil {
		panic("registry: internal error: the public registries: " + err.Error())
	}
	origins := map[string][]Origin{}
	for name, list := range urls {
		for _, text := range list {
			u, err := url.Parse(text)
			if err != nil || u.Scheme != "https" || u.Port() != "" || u.Path == "" {
				panic("registry: internal error: no public registry: " + text)
			}
			origins[name] = append(origins[name], Origin{"https", u.Hostname(), 443, u.Path})
		}
	}
	return origins
})

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
